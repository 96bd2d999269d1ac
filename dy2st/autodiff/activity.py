"""Which values of a block depend, differentiably, on given ones."""

from __future__ import annotations

from collections.abc import Iterable

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import is_differentiable
from dy2st.ops.core.base import Op


def active_values(block: Block, roots: Iterable[Value]) -> set[Value]:
    """Return the values of `block` through which a derivative with respect to `roots` can flow, roots included."""
    active = {v for v in roots if is_differentiable(v.type)}
    for operation in block.operations:
        if any(v in active for v in operation.operands):
            active.update(v for v, on in zip(operation.results, active_results(operation, active), strict=True) if on)
    return active


def active_results(operation: Operation, active: set[Value]) -> list[bool]:
    """Say for each result whether it is active when the operands in `active` are."""
    results = [is_differentiable(v.type) for v in operation.results]
    if isinstance(operation.op, Op) and not operation.op.differentiable:
        return [False] * len(results)
    if operation.op.is_branch:
        inner = [active_values(b, _arguments(operation, b, active, 1)) for b in operation.blocks]
        flags = [[v in s for v in b.results] for b, s in zip(operation.blocks, inner, strict=True)]
        return [r and any(f[i] for f in flags) for i, r in enumerate(results)]
    if operation.op.is_loop:
        entering = active_carried(operation, active)
        return [r and on for r, on in zip(results, entering, strict=True)]
    return results


def active_carried(operation: Operation, active: set[Value]) -> list[bool]:
    """Say for each carried value of a loop whether it is active at any iteration."""
    body, offset = operation.blocks[0], 1 if operation.op.is_counted else 0
    carried: int = operation.attributes["carried"]
    on = [v in active for v in operation.operands[1 : 1 + carried]]
    fixed = [v in active for v in operation.operands[1 + carried :]]
    leaving = body.results if operation.op.is_counted else body.results[1:]
    while True:
        roots = [a for a, flag in zip(body.arguments[offset:], [*on, *fixed], strict=True) if flag]
        inner = active_values(body, roots)
        after = [was or v in inner for was, v in zip(on, leaving, strict=True)]
        if after == on:
            return on
        on = after


def _arguments(operation: Operation, block: Block, active: set[Value], skip: int) -> list[Value]:
    return [a for a, v in zip(block.arguments, operation.operands[skip:], strict=True) if v in active]
