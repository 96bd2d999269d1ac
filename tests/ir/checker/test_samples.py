"""Samples of every op, forged: where an operand has a type that the op itself refuses, the checker refuses it too.

The rules of the checker share nothing with those of the ops, so each is held against the other. An extent that does
not fit may also become a check of the run.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from dy2st.dtypes import bool_, complex128, float32, float64, int64
from dy2st.errors import InvalidProgram
from dy2st.ir.builder import Builder
from dy2st.ir.checker.check import check
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, Type
from dy2st.ops.base import Sample
from tests.ops.evaluate import emit
from tests.ops.test_registry import arguments, cases

DTYPES = (bool_, int64, float32, float64, complex128)


def forged(t: Type) -> Iterator[Type]:
    """Yield tensor types that are not this one: of each dtype, of a rank more or less, one axis longer."""
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
    b.block.results = emit(b, op, arguments(b, op, sample, False), sample.attributes)
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


@pytest.mark.parametrize(("op", "sample"), cases())
def test_what_an_op_does_not_take_is_refused(op: OpDef, sample: Sample) -> None:
    program = program_of(op, sample)
    check(program)
    for i, value in enumerate(program.block.arguments):
        for other in forged(value.type):
            program = program_of(op, sample)
            made = program.block.operations[0]
            given = kinds([v.type for v in made.results])
            program.block.arguments[i].type = other
            types = [v.type for v in made.operands]
            if fits(op, types, made.attributes, given):
                continue
            try:
                check(program)
            except InvalidProgram:
                continue
            by_the_run = [o for o in program.block.operations if o is not made] or op.can_raise(types, made.attributes)
            assert by_the_run, f"operand {i} as {other}"
