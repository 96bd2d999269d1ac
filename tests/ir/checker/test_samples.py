"""Samples of every op, forged: where an operand has a type that the op itself refuses, the checker refuses it too.

The rules of the checker share nothing with those of the ops, so each is held against the other. An extent that does
not fit may also become a check of the run.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dy2st.dtypes import bool_, complex128, float32, float64, int64
from dy2st.errors import InvalidProgram
from dy2st.ir.builder import Builder
from dy2st.ir.checker.check import check
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Program
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.ir.verifier import verify
from dy2st.ops.core.base import Sample
from tests.ops.evaluate import emit
from tests.ops.test_registry import arguments, cases

DTYPES = (bool_, int64, float32, float64, complex128)
VALUES = (None, "x", True, -1, 0, 7, 2**40, 2.5, (), (0,), (0, 0), (9,), ((0, 0),), ((1,), (1,)), ((0, 0, 0),) * 2)


def forged(t: Type) -> Iterator[Type]:
    """Yield types that are not this one: of each dtype or kind, of a rank more or less, one axis longer."""
    if isinstance(t, ScalarType):
        yield from (ScalarType(kind) for kind in ("int", "float", "bool") if kind != t.kind)
    if not isinstance(t, TensorType):
        return
    yield from (TensorType(dtype, t.shape) for dtype in DTYPES if dtype is not t.dtype)
    yield TensorType(t.dtype, (*t.shape, 2))
    if t.shape:
        yield TensorType(t.dtype, t.shape[1:])
    for axis, extent in enumerate(t.shape):
        yield TensorType(t.dtype, (*t.shape[:axis], extent + 5, *t.shape[axis + 1 :]))


def program_of(op: OpDef, sample: Sample) -> Program:
    b = Builder()
    b.block.results = emit(b, op, arguments(b, op, sample, False), dict(sample.attributes))
    return Program({"main": b.block})


def kinds(types: Any) -> list[Any]:
    listed = [types] if isinstance(types, Type) else list(types)
    return [(t.dtype, t.rank) if isinstance(t, TensorType) else type(t) for t in listed]


def fits(op: Any, types: list[Type], attributes: dict[str, Any], given: list[Any]) -> bool:
    """Say whether the op takes these types, and gives results of the same dtypes and ranks."""
    try:
        return kinds(op.infer(*types, **attributes)) == given
    except Exception:
        return False


def held(op: Any, sample: Sample, forge: Callable[[Program], None]) -> bool:
    """Say whether a forged sample is refused, or checked by the run, if the op itself refuses its types."""
    program = program_of(op, sample)
    (made,) = program.block.operations
    given = kinds([v.type for v in made.results])
    forge(program)
    if fits(op, [v.type for v in made.operands], made.attributes, given):
        return True
    try:
        check(program)
    except InvalidProgram:
        return True
    added = [o for o in program.block.operations if o is not made]
    return bool(added) or op.can_raise([v.type for v in made.operands], made.attributes)


@pytest.mark.parametrize(("op", "sample"), cases())
def test_what_an_op_does_not_take_is_refused(op: OpDef, sample: Sample) -> None:
    check(program_of(op, sample))
    for i, value in enumerate(program_of(op, sample).block.arguments):
        for other in forged(value.type):

            def forge(program: Program, i: int = i, other: Type = other) -> None:
                program.block.arguments[i].type = other

            assert held(op, sample, forge), f"operand {i} as {other}"


@pytest.mark.parametrize(("op", "sample"), cases())
def test_attributes_that_an_op_does_not_take_are_refused(op: OpDef, sample: Sample) -> None:
    for name in sample.attributes:
        for other in VALUES:

            def forge(program: Program, name: str = name, other: Any = other) -> None:
                program.block.operations[0].attributes[name] = other

            assert held(op, sample, forge), f"{name}={other!r}"


@pytest.mark.parametrize(("op", "sample"), cases(lambda _, sample: any(type(x) is int for x in sample.operands)))
def test_a_tensor_is_no_number(op: OpDef, sample: Sample) -> None:
    for i, number in enumerate(sample.operands):
        if isinstance(number, (int, float)):
            program = program_of(op, sample)
            program.block.arguments[i].type = TensorType(float64, (2,))
            with pytest.raises(InvalidProgram):
                check(program)


@pytest.mark.parametrize(("op", "sample"), cases())
def test_operands_that_are_missing_are_refused(op: OpDef, sample: Sample) -> None:
    for left in (len(sample.operands) - 1, 0):
        program = program_of(op, sample)
        (made,) = program.block.operations
        if not made.operands:
            return
        del made.operands[left:]
        if not made.operands:
            with pytest.raises(InvalidProgram):
                verify(program)
        try:
            check(program)
        except InvalidProgram:
            continue
        verify(program)  # what passes is what the builder's verifier takes as well


@pytest.mark.parametrize(("op", "sample"), cases(lambda _, sample: len(sample.operands) > 0))
def test_operands_that_are_too_many_are_refused(op: OpDef, sample: Sample) -> None:
    for more in range(1, 4):
        program = program_of(op, sample)
        (made,) = program.block.operations
        made.operands += made.operands[-1:] * more
        try:
            check(program)
        except InvalidProgram:
            continue
        verify(program)
