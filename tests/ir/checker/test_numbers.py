"""Numbers and lengths that a file says: places in lists, slots, parts, coordinates. None of them leads outside."""

from typing import Any

import numpy as np
import pytest

from dy2st.dtypes import float64
from dy2st.errors import FileFormatError
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.program import Program
from dy2st.ir.serialize import from_json, to_json
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.reference import evaluate
from dy2st.shapes import symbol
from tests.agreement import difference
from tests.ir.checker.test_hostile import function, loaded

NUMBERS = (-(2**63), -(2**40), -3, -1, 0, 1, 2, 3, 7, 2**40, 2**61 + 1, 2**63 - 1)
OPTIONAL = "variant<unset | float64[None]>"
LIST = "%l: list<float64[None]> = list_new(%x, %x) {type=!list<float64[None]>}\n"
SLOTS = (
    f"%v: {OPTIONAL} = variant_new(%x) {{type=!{OPTIONAL}, tag=1}}\n"
    f"%s: list<{OPTIONAL}> = list_new(%v, %v) {{type=!list<{OPTIONAL}>}}\n"
)
PLACES = {
    "insert": LIST + "%r: list<float64[None]> = list_insert(%l, %n, %x)",
    "part": LIST + "%r: list<float64[None]> = list_part(%l, %n, %m)",
    "put": SLOTS + f"%r: list<{OPTIONAL}> = list_put(%s, %n, %x)",
    "accumulate": SLOTS + f"%r: list<{OPTIONAL}> = list_accumulate(%s, %n, %v)",
    "take": SLOTS + f"%r: {OPTIONAL} = list_take(%s, %n)",
    "clear": SLOTS + f"%r: list<{OPTIONAL}> = list_clear(%s, %n)",
    "remove": SLOTS + f"%r: list<{OPTIONAL}> = list_remove(%s, %n)",
    "spread": SLOTS + f"%r: list<{OPTIONAL}> = list_spread(%s, %n)",
    "slots part": SLOTS + f"%r: list<{OPTIONAL}> = slots_part(%s, %n, %m)",
    "slots reverse": SLOTS + f"%r: list<{OPTIONAL}> = slots_reverse(%s, %n)",
    "slots extend": SLOTS + f"%r: list<{OPTIONAL}> = slots_extend(%s, %n, %s)",
}


def outcome(run: Any, given: list[Any]) -> Any:
    try:
        return run(given)
    except Exception as error:
        return error


def same(program: Program, *inputs: list[Any]) -> list[Any]:
    """Return what native code gives; the interpreter gives the same, or an error of the same kind."""
    plan, made = NativePlan(program), list[Any]()
    for given in inputs:
        found, wanted = outcome(plan.run, given), outcome(lambda xs: evaluate(program, xs), given)
        if isinstance(found, MemoryError) and isinstance(wanted, MemoryError):
            continue
        assert difference(found, wanted, given, exact=True) == "", given
        made.append(found)
    return made


@pytest.mark.parametrize("name", PLACES)
def test_a_number_is_a_place_of_the_list_or_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_GUARD", "1")
    program = loaded(function(f"{PLACES[name]}\nreturn %r", "%x: float64[N], %n: int, %m: int"))
    others = (0, 2, 5, -1, 2**62) if "part" in name else (0,)
    same(program, *([np.ones(3), n, m] for n in NUMBERS for m in others))


