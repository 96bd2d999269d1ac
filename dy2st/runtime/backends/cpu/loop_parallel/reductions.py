"""What a loop carries as a sum over rows: each thread adds up its own rows, and the sums are added in the end.

    while t > 0:
        dw = dw + x[t].T @ dz       # nobody reads dw before the loop ends
        db = db + dz.sum(0)

So are gradients of weights in a backward loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import TensorType
from dy2st.ops.elementwise.arithmetic import Add
from dy2st.ops.linalg.matmul import MatMulAdd
from dy2st.ops.reduce.reduction import Sum
from dy2st.ops.shape.shape import SumTo
from dy2st.records import record
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers
from dy2st.runtime.backends.cpu.loop_parallel.axis_propagation import AxisClasses, Node, axes_of

_DTYPES = ("float32", "float64")


@record(frozen=True)
class CarriedSum:
    """Which of the carried values it is, the operations that add to it, and the axes that they sum over."""

    place: int
    operations: list[Operation]
    rows: list[Node]


def sums_of(loop: Operation) -> Iterator[CarriedSum]:
    """Yield the sums that a loop carries: each iteration adds to them, and does nothing else with them."""
    (body,), first = loop.blocks, int(loop.op.is_counted)
    uses = Counter(v for operation in body.operations for v in operation.operands) + Counter(body.results)
    carried = body.arguments[first : first + loop.attributes["carried"]]
    for place, (total, following) in enumerate(zip(carried, body.results[1 - first :], strict=True)):
        t, adds = total.type, following.operation
        if not isinstance(t, TensorType) or t.dtype.name not in _DTYPES or in_registers(t):
            continue
        if adds is None or uses[total] != 1 or uses[following] != 1 or total not in adds.operands:
            continue
        found = _product(adds, total) if isinstance(adds.op, MatMulAdd) else _plain(adds, total, uses)
        if found is not None:
            yield CarriedSum(place, *found)


def _product(adds: Operation, total: Value) -> tuple[list[Operation], list[Node]] | None:
    x, y, onto = adds.operands
    if onto is not total or len(axes_of(total)) != 2:
        return None
    rows = [(x, int(not adds.attributes["transpose_x"])), (y, int(bool(adds.attributes["transpose_y"])))]
    return [adds], rows


def _plain(adds: Operation, total: Value, uses: Counter[Value]) -> tuple[list[Operation], list[Node]] | None:
    """Return how a sum over the first axis is added; None for anything else."""
    if not isinstance(adds.op, Add):
        return None
    (more,) = [v for v in adds.operands if v is not total] or [total]
    made = more.operation
    if made is None or uses[more] != 1 or not isinstance(made.op, (Sum, SumTo)) or more.type != total.type:
        return None
    x = made.operands[0]
    if isinstance(made.op, Sum) and (made.attributes["axis"] != (0,) or made.attributes["keepdim"]):
        return None
    if not isinstance(x.type, TensorType) or axes_of(x)[1:] != axes_of(more) or x.type.dtype is not more.type.dtype:  # type: ignore[union-attr]
        return None
    return [made, adds], [(x, 0)]


def tie_sum(ties: AxisClasses, one: CarriedSum) -> None:
    """Tie the axes that a sum is over, and mix all others."""
    for operation in one.operations:
        for value in (*operation.operands, *operation.results):
            others = [axis for axis in range(len(axes_of(value))) if (value, axis) not in one.rows]
            if others:
                ties.mix(value, *others)
    for node in one.rows[1:]:
        ties.tie(one.rows[0], node)
