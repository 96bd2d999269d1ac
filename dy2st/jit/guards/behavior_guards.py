"""What the objects and functions that a trace met do: it must be the same for a Program to be right.

A trace reads attributes one at a time, and each is guarded by its value. Beside those, a Program depends on what a call
of an object, of a method or of an operator does:

- which class an object has, and the functions, properties and the like of that class and its bases (`A.m = f`,
  `mock.patch.object(A, "m")`, `A.__add__ = f`, `x.__class__ = B`);
- what was read of a library's module or of the class of tensors (`mock.patch("dy2st.nn.functional.relu", f)`);
- whether an object has an attribute of its own in the place of a method (`net.forward = f`);
- the code and the defaults of a function (`f.__defaults__ = ...`, `f.__code__ = ...`).

Other attributes of classes are data: they are guarded where they are read.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from dy2st.kinds import type_of, variables_of
from dy2st.naming import is_plain_module
from dy2st.nn.layer import Layer
from dy2st.records import record
from dy2st.runtime.backends.cpu.trampolines.watched_words import NO_VERSION, WatchedWords, version_of, version_place
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.sentinels import MISSING


class BehaviourGuard:
    """The classes and functions that a trace met, as they were."""

    owner = None

    def __init__(self) -> None:
        self.objects: dict[int, tuple[Any, type]] = {}
        self.classes: dict[int, _Class] = {}
        self.functions: dict[int, _Function] = {}
        self.names: dict[tuple[int, str], InstanceOverride] = {}
        self.library: dict[tuple[int, str], InstanceOverride] = {}
        self.partials: dict[int, tuple[functools.partial[Any], dict[str, Any]]] = {}

    # ---- what a trace meets ----------------------------------------------------------------------------------------
    def note_object(self, x: Any) -> None:
        """Note which class an object has."""
        kind = type_of(x)
        if id(x) in self.objects or isinstance(x, (Tensor, type, types.ModuleType)) or not _is_watched(kind):
            return
        self.objects[id(x)] = x, kind
        self.note_class(kind)

    def note_class(self, kind: type) -> None:
        """Note what the instances of a class do."""
        if id(kind) not in self.classes and _is_watched(kind):
            self.classes[id(kind)] = _Class(kind)
            self.note_class(type(kind))

    def note_function(self, f: types.FunctionType) -> None:
        """Note the code and the defaults of a function."""
        if id(f) not in self.functions:
            self.functions[id(f)] = _Function.of(f)

    def note_partial(self, f: functools.partial[Any]) -> None:
        """Note the keywords of a `functools.partial`, which may be changed as they stand."""
        self.partials.setdefault(id(f), (f, dict(f.keywords)))

    def note_name(self, x: Any, name: str) -> None:
        """Note whether an object has an attribute of its own under the name of one of its class."""
        if (id(x), name) not in self.names and isinstance(getattr(x, "__dict__", None), dict):
            self.names[id(x), name] = InstanceOverride(x, name, variables_of(x).get(name, MISSING))

    def note_library(self, owner: types.ModuleType | type, name: str) -> None:
        """Note what a module of a library, or a class of it, has under a name."""
        for place in owner.__mro__ if isinstance(owner, type) else (owner,):
            if (id(place), name) not in self.library:
                self.library[id(place), name] = InstanceOverride(place, name, vars(place).get(name, MISSING))
            if name in vars(place):
                return

    # ---- what a call finds -----------------------------------------------------------------------------------------
    def passes(self) -> bool:
        """Return whether all of it still is as it was."""
        return self._changed() is None

    def lines(self, lines: WatchedWords) -> bool:
        """Add what stands in single words of memory; return whether that is known."""
        for x, _ in self.objects.values():
            lines.type_of(x)
        for one in self.functions.values():
            for name in one.keywords:
                lines.entry(one.f.__kwdefaults__ or {}, name)
        for f, before in self.partials.values():
            for name in before:
                lines.entry(f.keywords, name)
        owners = {id(own.owner): own.owner for own in self.library.values()}.values()
        kinds = [*(one.kind for one in self.classes.values()), *(x for x in owners if isinstance(x, type))]
        for own in self.library.values():
            if not isinstance(own.owner, type):
                lines.module_part(own.owner, own.name)
        return all(lines.function(one.f) for one in self.functions.values()) and all(map(lines.version, kinds))

    def changed_number(self) -> bool:
        """Say no: these are no numbers."""
        return False

    def _changed(self) -> str | None:
        """Return what is not as it was."""
        for x, kind in self.objects.values():
            if type(x) is not kind:
                return f"the class of a {kind.__name__}"
        for own in (*self.names.values(), *self.library.values()):
            if not own.passes():
                return str(own)
        for f in self.functions.values():
            if not f.passes():
                return f"the code or a default of `{f.f.__qualname__}`"
        for f, before in self.partials.values():
            if not _same_items(f.keywords, before):
                return "a keyword of a functools.partial"
        for one in self.classes.values():
            if not one.passes():
                return f"a method of {one.kind.__qualname__}"
        return None

    def __str__(self) -> str:
        return self._changed() or "a method or a default"


@record(frozen=True)
class InstanceOverride:
    """What an object has of its own under the name of something that its class has: nothing, mostly."""

    owner: Any
    name: str
    value: Any

    def passes(self) -> bool:
        """Return whether it still is the same."""
        return variables_of(self.owner).get(self.name, MISSING) is self.value

    def __str__(self) -> str:
        if isinstance(self.owner, (type, types.ModuleType)):
            return f"{self.owner.__name__}.{self.name}"
        return f".{self.name} of a {type(self.owner).__name__}"


@record(frozen=True)
class _Function:
    f: Any
    code: types.CodeType
    defaults: tuple[Any, ...] | None
    keywords: dict[str, Any]

    @staticmethod
    def of(f: types.FunctionType) -> _Function:
        return _Function(f, f.__code__, f.__defaults__, dict(f.__kwdefaults__ or {}))

    def passes(self) -> bool:
        f = self.f
        if f.__code__ is not self.code or not _same_items(f.__kwdefaults__ or {}, self.keywords):
            return False
        now, before = f.__defaults__ or (), self.defaults or ()
        return now is before or (len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True)))


class _Class:
    """What a class and its bases have that is no data; its version says that nothing at all has changed."""

    def __init__(self, kind: type):
        self.kind = kind
        self._version = _version(kind)
        self._parts = _parts_of(kind)

    def passes(self) -> bool:
        version = _version(self.kind)
        if version == self._version != NO_VERSION:
            return True
        now = _parts_of(self.kind)
        if len(now) != len(self._parts):
            return False
        for (base, parts), (base_before, before) in zip(now, self._parts, strict=True):
            if base is not base_before or not _same_items(parts, before):
                return False
        self._version = version
        return True


def _version(kind: type) -> int:
    return NO_VERSION if version_place() is None else version_of(kind)


def _parts_of(kind: type) -> list[tuple[type, dict[str, Any]]]:
    """Return the functions, properties and the like of a class and its bases."""
    return [(base, {n: x for n, x in vars(base).items() if _acts(x)}) for base in kind.__mro__ if _is_watched(base)]


def _acts(x: Any) -> bool:
    """Return whether something in a class is more than data."""
    return type(x) is types.FunctionType or callable(x) or hasattr(type_of(x), "__get__")


def _same_items(now: dict[str, Any], before: dict[str, Any]) -> bool:
    if len(now) != len(before):
        return False
    return all(now.get(name, MISSING) is x for name, x in before.items())


def _is_watched(kind: type) -> bool:
    """Return whether a class may be changed: the user's may, and layers."""
    return not is_plain_module(kind.__module__) or issubclass(kind, Layer)
