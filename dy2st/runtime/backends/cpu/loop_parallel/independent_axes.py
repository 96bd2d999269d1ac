"""Which axes in a loop are kept apart: one place of such an axis has nothing to do with another, iteration after
iteration.

    while t < n:                    rows of h, of x[t], of the products and of the gates are one class of axes
        h = tanh(x[t] @ w + h @ u)  that no operation mixes; those of w and u are mixed by the products

Axes are put into classes, as operations tie them to each other (axis_propagation.py). An axis that an operation sums
over, cuts, counts or hands to anything that is not known is mixed, and so is its class. What a loop carries as a sum
over rows (reductions.py) is the exception: it has no axis of the class, and threads add up sums of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ListType, ScalarType, TensorType
from dy2st.ops.control.control_flow import Assert
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import as_part, in_nests, in_registers, owners
from dy2st.runtime.backends.cpu.loop_parallel.axis_propagation import AxisClasses, Node, axes_of, tie_loop
from dy2st.runtime.backends.cpu.loop_parallel.reductions import CarriedSum, sums_of, tie_sum
from dy2st.shapes import Dim


def independent_axes(loop: Operation) -> dict[Value, int] | None:
    """Return axes, one of each tensor that a loop carries, whose places do not meet; None where there are none.

    A carried tensor without such an axis is a sum over these places. Other values have an axis of the same class or
    none; a number that is the extent of such an axis has 0.
    """
    if not _is_cut_easily(loop) or any(_is_observed(o) for o in loop.blocks[0].walk()):
        return None
    sums = list(sums_of(loop))
    found = _kept_apart(loop, sums)
    return found if found is not None or not sums else _kept_apart(loop, ())


def _kept_apart(loop: Operation, sums: Sequence[CarriedSum]) -> dict[Value, int] | None:
    """Return such axes, where these are the sums."""
    ties = AxisClasses()
    tie_loop(ties, loop, [operation for one in sums for operation in one.operations])
    for one in sums:
        tie_sum(ties, one)
    added = {loop.results[one.place] for one in sums}
    for first in loop.results:
        if isinstance(first.type, TensorType) and not in_registers(first.type) and first not in added:
            classes = (_class(ties, loop, (first, axis), sums) for axis in range(len(axes_of(first))))
            return next((found for found in classes if found is not None), None)
    return None


def _is_observed(operation: Operation) -> bool:
    """Return whether a run may not begin again after it, or what is inside is not looked into."""
    op = operation.op
    return op.effect or op.is_call or op.is_try or isinstance(op, Assert)


def _class(ties: AxisClasses, loop: Operation, node: Node, sums: Sequence[CarriedSum]) -> dict[Value, int] | None:
    """Return the class of an axis, where it may be cut; a value has at most one axis of it."""
    if ties.is_mixed(node):
        return None
    found: dict[Value, int] = {}
    for value, axis in ties.members(node):
        extent = axes_of(value)[axis]
        if value in found or not (extent is None or isinstance(extent, Dim)) or not _is_copied(value):
            return None
        found[value] = axis
    carried, added = loop.attributes["carried"], {one.place for one in sums if ties.are_tied(one.rows[0], node)}
    for place, (operand, result) in enumerate(zip(loop.operands[1 : carried + 1], loop.results, strict=True)):
        cut = result in found
        if place in added and not cut:
            continue
        if isinstance(result.type, ScalarType) and cut:
            return None
        if not _is_alike(result) and not (cut and operand in found):
            return None
    if any(isinstance(v.type, ListType) and found.get(v) for v in loop.operands):
        return None  # elements are cut along their first axis
    return found


def _is_copied(value: Value) -> bool:
    """Return whether loop nests can copy some rows of a value, as parts do of what they begin with."""
    return not isinstance(value.type, TensorType) or in_nests(value.type.dtype)


def _is_alike(value: Value) -> bool:
    """Return whether a value, which no row went into, is numbers that own no memory."""
    t = value.type
    return in_registers(t) or (isinstance(t, ListType) and not any(True for _ in owners(as_part(t.element))))


def _is_cut_easily(loop: Operation) -> bool:
    """Return whether tensors, numbers and lists of these are all that comes in and out."""
    types = (v.type.element if isinstance(v.type, ListType) else v.type for v in (*loop.operands, *loop.results))
    return all(isinstance(t, (TensorType, ScalarType)) for t in types)
