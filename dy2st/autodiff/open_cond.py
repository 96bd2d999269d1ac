"""A guard: a `cond` of the backward program that is still open, so that more operations can be pulled back inside.

Before                                      After
    dy? = cond(%p) { set } { unset }            dx? = cond(%p) {
    dx? = cond(is_set(dy?)) {                       dy = ...
        dx = mul(get(dy?), y)                       dx = mul(dy, y)
    } { unset }                                 } { unset }

It is emitted when it closes: when a value has cotangents from both of its branches, or from outside of it as well. What
it then holds leaves it, dense where both branches have a cotangent of a value, else as an optional of which the
frontier remembers the predicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dy2st.autodiff.cotangents import Cotangents, branch_on, may_miss
from dy2st.autodiff.scatter import reads_part
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ListType

if TYPE_CHECKING:
    from dy2st.autodiff.reverse import Frontier

Flag = tuple[Value, int]
"""A predicate (or an optional cotangent, which stands for its being set) and the branch in which something is there."""


class OpenCond:
    """Two frontiers in the branches of a `cond` on `predicate`, which is emitted by `close`."""

    def __init__(self, outer: Frontier, key: Value, predicate: Value, sides: list[Frontier]):
        self.outer, self.key, self.predicate, self.sides = outer, key, predicate, sides
        self.before_close: Callable[[], None] | None = None
        """What stores the residuals of the branches, once it is known which they are."""
        self.location = outer.b.location
        self.lent: Cotangents = {}
        """Cotangents of lists that were taken from outside, so that the branches add to them."""

    def lend_lists(self, operation: Operation) -> None:
        """Move the cotangents of list operands into both branches, so that neither adds whole lists later.

        So it is with tensors of which the operation reads parts.
        """
        for value in operation.operands:
            if value in self.outer.cts and value not in self.lent:
                if not isinstance(value.type, ListType) and not reads_part(operation, value, self.outer.b.functions):
                    continue
                if any(side.reaches(value) for side in self.sides):
                    continue
                self.lend(value)

    def lend(self, value: Value) -> None:
        """Move one cotangent into both branches."""
        ct = self.lent[value] = self.outer.cts.pop(value)
        for side in self.sides:
            side.cts[value] = side.b.use(ct)
        self.outer.note(self, [value])

    def close(self) -> None:
        """Emit the `cond`; its cotangents go to the frontier around it."""
        outer = self.outer
        del outer.guards[self.key]
        for side in self.sides:
            side.close_all()
        then, other = self.sides
        values = list(dict.fromkeys([*then.cts, *other.cts]))
        left, right = ([side.cts.get(v) for v in values] for side in self.sides)
        if self.before_close is not None:
            self.before_close()
        for value in values:
            holders = outer.held[value]
            del holders[self]
            if not holders:
                del outer.held[value]
        before, outer.b.location = outer.b.location, self.location
        for side in self.sides:
            side.b.location = self.location
        found = branch_on(outer.b, self.predicate, then.b, other.b, left, right, [v.type for v in values])
        for value, ct, ours, theirs in zip(values, found, left, right, strict=True):
            one = theirs if ours is None else ours if theirs is None else None
            if ct is not None and one is not None and may_miss(ct, value) and not may_miss(one, value):
                outer.flags[ct] = (self.key, 0 if ours is not None else 1)
            outer.add(value, ct, fresh=True)
        outer.b.location = before
