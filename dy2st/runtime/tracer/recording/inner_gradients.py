"""Gradients that a Program computes inside of itself: they are appended to what it does, through the blocks around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.autodiff.refusal import where_it_ends
from dy2st.autodiff.reverse import Cotangents, accumulate, pull_back
from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.ir.program import Value
from dy2st.ir.types import ListType, TupleType, VariantType, is_optional
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.side_effect_log import SideEffectLog
from dy2st.runtime.tracer.recording.leaf_gradients import added_to_gradient, as_gradient
from dy2st.runtime.tracer.values.trace import Values


class RecordedGradients(Values):
    """The part of a recorder that differentiates what was recorded."""

    log: SideEffectLog
    freed: set[Value]
    """Values whose history a backward pass of the Program's frees, as it does in eager mode."""
    gradient_so_far: Callable[[Tensor], Any]

    def grad(
        self, outs: Sequence[Tensor], ins: Sequence[Tensor], seeds: Sequence[Tensor | None], blocked: Sequence[Tensor],
        allow_unused: bool = False,
    ) -> list[Any]:  # fmt: skip
        """Append the gradients of `outs` with respect to `ins`; None where there is none.

        What only an untaken branch used has zeros, or with `allow_unused` one of None and a tensor.
        """
        cts: Cotangents = {}
        for out, seed in zip(outs, seeds, strict=True):
            value = self.builder.use(self.value_of(out))
            ct = self.value_of(seed) if seed is not None else self.builder.emit("ones_like", [value])
            cts[value] = accumulate(self.builder, cts.get(value), ct)
        stop = {self.value_of(t) for t in blocked}
        found = self.pull(cts, [self.value_of(t) for t in ins], stop)
        return [self._gradient(ct, x, allow_unused) for ct, x in zip(found, ins, strict=True)]

    def why_none(self, outs: Sequence[Tensor], x: Tensor) -> str:
        """Say why outputs have no gradient at `x`."""
        root, ends = self.value_of(x), [self.builder.use(self.value_of(out)) for out in outs]
        found = where_it_ends(root.block, root, ends)
        if found is None:
            return "no output depends on it"
        place = f" (at {found.location})" if found.location is not None else ""
        return f"'{found.name}'{place} has no derivative"

    def _gradient(self, ct: Value | None, x: Tensor, allow_unused: bool) -> Any:
        if ct is None:
            return None
        if allow_unused and is_optional(ct.type):
            return as_gradient(self, ct)
        return self.wrap(self._dense(ct, self.value_of(x)), False)

    def _dense(self, ct: Value, like: Value) -> Value:
        return self.builder.emit("variant_or_zeros", [ct, like], {"tag": 1}) if is_optional(ct.type) else ct

    def pull(self, cts: Cotangents, roots: Sequence[Value], stop: set[Value]) -> list[Value | None]:
        """Pull cotangents back to `roots` through this block and the blocks around it."""
        b, level = self.builder, self.builder
        totals: dict[Value, Value] = {}
        while True:
            inside = [v for v in roots if v.block is level.block]
            entries = dict(level.captures)
            carried = [] if level.parent is None else self._carried(level, {*inside, *entries.values(), *stop}, cts)
            wanted = [
                *inside,
                *(a for v, a in entries.items() if a not in stop and self._leads_on(level, v, roots)),
                *carried,
            ]
            pulled = pull_back(b, level.block, wanted, cts, blocked=stop)
            if any(v in pulled for v in carried):
                raise error_here(
                    StructureError, "a derivative inside of a loop goes back to what an earlier turn computed"
                )
            for v in inside:
                if v in pulled:
                    totals[v] = pulled[v]
            if level.parent is None:
                return [totals.get(v) for v in roots]
            # a block around captures what comes from further out too
            cts = {level.parent.use(outer): pulled[a] for outer, a in entries.items() if a in pulled}
            level = level.parent

    def _leads_on(self, level: Builder, outer: Value, roots: Sequence[Value]) -> bool:
        """Return whether a gradient is wanted of what a block captures: not of an argument through which none flows."""
        while level.parent is not None and outer.operation is None:
            level = level.parent
            outer = next((v for v, a in level.captures.items() if a is outer), outer)
        return (
            outer.block is not self.root.block or outer.operation is not None or outer in self.needs or outer in roots
        )

    def _carried(self, level: Builder, known: set[Value], cts: Cotangents) -> list[Value]:
        """Return the other arguments of a block through which a gradient flows: what earlier iterations of a loop
        gave.
        """
        others = [v for v in level.block.arguments if v not in known]
        return [v for v in others if v in self.needs or self._holds(level, v, cts)]

    def _holds(self, level: Builder, value: Value, cts: Cotangents) -> bool:
        """Return whether a list or the like is one of which something is read that needs a gradient."""
        if not isinstance(value.type, (ListType, TupleType, VariantType)):
            return False
        if value in cts:  # a block inside of this one, which is not closed yet, reads it
            return True
        read = (o for o in level.block.operations if value in o.operands)
        return any(result in self.needs for operation in read for result in operation.results)

    def backward(self, outs: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> list[Tensor]:
        """Append the gradients of `outs` at leaves that need one, add them to the leaves' gradients; return these."""
        places = [(t, v) for t in self.leaves() if not self.stops(t) for v in self.leaf_values(t)]
        cts: Cotangents = {}
        for out, seed in zip(outs, seeds, strict=True):
            value = self.builder.use(self.value_of(out))
            ct = self.value_of(seed) if seed is not None else self.builder.emit("ones_like", [value])
            cts[value] = accumulate(self.builder, cts.get(value), ct)
        met: list[Tensor] = []
        for (leaf, _), ct in zip(places, self.pull(cts, [v for _, v in places], set()), strict=True):
            if ct is not None:
                met.append(leaf)
                self.log.set(("grad", id(leaf)), leaf, added_to_gradient(self, self.gradient_so_far(leaf), ct))
        return met

    def free(self, outs: Sequence[Tensor]) -> None:
        """Note that gradients were pulled back from `outs` and will not be again.

        The same holds for what they are linear in, a loss that was scaled or summed. Behind other operations eager mode
        may not come; nor where a branch decides, outside of the branch.
        """
        for out in outs:
            made = (v for v in self._linear_in(self.value_of(out)) if v.operation is not None)
            self.freed.update(v for v in made if v.block is self.builder.block)

    def _linear_in(self, value: Value) -> set[Value]:
        """Return a value and what it is linear in, as far as gradients flow."""
        found: set[Value] = set()
        pending = [value]
        while pending:
            value = pending.pop()
            if value in found or value not in self.needs:
                continue
            found.add(value)
            if value.operation is not None and isinstance(value.operation.op, Op):
                operands = value.operation.operands
                pending += [operands[i] for i in value.operation.op.linear_operands(len(operands))]
        return found

    def leaves(self) -> list[Tensor]:
        """Return the tensors from outside that this Program reads."""
        return []

    def leaf_values(self, t: Tensor) -> list[Value]:
        """Return the values as which a leaf entered the Program and the loops that write it."""
        return [self.value_of(t)]
