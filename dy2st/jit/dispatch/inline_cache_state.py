"""The part of a function that recognises calls which reads the state of its Program and asks its guards.

It is written first of all, so it has what both parts write with: lines, constants that are closed over by name.
"""

from __future__ import annotations

from typing import Any

from dy2st.ir.types import TensorType
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.dispatch.eager_replay import note_unwritten
from dy2st.jit.dispatch.inline_cache_epilogue import NAMES
from dy2st.jit.dispatch.inline_cache_run import UNSEEN, ProgramInputs, unknown, unseen
from dy2st.jit.guards.behavior_guards import InstanceOverride
from dy2st.jit.guards.call_signature import shares_memory
from dy2st.jit.guards.guards import AliasGuard, GlobalSlot, Guard, ItemSlot, LayerGuard, StateSlot, same
from dy2st.jit.guards.watched_guards import GuardBatch
from dy2st.jit.guards.watched_guards import unknown as unwatched
from dy2st.kinds import type_of
from dy2st.nn.layer import Layer
from dy2st.runtime.backends.donation import DonatedInputs
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.absent_attributes import users_getattr
from dy2st.runtime.tracer.values.sentinels import MISSING


class NotCacheable(Exception):
    """Something that generated code cannot recognise."""


class StateLines:
    """Writes lines that read state and check guards; constants are closed over by name."""

    def __init__(self, program: ConcreteProgram, arguments: int, failed: Any):
        self.program, self._arguments = program, arguments
        self.names: dict[str, Any] = {**NAMES, "MISSING": MISSING, "UNSEEN": UNSEEN, "unseen": unseen,
                                      "note_unwritten": note_unwritten, "program": program, "same": same,
                                      "shares_memory": shares_memory, "Handed": DonatedInputs, "known": unknown,
                                      "written": None, "watched": unwatched, "failed": failed}  # fmt: skip
        self.lines: list[str] = []
        self.inputs = ProgramInputs()
        self.dicts: dict[str, str] = {}
        """The variables that hold the attributes of layers."""
        self.layers: dict[int, str] = {}
        """The names of layers, each of which has one."""

    def constant(self, x: Any) -> str:
        if isinstance(x, Layer) and id(x) in self.layers:
            return self.layers[id(x)]
        name = f"c{len(self.names)}"
        self.names[name] = x
        if isinstance(x, Layer):
            self.layers[id(x)] = name
        return name

    def variable(self, text: str) -> str:
        if text.isidentifier():
            return text
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def refuse(self, test: str, lines: list[str] | None = None) -> None:
        (self.lines if lines is None else lines).append(f"if {test}: return UNSEEN")

    def checked(self, v: str, x: Tensor, extents: dict[int, int]) -> None:
        """Let the tensor in `v` be an input that is looked at: whether it is of the kind of `x`."""
        array, inputs = x.payload, self.inputs
        p = inputs.tensor(v, type(x), x.stop_gradient)
        self.refuse(f"{v}.stop_gradient is not {x.stop_gradient}", inputs.looks)
        inputs.looks.append(f"{p} = {v}.payload")
        tests = [
            f"type({p}) is not {self.constant(type(array))}",
            f"{p}.dtype is not {self.constant(array.dtype)}",
            f"{p}.ndim != {array.ndim}",
            *(f"{p}.shape[{i}] != {e}" for i, e in extents.items()),
        ]
        self.refuse(" or ".join(tests), inputs.array_looks)

    def state(self) -> list[str]:
        """Check the guards; return the expressions of the state."""
        watch = GuardBatch()
        others = [guard for guard in self.program.traced.guards if not watch.takes(guard)]
        if watch.guards:
            self.lines.append(f"if not watched(): watched = {self.constant(watch.again)}()")
        for guard in [*others, *watch.beside()]:
            self.guard(guard)
        arguments = self.program.traced.program.block.arguments[self._arguments :]
        found: list[str] = []
        for (slot, t), argument in zip(self.program.traced.state, arguments, strict=True):
            if isinstance(slot, str):
                found.append(f"random_{slot}")
                self.inputs.plain(found[-1])
                continue
            v = self.variable(self.place(slot))
            found.append(v)
            if t is None:
                self.inputs.plain(v)
                continue
            self.refuse(f"not isinstance({v}, Tensor)", self.inputs.looks)
            if self._arguments + len(found) - 1 in self.program.traced.unhooked:
                self.refuse(f"{v}.leaf_hooks")
            kind = argument.type
            fixed = isinstance(kind, TensorType) and all(isinstance(e, int) for e in kind.shape)
            self.checked(v, t, dict(enumerate(kind.shape)) if fixed else {})  # type: ignore[union-attr]
        return found

    def place(self, slot: StateSlot) -> str:
        """Return the expression of what stands at a slot now."""
        owner = self.constant(slot.owner)
        if type(slot) is GlobalSlot:
            return f"{owner}.get({slot.name!r})"
        if type(slot) is ItemSlot:
            return f"{owner}[{self.constant(slot.name)}]"
        if type(slot) is not StateSlot:
            return f"{self.constant(slot)}.fetch()"
        return owner if slot.name is None else self.attribute(slot.owner, owner, slot.name)

    def attribute(self, x: Any, owner: str, name: str) -> str:
        if isinstance(x, Layer):
            if name == "training" and type(x).training is Layer.training:
                return f"{self.attributes(owner)}['_training']"
            for registry in ("_parameters", "_sub_layers", "_buffers"):
                if name in x.__dict__[registry]:
                    return f"{self.attributes(owner)}[{registry!r}].get({name!r}, MISSING)"
        if not name.isidentifier() or name.startswith("__"):
            raise NotCacheable
        return f"{owner}.{name}"

    def attributes(self, owner: str) -> str:
        """Return the attributes of a layer, a dict: its class has a `__getattr__`, which makes access by name slow."""
        if owner not in self.dicts:
            self.dicts[owner] = self.variable(f"{owner}.__dict__")
        return self.dicts[owner]

    def guard(self, guard: Any) -> None:
        if type(guard) is LayerGuard:
            self.layer(guard)
            return
        if type(guard) is Guard and (isinstance(guard.owner, type) or users_getattr(type_of(guard.owner)) is None):
            now = self.attribute(guard.owner, self.constant(guard.owner), guard.name)
        elif type(guard) is AliasGuard:
            self.refuse(f"{self.place(guard.slot)} is not {self.place(guard.first)}")
            return
        elif type(guard) is InstanceOverride:
            now = self.attributes(self.constant(guard.owner))
            self.refuse(f"{now}.get({guard.name!r}, MISSING) is not {self.constant(guard.value)}")
            return
        else:
            self.refuse(f"not {self.constant(guard.passes)}()")
            return
        value = self.constant(guard.value)
        self.refuse(f"{now} is not {value} and not same({now}, {value})")

    def layer(self, guard: LayerGuard) -> None:
        found = self.attributes(self.constant(guard.owner))
        registries = ("_sub_layers", "_forward_pre_hooks", "_forward_post_hooks")
        for registry, content in zip(registries, guard.content, strict=False):
            now = f"{found}[{registry!r}]"
            self.refuse(f"{now} != {self.constant(content)}" if content else now)
        for registry, content in zip(("_parameters", "_buffers"), guard.content[len(registries) :], strict=True):
            now = f"{found}[{registry!r}]"
            self.refuse(f"tuple({now}) != {self.constant(content)}" if content else now)
