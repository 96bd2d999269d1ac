"""What is said of derivatives that are not there: an operation without a rule, a way that ends before it arrives."""

from __future__ import annotations

from collections.abc import Collection

from dy2st.autodiff.activity import active_results
from dy2st.errors import StructureError
from dy2st.ir.location import error_at
from dy2st.ir.program import Block, Operation, Value
from dy2st.ops.core.base import Op
from dy2st.ops.core.constant import Detach


def no_rule(operation: Operation) -> StructureError:
    """Return the error for a derivative that would go through `operation`."""
    return error_at(
        StructureError, operation.location, f"a derivative goes through '{operation.name}', for which there is no rule"
    )


def where_it_ends(block: Block, root: Value, ends: Collection[Value]) -> Operation | None:
    """Return the first operation between `root` and `ends` through which no derivative passes, None where none is."""
    leading, needed = set[Operation](), set(ends)
    for operation in reversed(block.operations):
        if not needed.isdisjoint(operation.results):
            leading.add(operation)
            needed.update(operation.operands)
    active = {root}
    for operation in block.operations:
        if operation not in leading or active.isdisjoint(operation.operands):
            continue
        flags = active_results(operation, active)
        if not any(flags):
            users = (o for o in block.operations if o in leading and operation.results[0] in o.operands)
            after = next(users, operation)  # what needs no gradient takes its operands detached
            return operation if not isinstance(operation.op, Detach) or _has_derivative(after) else after
        active.update(v for v, on in zip(operation.results, flags, strict=True) if on)
    return None


def _has_derivative(operation: Operation) -> bool:
    return not isinstance(operation.op, Op) or operation.op.differentiable
