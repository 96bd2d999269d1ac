"""All passes together: random Programs mean the same before and after, and stay valid."""

import pkgutil
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings

from dy2st import passes
from dy2st.errors import InvalidProgram
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.passes import DEFAULT, Pass, optimise, run_pipeline
from dy2st.passes.pipelines import PIPELINES, all_passes
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.random_programs import bits, inputs, outcome, programs
from tests.shares import examples

SETTINGS = settings(max_examples=examples(80), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
CASES = [inputs(3, 2, True), inputs(1, 0, False), inputs(0, -1, True)]


def test_each_pass_is_in_a_pipeline_and_is_called_like_its_file() -> None:
    for module in pkgutil.walk_packages(passes.__path__, "dy2st.passes."):
        import_module(module.name)
    found = [one for one in Pass.__subclasses__() if one.__module__.startswith("dy2st.passes.")]
    assert {one.name for one in found} == set(all_passes())
    for one in found:
        assert one.__module__.endswith(f".{one.name}")


def test_strict_native_code_splits_no_products() -> None:
    names = [one.name for one in PIPELINES["native_strict"]()]
    assert "split_matmul" not in names
    assert "split_matmul" in [one.name for one in PIPELINES["native"]()]


@SETTINGS
@given(programs())
def test_a_plan_means_what_the_interpreter_means(program: Program) -> None:
    plan = compile_plan(program)
    for case in CASES:
        before = bits(case)
        want = outcome(lambda given: evaluate(program, given), case)
        assert outcome(plan.run, case) == want, to_text(program)
        assert outcome(plan.run, case) == want, "a second run differs"
        assert bits(case) == before, "inputs were changed"


@SETTINGS
@given(programs())
def test_optimised_programs_mean_the_same(program: Program) -> None:
    text = to_text(program)
    optimised = optimise(program, verify=True)
    assert to_text(program) == text, "the Program that was given changed"
    plan = compile_plan(optimised)
    for case in CASES:
        want = outcome(lambda given: evaluate(program, given), case)
        assert outcome(lambda given: evaluate(optimised, given), case) == want, text
        assert outcome(plan.run, case) == want, text


@pytest.mark.parametrize("one", list(dict.fromkeys(type(p) for p in DEFAULT)), ids=lambda p: p.name)
@settings(SETTINGS, max_examples=examples(25))
@given(program=programs())
def test_each_pass_alone_keeps_the_meaning_and_settles(one: type[Pass], program: Program) -> None:
    changed = clone_program(program)
    for _ in range(12):
        if not one().apply(changed):
            break
        verify(changed)
    else:
        pytest.fail(f"{one.name} still finds something to do after 12 turns")
    for case in CASES:
        want = outcome(lambda given: evaluate(program, given), case)
        assert outcome(lambda given: evaluate(changed, given), case) == want


@pytest.mark.parametrize("later", [False, True])
def test_the_pass_that_breaks_a_program_is_named(later: bool) -> None:
    class Breaks(Pass):
        """Take away what the results are computed from."""

        name = "breaks"

        def apply(self, program: Program) -> bool:
            program.block.operations.clear()
            return True

    program = Program()
    b = Builder(program.block)
    program.block.results = [b.scalar(1)]
    with pytest.raises(InvalidProgram, match="the pass 'breaks' broke a rule of the IR"):
        run_pipeline(program, [Breaks(), *DEFAULT] if later else [Breaks()], verify=True)