PARTS = (
    [], [0], [3], [1, 2], [2, 1, 0], [4], [1, 1, 2], [-1, 3], [3, -1], [2**40], [2**61, 2**61], [2**62] * 4, [-(2**63)]
)  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_a_tensor_lie_inside_of_it(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_GUARD", "1")
    slots = "list<variant<unset | float64[None, None]>>"
    cut = loaded(function(f"%r: {slots} = list_split(%x, %k) {{axis={axis}, type=!{slots}}}\nreturn %r",
                          "%x: float64[N, M], %k: int64[K]"))  # fmt: skip
    x = np.arange(9.0).reshape(3, 3)
    made = same(cut, *([x, np.array(parts, np.int64)] for parts in PARTS))
    assert sum(isinstance(one, IndexError) for one in made) == 8
    join = loaded(function(
        f"%s: {slots} = list_new(%v, %v) {{type=!{slots}}}\n"
        f"%r: float64[N, M] = list_concat_tangent(%s, %k, %x) {{axis={axis}}}\nreturn %r",
        "%x: float64[N, M], %k: int64[K], %v: variant<unset | float64[None, None]>"))  # fmt: skip
    same(join, *([x, np.array(parts, np.int64), (1, x)] for parts in PARTS))


@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd_add"])
def test_coordinates_are_as_many_as_they_are_said_to_be(op: str) -> None:
    adds = op != "gather_nd"
    operands = "%x, %u, %i" if adds else "%x, %i"
    program = loaded(function(f"%y: float64[{'A, B, C' if adds else 'K, C'}] = {op}({operands}) {{depth=2}}\nreturn %y",
                              "%x: float64[A, B, C], %i: int64[K, D], %u: float64[K, E]"))  # fmt: skip
    x, plan = np.arange(24.0).reshape(2, 3, 4), NativePlan(program)
    assert plan.run([x, np.array([[1, 2]]), np.ones((1, 4))])[0].shape == (x.shape if adds else (1, 4))
    for places in ([[1, 2, 0]], [[1, 2, 0, 0]]):
        for run in (plan.run, lambda given: evaluate(program, given)):
            with pytest.raises(ValueError, match="broadcast"):
                run([x, np.array(places), np.ones((1, 4))])


def test_more_slots_than_memory_has_bytes_are_an_error() -> None:
    slots = "list<variant<unset | int8[0]>>"
    body = f"""%c: int8[] = constant() {{value=int8[](1)}}
%e: int8[A, 0] = full(%c, %n) {{shape=(none, 0)}}
%r: {slots} = list_unstack(%e) {{type=!{slots}}}
return %r"""
    plan = NativePlan(loaded(function(body, "%n: int")))
    assert len(plan.run([3])[0]) == 3
    for n in (2**59 + 1, (2**64 + 23) // 24, (2**64 + 31) // 32, (2**64 + 39) // 40):
        with pytest.raises((MemoryError, ValueError)):
            plan.run([n])


ANY = "variant<unset | float64[] | int64[]>"


def test_derivatives_of_different_alternatives_are_not_added() -> None:
    body = f"%y: {ANY} = optional_add(%a, %b)\nreturn %y"
    program = loaded(function(body, f"%a: {ANY}, %b: {ANY}"))
    one, two = (1, np.array(1.5)), (2, np.array(2))
    made = same(program, [one, one], [two, (0, None)], [(0, None), (0, None)], [one, two])
    assert made[0] == [(1, 3.0)]
    assert str(made[3]) == "derivatives of alternatives 1 and 2 cannot be added"


@pytest.mark.parametrize("t", ["int", "list<int>", "tuple<float>"])
def test_only_derivatives_are_added(t: str) -> None:
    with pytest.raises(FileFormatError, match="are no derivatives"):
        loaded(function(f"%y: {t} = optional_add(%a, %a)\nreturn %y", f"%a: {t}"))


def test_derivatives_of_known_shapes_that_differ_are_not_added() -> None:
    held = "variant<unset | float64[N]>"
    body = f"%v: {held} = variant_new(%x) {{type=!{held}, tag=1}}\n%s: float64[1] = optional_add(%v, %y)\nreturn %s"
    (error,) = same(loaded(function(body, "%x: float64[3], %y: float64[1]")), [np.ones(3), np.ones(1)])
    assert str(error) == "derivatives of shapes (3,) and (1,) cannot be added"


SQUARE = ("det", "slogdet", "inverse", "cholesky", "eigh", "eig", "lu", "matrix_exp", "adjugate")


@pytest.mark.parametrize("name", [name for name in SQUARE if name in REGISTRY and name != "lu"])
def test_matrices_that_only_the_run_tells_are_square(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_GUARD", "1")
    b = Builder()
    x = b.argument(TensorType(float64, (symbol("N"), symbol("M"), symbol("M"))))
    attributes = {"upper": False} if "upper" in REGISTRY[name].attributes else {}
    b.block.results = b.operation(name, [x], attributes).results
    data, arrays = to_json(Program({"main": b.block}))
    data["functions"]["main"]["arguments"][0][1] = "float64[N, M, K]"
    plan = NativePlan(from_json(data, arrays))
    for shape in ((2, 3, 2), (2, 2, 3), (3, 40, 50), (3, 50, 40), (2, 3, 0)):
        with pytest.raises(ValueError, match="broadcast"):
            plan.run([np.ones(shape)])


@pytest.mark.parametrize("t", ["none", "int"])
def test_there_are_no_zeros_like_a_constant(t: str) -> None:
    with pytest.raises(FileFormatError, match=f"there are no zeros like {t}"):
        loaded(function(f"%y: {t} = zeros_like(%a)\nreturn %y", f"%a: {t}"))
