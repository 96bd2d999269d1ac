"""Types that are inferred again after the check, for versions of native code, bring back no claim of the file."""

from typing import Any

import numpy as np
import pytest

from dy2st.errors import FileFormatError
from dy2st.ir.checker.type_join import extents_of, same_kind
from dy2st.ir.program import Program
from dy2st.passes.specialize_shapes import narrowed
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.reference import evaluate
from tests.fuzzing.corpus import entries
from tests.fuzzing.victim import changed
from tests.ir.checker.test_hostile import function, loaded


def have_none_in_common(a: Any, b: Any) -> bool:
    """Return whether no tensor broadcasts to two extents: two numbers that differ, of which none is 1."""
    return isinstance(a, int) and isinstance(b, int) and a != b and 1 not in (a, b)


def claims(program: Program) -> list[str]:
    """Return the operations whose op infers an extent that is not what the checker says."""
    found: list[str] = []
    for operation in program.walk():
        given = [v.type for v in operation.operands]
        if operation.op.name == "broadcast_extent" and have_none_in_common(*(t.extent for t in given)):
            continue  # the run raises
        if operation.op.name == "variant_or_zeros":
            continue  # a derivative of another shape is the error of the run, as below
        inferred = operation.op.infer_operation(given, operation.attributes, operation.blocks)
        for value, t in zip(operation.results, inferred if isinstance(inferred, tuple) else (inferred,), strict=True):
            pairs = zip(extents_of(value.type), extents_of(t), strict=True)
            if not same_kind(value.type, t) or any(b is not None and a != b for a, b in pairs):
                found.append(f"{operation.op.name} gives {value.type}, and infers {t}")
    return found


LIST = "%m: list<float64[16]> = list_new() {type=!list<float64[16]>}\n%i: int = scalar_constant() {value=0}\n"


@pytest.mark.parametrize(
    "body",
    [
        """%l: list<float64[N]> = list_new(%x) {type=!list<float64[N]>}
        %e: list<float64[16]> = list_extend(%m, %l)
        %y: float64[16] = list_get(%e, %i)
        return %y""",
        """%e: list<float64[16]> = list_insert(%m, %i, %x)
        %y: float64[16] = list_get(%e, %i)
        return %y""",
        """%s: list<variant<unset | float64[16]>> = list_new() {type=!list<variant<unset | float64[16]>>}
        %e: list<variant<unset | float64[16]>> = list_put(%s, %i, %x)
        %o: variant<unset | float64[16]> = list_take(%e, %i)
        %y: float64[16] = variant_get(%o) {tag=1, message=""}
        return %y""",
        """%s: list<variant<unset | float64[16]>> = list_new() {type=!list<variant<unset | float64[16]>>}
        %l: list<variant<unset | float64[N]>> = list_new() {type=!list<variant<unset | float64[N]>>}
        %p: list<variant<unset | float64[N]>> = list_put(%l, %i, %x)
        %e: list<variant<unset | float64[16]>> = slots_extend(%s, %i, %p)
        %o: variant<unset | float64[16]> = list_take(%e, %i)
        %y: float64[16] = variant_get(%o) {tag=1, message=""}
        return %y""",
        """%u: variant<unset | float64[16]> = variant_new() {type=!variant<unset | float64[16]>, tag=0}
        %v: variant<unset | float64[N]> = variant_new(%x) {type=!variant<unset | float64[N]>, tag=1}
        %s: variant<unset | float64[16]> = optional_add(%u, %v)
        %y: float64[16] = variant_get(%s) {tag=1, message=""}
        return %y""",
    ],
)
def test_a_container_holds_what_went_into_it(body: str) -> None:
    program = loaded(function(LIST + body))
    assert claims(program) == []
    again = narrowed(program, {})
    for one in (program, again):
        assert "16" not in str(one.block.results[0].type)
        np.testing.assert_array_equal(NativePlan(one).run([np.arange(3.0)])[0], np.arange(3.0))


DENSE = """%v: variant<unset | float64[M]> = variant_new(%y) {{type=!variant<unset | float64[M]>, tag=1}}
%s: float64[{0}] = {1}
%t: float64[{0}] = mul(%s, %x)
return %t"""


@pytest.mark.parametrize("extent", ["4", "N"])
@pytest.mark.parametrize("op", ["variant_or_zeros(%v, %x) {tag=1}", "optional_add(%x, %v)"])
def test_a_derivative_of_another_shape_is_the_error_of_the_run(op: str, extent: str) -> None:
    body = DENSE.format(extent, op)
    program = loaded(function(body, f"%x: float64[{extent}], %y: float64[M]"))
    again = narrowed(program, {})
    x = np.arange(1.0, 5.0)
    ways: list[Any] = [NativePlan(program).run, NativePlan(again).run, lambda given: evaluate(program, given)]
    for run in ways:
        np.testing.assert_array_equal(run([x, x])[0], x * x if "zeros" in op else 2 * x * x)
        for n in (1, 2, 5000):
            with pytest.raises(ValueError, match="derivative"):
                run([x, np.ones(n)])


@pytest.mark.slow
def test_no_op_infers_more_of_a_changed_program_than_the_checker() -> None:
    from dy2st.ir.serialize import from_json

    corpus, seen = entries(), 0
    for number in range(600):
        _, data, arrays, _ = changed(corpus, 11, number)
        try:
            program = from_json(data, arrays)
        except FileFormatError:
            continue
        seen += 1
        assert claims(program) == [], number
    assert seen > 200
