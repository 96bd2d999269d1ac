"""What lists, dicts, sets and deques hold while a function is traced.

The content of a container is an entry of the side-effect log, so that every branch has its own. A container that the
traced code made itself also *shows* the entry: the real object holds what it holds at this point of the trace, and is
put back when a branch or loop body ends. Python's own operations (`a + b`, unpacking, `*rest`) thereby see the right
items, and what they change is noticed. Where the content is only known when the Program runs, the object shows one
`Spliced` item, which stands for all of them. Containers from outside are never touched; their entry is committed after
the run.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.kinds import is_deque, is_dict, is_list, is_mutable_set
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.effects.alias_analysis import AliasAnalysis
from dy2st.runtime.tracer.effects.known_keys import KnownKeys
from dy2st.runtime.tracer.effects.side_effect_log import SideEffectLog
from dy2st.runtime.tracer.effects.trace import Borrows
from dy2st.runtime.tracer.values.container_classes import CONTENT, copied, fill, like, plain_content, settings
from dy2st.runtime.tracer.values.dict_views import MirroredDicts, is_view, shown_items
from dy2st.runtime.tracer.values.made_objects import MadeObjects
from dy2st.runtime.tracer.values.object_attributes import attributes, drop_attribute, put_attribute
from dy2st.runtime.tracer.values.sentinels import MISSING, Key
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

CONTAINERS: tuple[type[Any], ...] = (list, dict, set, deque)


class Spliced:
    """The one item that a container shows whose content is known only at run time."""

    __slots__ = ("content",)

    def __init__(self, content: Any):
        self.content = content

    def _met(self, *_: Any) -> Any:
        raise StructureError("Python met the items of a container that only the run will tell")

    __bool__ = __len__ = __iter__ = __getitem__ = __call__ = __index__ = __float__ = __int__ = _met
    __str__ = __format__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = __invert__ = _met
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _met
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _met

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._met()


def is_spliced(items: Any) -> bool:
    """Return whether one of these items, if they are those of a container, stands for many."""
    return isinstance(items, CONTAINERS) and any(type(i) is Spliced for i in plain_content(items))


def refuse_spliced(arguments: Any) -> None:
    """Raise NeedsPythonValue where a call hands over, one by one (`*items`), what only the run will tell."""
    if any(type(x) is Spliced for x in arguments):
        raise needs_value(
            "a list whose length only the run will tell was handed over item by item (`*items`)", "hand over the list"
        )


class ContainerState:
    """The part of a trace that knows what containers and objects hold; entries of the log have the key ("items", id)
    or ("attr", id, name).
    """

    builder: Builder
    log: SideEffectLog
    borrows: Borrows

    def __init__(self) -> None:
        self.external: dict[int, Any] = {}
        """Containers and objects that were there before the trace, by id."""
        self.outermost: FrameType | None = None
        """The frame that began the trace; what its callers hold is outside."""
        self.bottom: FrameType | None = None
        """The frame that began the function of the Program that is being traced; locations list the calls above it."""
        self.callers: tuple[FrameType | None, FrameType | None, Any] = None, None, ()
        """The user's frame that asked last for its callers, the bottom then, and what the callers were (location)."""
        self.carried: dict[int, Callable[[], Any]] = {}
        """What reads the variables that a branch or loop hands over, by the id of its builder."""
        self.first: dict[int, Any] = {}
        """What a container made in the trace held before its first entry in the log."""
        self.attributes_before: dict[Key, Any] = {}
        """What an attribute of an object made in the trace was before its first entry in the log."""
        self.changes = Counter[int]()
        """How often lists of unknown length, by id, got other items, for loops that run through them."""
        self.made = MadeObjects()
        self.aliases = AliasAnalysis()
        self.found_keys = KnownKeys()
        self.mirrors = MirroredDicts()

    def mark_external(self, x: Any) -> None:
        """Say that something was there before the trace."""
        self.external[id(x)] = x
        self.log.keep(x)

    # ---- reading and writing ---------------------------------------------------------------------------------------
    def content(self, x: Any) -> Any:
        """Return the content of a container as it stands in the trace; anything else is its own content."""
        if not isinstance(x, CONTAINERS):
            return self._viewed(x) if is_view(x) else x
        if id(x) in self.borrows.parts:
            self.borrows.read(x)
        self.notice(x)
        found = self.log.get(("items", id(x)))
        if found is not MISSING:
            return found
        return self.spliced(list(plain_content(x))) if is_spliced(x) else plain_content(x)

    def _viewed(self, view: Any) -> Any:
        """Return what a view of a dict shows, where that dict was met."""
        owner = self.mirrors.owner_of(view)
        return view if owner is None else shown_items(view, self.content(owner))

    def spliced(self, items: list[Any]) -> Any:
        """Return the content of items among which some stand for many."""
        raise StructureError("Python met the items of a container that only the run will tell")

    def writable(self, x: Any) -> Any:
        """Return a copy of a container's content that the innermost block may change and hand to `store`."""
        content = self.content(x)
        if is_deque(x) and is_deque(content):  # one of several contents does not know the length
            return deque(content, x.maxlen)
        return copied(content) if isinstance(content, CONTAINERS) else copy.copy(content)

    def store(self, x: Any, content: Any) -> None:
        """Write the content of a container."""
        if id(x) in self.aliases.groups:
            self.before_write(x)
        self.borrows.moved(x)
        content = like(x, content)
        if id(x) not in self.external and id(x) not in self.first:
            self.first[id(x)] = copied(x)
        self.log.set(("items", id(x)), x, content)
        self.show(x, content)
        self.borrows.wrote(x)

    def before_write(self, t: Any) -> None:
        """Look at a tensor, container or object that is changed next."""

    def lend(self, x: Any) -> None:
        """Say that `x` was put by value into a list of unknown length."""
        self.aliases.hold(x)
        self.borrows.lend(x)

    def log_attribute(self, x: Any, name: str, value: Any) -> None:
        """Write an attribute of an object into the log."""
        if id(x) in self.aliases.groups:
            self.before_write(x)
        self.log.set(("attr", id(x), name), x, value)
        if id(x) in self.made.objects:
            self.show_attribute(("attr", id(x), name), value)
        self.borrows.wrote(x)

    def attributes_of(self, x: Any) -> dict[str, Any]:
        """Return the attributes of an object as they stand in the trace."""
        found = attributes(x)
        for overlay in self.log.overlays:
            for key, value in overlay.items():
                if key[0] == "attr" and key[1] == id(x):
                    found[key[2]] = value
        return {name: value for name, value in found.items() if not isinstance(value, UnboundLocal)}

    def made_of(self, x: Any) -> dict[str, Any]:
        """Return what an object is made of: its attributes and, where it is a container, itself as what it holds."""
        found = self.attributes_of(x)
        return {**settings(x), **found, CONTENT: x} if isinstance(x, CONTAINERS) else found

    def is_argument(self, x: Any) -> bool:
        """Return whether the caller of what is traced holds a tensor."""
        return False

    def is_from_outside(self, x: Any) -> bool:
        """Return whether a container or object was there before the trace, or is the caller's."""
        return id(x) in self.external or self.is_argument(x)

    def show(self, x: Any, content: Any) -> None:
        """Let a container made in the trace hold `content`."""
        shown = [Spliced(content)] if isinstance(content, (SymbolicList, Variant)) else content
        shown = dict.fromkeys(shown) if is_dict(x) and is_list(shown) else shown
        self.mirrors.show(x, shown)
        if id(x) not in self.external and id(x) in self.first:
            fill(x, shown)

    def show_attribute(self, key: Key, value: Any) -> None:
        """Let an object made in the trace have an attribute, for what Python's own operations read."""
        held = self.log.objects[key[1]]
        self.attributes_before.setdefault(key, attributes(held).get(key[2], MISSING))
        if value is MISSING or isinstance(value, UnboundLocal):
            drop_attribute(held, key[2])
        else:
            put_attribute(held, key[2], value)

    def notice(self, x: Any) -> None:
        """Take over what Python's own operations changed in a container made in the trace since its last entry."""
        if id(x) not in self.first:
            return
        found = self.log.get(("items", id(x)))
        known = self.first[id(x)] if found is MISSING else found
        now = plain_content(x)
        if isinstance(known, (SymbolicList, Variant)):
            if len(now) == 1 and type(next(iter(now))) is Spliced:
                return
            self.store(x, self.spliced(list(now)))
        elif not _same_items(now, known):
            self.store(x, self.spliced(list(now)) if is_spliced(now) else copied(x))

    # ---- blocks ----------------------------------------------------------------------------------------------------
    def entered(self, overlay: dict[Key, Any]) -> None:
        """Show what a block wrote, when it is entered again."""
        for key, content in overlay.items():
            if key[0] == "items":
                self.show(self.log.objects[key[1]], content)
            elif key in self.attributes_before:
                self.show_attribute(key, content)

    def leaving(self) -> None:
        """Note what Python's own operations changed, before a block is left."""
        for i in list(self.first):
            self.notice(self.log.objects[i])

    def left(self, keys: Iterable[Key]) -> None:
        """Show again what containers hold outside of the block that was left (or was rolled back)."""
        for key in keys:
            found = self.log.get(key)
            if key[0] == "items" and key[1] in self.first:
                self.show(self.log.objects[key[1]], self.first[key[1]] if found is MISSING else found)
            elif key[0] == "items":
                held = self.log.objects[key[1]]
                self.mirrors.show(held, plain_content(held) if found is MISSING else found)
            elif key in self.attributes_before:
                self.show_attribute(key, self.attributes_before[key] if found is MISSING else found)

    def on_content(self, x: Any, switch: Callable[..., Any], use: Callable[[], Any]) -> Any:
        """Do something with a container; where its content is one of several, once for each under its tag."""
        content = self.content(x)
        if not isinstance(content, Variant) or isinstance(x, Variant):
            return use()

        def one(alternative: Any) -> Any:
            with self.borrows.quiet():
                self.store(x, alternative)
            return use()

        known = set(self.first)
        found = switch(self, content, one)
        if id(found) in self.first and id(found) not in known:
            self.lend(found)  # put together anew behind the switch: not the one in the container
        return found


def _same_items(x: Any, known: Any) -> bool:
    if len(x) != len(known):
        return False
    if is_dict(x):
        return all(a is b and x[a] is known[b] for a, b in zip(x, known, strict=True))
    if is_mutable_set(x):
        return x == known
    return all(a is b for a, b in zip(x, known, strict=True))
