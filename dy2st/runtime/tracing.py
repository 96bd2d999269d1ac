"""The Tracer is a Recorder that also runs Python: what converted code does with symbolic values ends here."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ops.base import Op
from dy2st.runtime.convert_if import Diverged, predicate, switch
from dy2st.runtime.log import MISSING, Key
from dy2st.runtime.recorder import Recorder
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.symbolic_range import SymbolicIterable
from dy2st.runtime.tensor import Tensor, needs_value
from dy2st.runtime.undefined import Undefined
from dy2st.runtime.variant import SymbolicList, Variant

CONTAINERS = (list, dict, set, deque)


class Tracer(Recorder):
    """Record a run of Python code."""

    def __init__(self, builder: Builder):
        super().__init__(builder)
        self.read: dict[Key, Any] = {}
        """What was read from real objects, under the key with which a write would hide it."""

    # ---- symbolic or not -------------------------------------------------------------------------------------------
    external: dict[int, Any]
    """Containers that were there before the trace, by id."""

    def is_symbolic(self, x: Any) -> bool:
        """Say whether only the run will tell the truth of `x`."""
        if isinstance(x, list):
            return isinstance(self.content(x), SymbolicList)
        return isinstance(x, (Tensor, Scalar, Variant, SymbolicList))

    def truth(self, x: Any) -> Any:
        """Return `bool(x)`, symbolic where x is."""
        if not self.is_symbolic(x):
            return bool(self.content(x))
        if isinstance(x, (list, SymbolicList)):
            content = self.content(x)
            return Scalar(self.emit("list_len", [content.value])) > 0
        value = predicate(self, x)
        return Scalar(value) if hasattr(value.type, "kind") else self.item(self.wrap(value))

    def as_scalar(self, x: Any) -> Scalar:
        """Return a number as a symbolic number."""
        return x if isinstance(x, Scalar) else Scalar(self.scalar(x))

    def both(self, condition: Any, more: Callable[[], Any]) -> Any:
        """Return `condition and more()`, symbolic where either is."""
        other = more()
        if not self.is_symbolic(other):
            return condition if other else False
        if not self.is_symbolic(condition):
            return other if condition else False
        return self.truth(condition) & self.truth(other)

    def apply_to_variants(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        at = next(i for i, x in enumerate(operands) if isinstance(x, Variant))
        return switch(
            self,
            operands[at],
            lambda x: self.apply(op, (*operands[:at], x, *operands[at + 1 :]), attributes),
        )

    # ---- the log ---------------------------------------------------------------------------------------------------
    def current(self, key: Key) -> Any:
        """Return what stands under a key now: the last write, or what the real object has."""
        found = self.log.get(key)
        return self.original(key) if found is MISSING else found

    def original(self, key: Key) -> Any:
        """Return what the real object has under a key."""
        if key[0] == "rng":
            return Scalar(self.rng_draw())
        owner = self.log.objects[key[1]]
        if key[0] == "data":
            return self.wrap(self.value_of(owner), owner.stop_gradient)
        if key[0] == "grad":
            return owner._grad
        if key[0] in ("items", "tail"):
            return [] if key[0] == "tail" else copy.copy(owner)
        return self.real_attribute(owner, key[2])

    def real_attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a real object, the placeholder when it has none."""
        try:
            return getattr(owner, name)
        except AttributeError:
            return Undefined(name)

    def commit_joined(self, key: Key, value: Any) -> None:
        """Write what the blocks of a branch or loop left under a key."""
        self.log.set(key, self.log.objects.get(key[1]) if len(key) > 1 else None, value)

    def content(self, x: Any) -> Any:
        """Return the content of a container as it stands in the trace; anything else is its own content."""
        if not isinstance(x, CONTAINERS):
            return x
        found = self.log.get(("items", id(x)))
        return x if found is MISSING else found

    def writable(self, x: Any) -> Any:
        """Return a copy of a container's content that the innermost block may change and hand to `store`."""
        return copy.copy(self.content(x))

    def store(self, x: Any, content: Any) -> None:
        """Write the content of a container."""
        self.log.set(("items", id(x)), x, content)

    def iterate(self, x: Any) -> Iterable[Any]:
        """Return a Python iterable over `x` as it stands in the trace."""
        content = self.content(x)
        if isinstance(content, SymbolicList | SymbolicIterable):
            raise needs_value("only the run will tell how long this is, so Python cannot run through it")
        if isinstance(content, Tensor):
            if not isinstance(content.shape[0], int):
                raise needs_value("only the run will tell how long this tensor is, so Python cannot run through it")
            return [content[i] for i in range(content.shape[0])]
        return list(content) if isinstance(content, (list, dict, set, deque)) else content

    def checkpoint(self) -> Any:
        """Remember where the trace stands."""
        return self.builder.checkpoint(), dict(self.log.overlays[-1])

    def rollback(self, mark: Any) -> None:
        """Forget what was recorded since `mark`."""
        self.builder.rollback(mark[0])
        self.log.overlays[-1].clear()
        self.log.overlays[-1].update(mark[1])

    def in_control_flow(self) -> bool:
        """Say whether the trace stands inside of a branch or loop."""
        return self.builder is not self.root

    def diverge(self) -> None:
        """End the branch that is being traced: what follows never runs."""
        raise Diverged

    def convert(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose control flow is recorded; the plain recorder runs it as it is."""
        return function
