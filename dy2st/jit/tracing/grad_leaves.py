"""Leaves of a trace: the tensors to which a `backward` inside of the traced function gives gradients.

These are tensors from outside, arguments of the call, and tensors that the function makes with stop_gradient=False. A
leaf that a loop writes enters each iteration as another value, so a leaf may have several values to pull cotangents
back to.

What backward adds to the gradient of an argument is added to the argument of each call. Where the function itself reads
that gradient, the Program takes it to be None before the call (`grad_free`), which is checked for each call; so is
that tensors from outside to which the function pulls gradients back have no hooks (`unhooked`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from dy2st.errors import TraceError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.ir.program import Value
from dy2st.jit.guards.guards import ArgumentSlot, StateSlot
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.recording.requires_grad_check import refuse_unsettled
from dy2st.runtime.tracer.tracer import Tracer
from dy2st.runtime.tracer.values.sentinels import MISSING, Key


class GradLeaves(Tracer):
    """The part of a trace that knows its leaves."""

    slots: dict[int, tuple[StateSlot | str, Value, Tensor | None]]
    arguments: dict[int, ArgumentSlot]

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self.entries: dict[int, list[Value]] = {}
        """By id of a leaf: the values as which it enters loops that write it."""
        self.made_leaves: dict[int, Tensor] = {}
        self.grad_free: set[int] = set()
        """The arguments, by number, that must have no gradient before a call."""
        self.unhooked: set[int] = set()
        """The tensors from outside, by id, whose hooks a gradient inside of the function would pass by."""
        self.summed: set[int] = set()
        """The arguments (by id) of which the log has what backward added to their gradient, not the whole."""

    def is_argument(self, x: Any) -> bool:
        """Return whether the caller of what is traced holds a tensor."""
        return id(x) in self.arguments

    def is_leaf(self, t: Tensor) -> bool:
        if self.stops(t) or not isinstance(t.payload, Value):
            return super().is_leaf(t)
        return id(t) in self.slots or id(t) in self.arguments or id(t) in self.made_leaves

    def leaves(self) -> list[Tensor]:
        outside = [t for _, _, t in self.slots.values() if t is not None]
        arguments = [self.log.objects[i] for i, slot in self.arguments.items() if slot.kind == "leaf"]
        found = list({id(t): t for t in (*outside, *arguments, *self.made_leaves.values())}.values())
        self._note_pulled(found)
        return found

    def grad(
        self, outs: Sequence[Tensor], ins: Sequence[Tensor], seeds: Sequence[Tensor | None], blocked: Sequence[Tensor],
        allow_unused: bool = False,
    ) -> list[Any]:  # fmt: skip
        self._note_pulled(ins)
        return super().grad(outs, ins, seeds, blocked, allow_unused)

    def _note_pulled(self, leaves: Sequence[Tensor]) -> None:
        """Refuse hooks of tensors to which gradients are pulled; note those that must have none at other calls."""
        pulled = [t for t in leaves if not self.stops(t)]
        if any(t.leaf_hooks for t in pulled):
            raise hook_refused()
        self.unhooked.update(map(id, pulled))

    def leaf_values(self, t: Tensor) -> list[Value]:
        slot = self.slots.get(id(t))
        first = slot[1] if slot is not None else t.payload
        return [first, *self.entries.get(id(t), ())]

    def commit_joined(self, key: Key, value: Any) -> None:
        super().commit_joined(key, value)
        if key[0] == "data" and isinstance(value, Tensor) and value.payload in self.builder.block.arguments:
            self.entries.setdefault(key[1], []).append(value.payload)

    def note_leaf(self, t: Tensor) -> None:
        """Note a tensor that was given stop_gradient=False."""
        if id(t) not in self.slots and isinstance(t.payload, Value):
            self.log.keep(t)
            self.made_leaves[id(t)] = t
            self.needs.add(t.payload)

    def set_stop_gradient(self, t: Tensor, stop: bool) -> None:
        """Do `t.stop_gradient = stop` in converted code."""
        if not isinstance(t.payload, Value):
            if t.stop_gradient != stop:
                raise _refused("stop_gradient of a tensor from outside is changed by a function of Programs")
            return
        if t.stop_gradient != stop and t.payload.block is not self.builder.block:
            raise _refused(  # what is behind the branch would not know whether it was set
                "stop_gradient of a tensor is changed in a branch or loop on tensors, which did not make it",
                "take `x = x.detach()` there",
            )
        if stop and not t.stop_gradient and self.builder.block is not self.root.block:
            t.payload = self.emit("detach", [t.payload])  # whatever it is joined with
        if not stop and self.mixed:
            refuse_unsettled(self, t)  # it becomes a leaf on some ways only
        becomes_leaf, t.stop_gradient = t.stop_gradient and not stop, stop
        if id(t) in self.arguments:
            self.log.set(("attr", id(t), "stop_gradient"), t, stop)
        if becomes_leaf:
            self.note_leaf(t)

    def refuse_leaving(self, results: Collection[Value]) -> None:
        """Refuse to give a caller a leaf that the function makes: gradients from outside do not come to it."""
        own = (t for i, t in self.made_leaves.items() if i not in self.arguments and not t.stop_gradient)
        if any(t.payload in results for t in own):
            raise _refused("a tensor that was given stop_gradient=False in the function leaves it")

    # ---- gradients of arguments ------------------------------------------------------------------------------------
    def read_grad(self, t: Tensor) -> Tensor | None:
        if id(t) in self.arguments and (id(t) in self.summed or self.log.get(("grad", id(t))) is MISSING):
            self.grad_free.add(self.arguments[id(t)].index)
        return super().read_grad(t)

    def gradient_so_far(self, t: Tensor) -> Any:
        if id(t) not in self.arguments:
            return super().read_grad(t)
        found = self.log.get(("grad", id(t)))
        if found is MISSING:
            self.summed.add(id(t))
            return None
        return found

    def write_grad(self, t: Tensor, grad: Tensor | None) -> None:
        missing = self.log.get(("grad", id(t))) is MISSING
        if id(t) in self.arguments and (id(t) in self.summed or not missing or len(self.log.overlays) > 1):
            self.grad_free.add(self.arguments[id(t)].index)
        super().write_grad(t, grad)

    def register_hook(self, t: Tensor, hook: Callable[..., Any]) -> Any:
        """Refuse: a Program has no tape on which a hook could be called."""
        raise _refused(
            "register_hook() inside of a function of Programs", "change a gradient with a paddle.autograd.PyLayer"
        )


def hook_refused() -> TraceError:
    """Return the refusal of a gradient that comes to a tensor with a hook."""
    return _refused("backward() inside of a function of Programs passes by the hook of a tensor")


def _refused(message: str, hint: str | None = None) -> TraceError:
    return error_here(TraceError, message, hint)
