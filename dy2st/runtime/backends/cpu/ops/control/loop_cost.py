"""How long a loop takes, roughly: a row in an iteration, by its products with matrices that stay and its functions;
turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ListType, TensorType
from dy2st.ops.control.scalar import ScalarLess
from dy2st.ops.shape.shape import DimOf
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import least, minus, most, plus, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, in_register
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import factors_outside
from dy2st.runtime.backends.cpu.vector_ops.elementwise import is_dear

_PRODUCT, _DEAR, _CHEAP = 300, 8_000, 300
"""Picoseconds of one operation on vectors: in a product, of a function, of arithmetic."""
_FLOAT, _COPIED = 4, 200
"""Bytes of an element, as most are, and picoseconds to copy one byte to memory that is not in cache."""
_ITERATIONS = 32
"""How many turns a loop is taken to have where nothing says so."""
_MOST_ITERATIONS = 1 << 20


def row_cost(
    f: LLVMFunction, loop: Operation, operands: Sequence[Components], axes: Mapping[Value, int], target: Target
) -> str:
    """Write how many picoseconds a row takes in an iteration."""
    given = dict(zip(loop.operands, operands, strict=True))
    lanes, total = target.lanes(_FLOAT), "0"
    for value, _ in factors_outside(loop):
        elements = times(f, *_extents(value, given[value]))
        total = plus(f, total, f.value(f"sdiv i64 {times(f, elements, _PRODUCT)}, {lanes}"))
    each = sum(_DEAR if is_dear(o.op) else _CHEAP for o in loop.blocks[0].walk() if _is_elementwise(o))
    work = f.value(f"sdiv i64 {times(f, _longest(f, loop, given, axes), each)}, {lanes}")
    return plus(f, total, work)


def join_cost(f: LLVMFunction, loop: Operation, operands: Sequence[Components], axes: Mapping[Value, int]) -> str:
    """Write how many picoseconds it takes to put together what a row of an iteration appends to lists."""
    lists = sum(isinstance(v.type, ListType) and v in axes for v in loop.results)
    given = dict(zip(loop.operands, operands, strict=True))
    return times(f, _longest(f, loop, given, axes), lists * _FLOAT * _COPIED)


def _longest(f: LLVMFunction, loop: Operation, given: Mapping[Value, Components], axes: Mapping[Value, int]) -> str:
    """Write how many elements a row has of the largest tensor that a loop carries."""
    longest = "1"
    for value in loop.operands[1 : loop.attributes["carried"] + 1]:
        if value in axes and isinstance(value.type, TensorType):
            beside = [e for i, e in enumerate(_extents(value, given[value])) if i != axes[value]]
            longest = most(f, longest, times(f, 1, *beside))
    return longest


def expected_iterations(f: LLVMFunction, loop: Operation, operands: Sequence[Components]) -> str:
    """Write how many turns a loop will have, or may have."""
    return counted_iterations(f, loop, operands) or str(_ITERATIONS)


def counted_iterations(f: LLVMFunction, loop: Operation, operands: Sequence[Components]) -> str | None:
    """Write how many turns a loop has that ends with its count, at least 1; None for another loop."""
    if loop.op.is_counted:
        return most(f, operands[0][0], 1)
    (body,), carried = loop.blocks, loop.attributes["carried"]
    order, following = body.results[0].operation, body.results[1:]
    if order is None or not isinstance(order.op, ScalarLess):
        return None
    counter, limit = order.operands
    if counter not in following or not all(v.type.kind == "int" for v in order.operands):  # type: ignore[union-attr]
        return None
    last = _before(limit, dict(zip(body.arguments[carried:], operands[1 + carried :], strict=True)))
    if last is None:
        return None
    return least(f, most(f, minus(f, last, operands[1 + following.index(counter)][0]), 1), _MOST_ITERATIONS)


def _before(number: Value, stays: Mapping[Value, Components]) -> str | None:
    """Return what a number of a loop's iterations is that can be told before the loop: one that stays, or its
    extent.
    """
    if number in stays:
        return stays[number][0]
    made = number.operation
    if made is None or not isinstance(made.op, DimOf) or made.operands[0] not in stays:
        return None
    return _extents(made.operands[0], stays[made.operands[0]])[made.attributes["axis"]]


def _extents(value: Value, components: Components) -> list[str]:
    return [str(e) if isinstance(e, int) else c for e, c in zip(tensor_type(value).shape, components[2:], strict=True)]


def _is_elementwise(operation: Operation) -> bool:
    made = operation.results
    return operation.op.elementwise and len(made) == 1 and not in_register(made[0].type)
