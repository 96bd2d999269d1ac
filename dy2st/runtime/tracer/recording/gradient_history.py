"""What histories the values of a finished trace have: none, one that the Program has freed, or one to differentiate.

    %loss, ... = counted_while(%n, %zero, ...) {     %zero has no history, and every iteration leaves in %loss what it
    has
      body(%i, %before, ...) {                       pulled gradients back from: nobody can differentiate %loss, so
        ...                                          no turn keeps anything for that
        %g = ... the gradient of %last ...
        return %last, ...
      }
    }

Of tensors the trace knows whether a gradient flows through them; lists and variants have the histories of what they
were made of.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dy2st.ir.program import Block, Value
from dy2st.ir.types import TensorType, is_differentiable
from dy2st.ops.core.base import Op

_DEEPEST = 50
"""How many loops and branches that lead to each other are looked into; what is behind more counts as open."""


class GradientHistories:
    """The histories of values of a block, and of the blocks inside of it."""

    def __init__(self, block: Block, flowing: Collection[Value], freed: Collection[Value]):
        self._flowing, self._freed = flowing, freed
        self._found: dict[Value, bool] = {}
        """Of which values it is known whether they have none."""
        self._around = {inner: operation for operation in block.walk() for inner in operation.blocks}

    def has_none(self, value: Value) -> bool:
        """Return whether no gradient can flow through a result."""
        if isinstance(value.type, TensorType):
            return value not in self._flowing or not is_differentiable(value.type)
        return self._is_idle(value)

    def is_freed(self, value: Value) -> bool:
        """Return whether a result has lost the history that it had, whichever way it came."""
        return not self.has_none(value) and self._is_spent(value, set(), False, _DEEPEST)

    def _is_idle(self, value: Value) -> bool:
        """Return whether a value has no history, as far as what made it tells: not all values became tensors."""
        if value not in self._found:
            seen, pending = set[Value](), [value]
            while pending:
                v = pending.pop()
                if v in seen or self._found.get(v) or not is_differentiable(v.type):
                    continue
                seen.add(v)
                made_of = self._made_of(v)
                if made_of is None:
                    self._found[value] = False
                    return False
                pending += made_of
            self._found |= dict.fromkeys((value, *seen), True)
        return self._found[value]

    def _made_of(self, value: Value) -> Sequence[Value] | None:
        """Return what all has no history where a value has none; None where it has one."""
        if value in self._flowing or self._found.get(value) is False:
            return None
        ways, operation = self._ways(value), value.operation
        if ways is not None:
            return ways
        if operation is None:
            return () if isinstance(value.type, TensorType) else None
        if operation.blocks:
            return None
        return operation.operands if operation.op.differentiable else ()

    def _is_spent(self, value: Value, seen: set[Value], certainly: bool, deepest: int) -> bool:
        """Return whether a value was freed, or has no history unless it `certainly` is to be freed."""
        pending = [value]
        while pending:
            v = pending.pop()
            if v in self._freed:
                continue
            if v in seen or self._is_idle(v):
                if certainly:
                    return False
                continue
            seen.add(v)
            parts = self._parts(v)
            if parts is None and not self._is_linear_in_spent(v, seen, certainly, deepest):
                return False
            pending += parts or ()
        return True

    def _is_linear_in_spent(self, value: Value, seen: set[Value], certainly: bool, deepest: int) -> bool:
        """Return whether a tensor is linear in one that was freed: a sum cannot be differentiated where a term
        cannot.
        """
        pending, met = [(value, certainly)], set[Value]()
        while pending and deepest:
            v, certainly = pending.pop()
            if v in met:
                continue
            met.add(v)
            if v in self._freed:
                return True
            if self._parts(v) is not None:
                if self._is_spent(v, {*seen}, certainly, deepest - 1):
                    return True
            elif v.operation is not None and isinstance(v.operation.op, Op):
                op, operands = v.operation.op, v.operation.operands
                flowing = [x for i in op.linear_operands(len(operands)) if not self._is_idle(x := operands[i])]
                pending += [(x, certainly or len(flowing) > 1) for x in flowing]
        return False

    def _parts(self, value: Value) -> Sequence[Value] | None:
        """Return what all was freed where a value was: what it may be, or what a container holds; None for others."""
        ways, operation = self._ways(value), value.operation
        if ways is not None or isinstance(value.type, TensorType) or operation is None or operation.blocks:
            return ways
        return [v for v in operation.operands if not self._is_idle(v)]

    def _ways(self, value: Value) -> Sequence[Value] | None:
        """Return what a value may be that a loop or branches give, or that a block finds; None for others."""
        operation = value.operation
        if operation is None:
            return self._entering(value)
        at = operation.results.index(value) if operation.blocks else 0
        if operation.op.is_branch:
            return [block.results[at] for block in operation.blocks]
        if operation.op.is_loop:
            (body,) = operation.blocks
            return [operation.operands[1 + at], body.results[at + (not operation.op.is_counted)]]
        return None

    def _entering(self, value: Value) -> Sequence[Value] | None:
        around = self._around.get(value.block)
        if around is None or not (around.op.is_loop or around.op.is_branch):
            return None
        at = value.block.arguments.index(value) + (not around.op.is_counted)
        if at == 0:
            return None
        ways = [around.operands[at]]
        if around.op.is_loop and at <= around.attributes["carried"]:
            ways.append(around.blocks[0].results[at - (around.op.is_counted)])
        return ways
