"""What a trace looks at before something is read or changed that others may hold as well (alias_analysis.py)."""

from __future__ import annotations

from collections import deque
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here
from dy2st.ir.program import Value
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.borrow_tracking import Loans
from dy2st.runtime.tracer.effects.alias_analysis import Held
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, Contents
from dy2st.runtime.tracer.effects.escape_analysis import reached
from dy2st.runtime.tracer.recording.recorder import Recorder
from dy2st.runtime.tracer.values.container_classes import CONTENT, is_of_users_class, settings
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.unbound import Undefined
from dy2st.runtime.tracer.values.union import Variant


class HeldByOthers(Contents, Recorder):
    """Record writes such that all who hold what is written see them; refuse those of which the trace cannot know."""

    def __init__(self, builder: Builder):
        Contents.__init__(self)
        Recorder.__init__(self, builder)
        self.made_objects: dict[int, Any] = {}
        """Objects that exist in the trace only."""
        self.births: dict[int, Builder] = {}
        """Where these were made: they are there in that block and all inside of it."""
        self.remade: set[int] = set()
        """Those among them that were put together again of values: the run has the object itself elsewhere."""
        self.loans = Loans(self)

    def before_read(self, x: Any) -> None:
        if id(x) in self.loans.parts:
            self.loans.read(x)

    def before_store(self, x: Any) -> None:
        self.loans.moved(x)

    def after_store(self, x: Any) -> None:
        self.loans.wrote(x)

    def store_same(self, x: Any, content: Any) -> None:
        with self.loans.quiet():
            self.store(x, content)

    def lend(self, x: Any) -> None:
        super().lend(x)
        self.loans.lend(x)

    def log_attribute(self, x: Any, name: str, value: Any) -> None:
        """Write an attribute of an object into the log."""
        if id(x) in self.aliases.groups:
            self.before_write(x)
        self.log.set(("attr", id(x), name), x, value)
        if id(x) in self.made_objects:
            self.show_attribute(("attr", id(x), name), value)
        self.loans.wrote(x)

    def note_made(self, x: Any) -> None:
        """Note an object that the trace made here."""
        self.made_objects[id(x)] = x
        self.births[id(x)] = self.builder

    def made_around(self) -> set[int]:
        """Return the ids of the objects that the trace made in this block and in those around it."""
        around: set[int] = set()
        builder: Builder | None = self.builder
        while builder is not None:
            around.add(id(builder))
            builder = builder.parent
        return {i for i, builder in self.births.items() if id(builder) in around}

    def made_once(self) -> set[int]:
        """Return the ids of the objects that the trace made outside of any branch or loop: one each in every run."""
        return {i for i, builder in self.births.items() if builder is self.root and i not in self.remade}

    def attributes_of(self, x: Any) -> dict[str, Any]:
        """Return the attributes of an object as they stand in the trace."""
        found = attributes(x)
        for overlay in self.log.overlays:
            for key, value in overlay.items():
                if key[0] == "attr" and key[1] == id(x):
                    found[key[2]] = value
        return {name: value for name, value in found.items() if not isinstance(value, Undefined)}

    def made_of(self, x: Any) -> dict[str, Any]:
        """Return what an object is made of: its attributes and, where it is a container, itself as what it holds."""
        found = self.attributes_of(x)
        return {**settings(x), **found, CONTENT: x} if isinstance(x, CONTAINERS) else found

    def before_write(self, t: Any) -> None:
        """Raise StructureError where another name may hold a tensor, container or object too: it misses the write."""
        others = self.aliases.others(t)
        plain = "a tensor" if isinstance(t, (Tensor, Variant)) else "an object"
        what = "a container" if isinstance(t, CONTAINERS) else plain
        if self.aliases.is_held(t):
            reason = "a list, or a variable that may be something else, holds it as well"
        elif any(self._is_outside(x) or self.is_argument(x) for x in others) or (
            others and {id(x) for x in others} & reached(self)
        ):
            reason = f"another variable, item or attribute is the same {what.split()[1]}"
        else:
            return
        raise error_here(
            StructureError,
            f"{what} is changed in place, and only the run will tell whether {reason}",
            "change a copy of it",
        )

    def held(self, key: Any, x: Any, around: tuple[int, ...] = ()) -> Any:
        """Return the tensors and variants that a local variable, or what stands under a key of the log, leads to."""
        if isinstance(x, (Tensor, Variant)):
            skipped = isinstance(key, tuple) and (
                key[0] in ("data", "grad")
                or (key[0] == "attr" and self._is_outside(x))  # it belongs to its attribute, which gets another one
            )
            return None if skipped else x
        if id(x) in around:
            return None
        around = (*around, id(x))
        content = self.content(x) if isinstance(x, CONTAINERS) else x
        if isinstance(content, Variant):
            return Held(x, {0: content})
        items: dict[Any, Any] = {}
        if isinstance(content, (dict, list, tuple, deque)):
            pairs = content.items() if isinstance(content, dict) else enumerate(content)
            items = {k: self.held(None, i, around) for k, i in pairs}
        if is_of_users_class(x):
            items |= {(".", k): self.held(None, i, around) for k, i in self.attributes_of(x).items()}
        if isinstance(x, (*CONTAINERS, tuple)):
            return Held(x, items) if isinstance(x, CONTAINERS) else items
        if id(x) in self.made_objects:
            return Held(x, {k: self.held(None, i, around) for k, i in self.attributes_of(x).items()})
        return None

    def is_argument(self, x: Any) -> bool:
        """Say whether the caller of what is traced holds a tensor."""
        return False

    def is_from_outside(self, x: Any) -> bool:
        """Say whether a container or object was there before the trace, or is the caller's."""
        return id(x) in self.external or self.is_argument(x)

    def _is_outside(self, x: Any) -> bool:
        if isinstance(x, CONTAINERS):
            return id(x) in self.external
        return isinstance(x, Tensor) and not isinstance(x._payload, Value)
