"""`try`: what it catches, what it hands over, its text and files, its rules; the interpreter and the plan agree."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st.autodiff.programs import fresh_names
from dy2st.autodiff.try_to_cond import has_attempts, unwound
from dy2st.errors import InvalidProgram
from dy2st.ir.equality import structurally_equal
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.passes import optimise
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import evaluate

LABELLED = """program main
func main(%x: float32[N], %p: bool) {
  %y: float32[N] = try(%x, %p) {label=0, kinds=()} {
    body(%a: float32[N], %q: bool) {
      %d: float32[N] = mul(%a, %a)
      cond(%q, %d) {
        then(%e: float32[N]) {
          raise(%e) {kind="ValueError", template=("no",), label=0}
          return
        }
        else(%e: float32[N]) {
          return
        }
      }
      %f: float32[N] = neg(%d)
      return %f
    }
    handler(%h: float32[N], %a: float32[N], %q: bool) {
      %g: float32[N] = mul(%h, %a)
      return %g
    }
  }
  return %y
}
"""
KINDS = """program main
func main(%x: float32[N], %i: int) {
  %y: float32[] = try(%x, %i) {label=none, kinds=("IndexError",)} {
    body(%a: float32[N], %k: int) {
      %d: float32[] = index(%a, %k) {spec=(("int", "?"),)}
      return %d
    }
    handler(%a: float32[N], %k: int) {
      %g: float32[] = sum(%a) {axis=(0,), keepdim=false}
      return %g
    }
  }
  return %y
}
"""


def every_result(program: Program, *inputs: object) -> list[float]:
    """Run a Program in every way; return what they agree on."""
    verify(program)
    found = [
        [np.asarray(r).tolist() for r in run(list(inputs))]
        for run in (
            lambda given: evaluate(program, given),
            compile_plan(program).run,
            compile_plan(optimise(program)).run,
            compile_plan(unwound(program, fresh_names(program))).run,
        )
    ]
    assert all(one == found[0] for one in found)
    return found[0][0]


@pytest.mark.parametrize("text", [LABELLED, KINDS], ids=["label", "kinds"])
def test_the_text_is_read_back(text: str) -> None:
    program = parse(text)
    assert structurally_equal(parse(str(program)), program)


def test_a_label_hands_over_what_the_body_had() -> None:
    x = np.array([2, 3], "float32")
    assert every_result(parse(LABELLED), x, True) == [8, 27]
    assert every_result(parse(LABELLED), x, False) == [-4, -9]


def test_a_kind_is_caught_whoever_raises_it() -> None:
    x = np.array([2, 3], "float32")
    assert every_result(parse(KINDS), x, 1) == 3
    assert every_result(parse(KINDS), x, 7) == 5


@pytest.mark.parametrize(("text", "last", "gradient"), [
    (LABELLED, True, [12, 27]), (LABELLED, False, [-4, -6]), (KINDS, 1, [0, 1]), (KINDS, 7, [1, 1]),
])  # fmt: skip
def test_the_gradient_flows_through_the_path_that_ran(text: str, last: object, gradient: list[float]) -> None:
    program = parse(text)
    derived = Compiled(program).pullback((0,), (0,))
    x = np.array([2, 3], "float32")
    ran = derived.forward.run([x, last], np)
    (found,) = derived.backward.run([*ran[1:], np.ones_like(ran[0])], np)
    dense = found[1] if isinstance(found, tuple) else found
    assert dense.tolist() == gradient


def test_the_tangent_flows_through_the_path_that_ran() -> None:
    pushed, live = Compiled(parse(LABELLED)).jet(((0, (1,)),), 1)
    x = np.array([2, 3], "float32")
    assert live == ((0, (1,)),)
    assert pushed.run([x, True, np.ones_like(x)], np)[0].tolist() == [12, 27]


def test_another_label_passes() -> None:
    program = parse(LABELLED.replace("label=0, kinds", "label=5, kinds"))
    for run in (lambda given: evaluate(program, given), compile_plan(program).run):
        with pytest.raises(ValueError, match=r"\Ano\Z"):
            run([np.array([2, 3], "float32"), True])


def test_unwound_programs_have_no_label_to_catch() -> None:
    program = unwound(parse(LABELLED), fresh_names(parse(LABELLED)))
    verify(program)
    assert has_attempts(parse(LABELLED))
    assert not has_attempts(program)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('kinds=("IndexError",)', 'kinds=("SystemExit",)', "SystemExit is not a built-in exception"),
    ('kinds=("IndexError",)', 'kinds="IndexError"', "try catches a label .* and kinds .*, not None and 'IndexError'"),
    ("label=none, kinds", 'label="a", kinds', "try catches a label"),
    ("handler(%a", "handler(%more: int, %a", "without a label nothing is handed over, but the handler takes 1 values"),
    ("return %g", "return", "the body has 1 results, the handler 0"),
    ("body(%a: float32[N], %k: int)", "body(%a: float32[3, N], %k: int)", "does not take|the block takes|gives"),
])  # fmt: skip
def test_what_the_verifier_refuses(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidProgram, match=message):
        verify(parse(KINDS.replace(old, new)))
