"""Machine code that says whether words in memory are as they were: in one call what takes Python a line for each.

    PyObject *dy2st.unchanged(PyObject *plate, PyObject **given, Py_ssize_t count)

It gives True or False. What it looks at is given as addresses in objects that the caller keeps alive:

- words: what a function has for code and defaults, what a cell holds, the type of an object;
- the version of a class, a number that Python gives anew whenever the class or one of its bases is changed;
- entries of dicts: which object stands at a key.

Where these stand is found by looking for objects that were put there; where they are not found, Python does it all.

The plate has, behind what other plates have (entry.py), how many there are of each, and then lines of three words:

    address   -   word          address   -   version          dict   key   object, or 0 for none
"""

from __future__ import annotations

import ctypes
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.trampolines import call
from dy2st.runtime.backends.cpu.trampolines.object_layout import word

WORDS, VERSIONS, ENTRIES, LINES = range(api.BEHIND, api.BEHIND + 32, 8)
TYPE = api.TYPE
NO_VERSION = 2**32 - 1
"""What no class has: it has 0 until an attribute is looked up, and where Python has run out of numbers."""
_FIELDS = ("__code__", "__defaults__", "__kwdefaults__")
_Entry = tuple[dict[Any, Any], Any, Any]


class WatchedWords:
    """What is looked at: addresses of words, addresses of versions, and entries of dicts, each with what is there."""

    def __init__(self) -> None:
        self.words: list[tuple[int, int]] = []
        self.versions: list[tuple[int, int]] = []
        self.entries: list[_Entry] = []
        self._kept: list[Any] = []
        """The objects whose addresses these are: no other one may come to stand there."""

    def function(self, f: types.FunctionType) -> bool:
        """Add the code and the defaults of a function; return whether it is known where they stand."""
        places = function_places()
        if places is not None:
            self._kept += (f, f.__code__, f.__defaults__, f.__kwdefaults__)
            self.words += [(id(f) + at, word(id(f) + at)) for at in places]
        return places is not None

    def cell(self, cell: types.CellType) -> bool:
        """Add what a cell holds; return whether it is known where that stands."""
        at = cell_place()
        if at is not None:
            self._kept += (cell, cell.cell_contents)
            self.words.append((id(cell) + at, word(id(cell) + at)))
        return at is not None

    def type_of(self, x: Any) -> None:
        """Add of which type an object is."""
        self._kept += (x, type(x))
        self.words.append((id(x) + TYPE, id(type(x))))

    def version(self, kind: type) -> bool:
        """Add the version of a class; return whether it is known where that stands."""
        at = version_place()
        if at is not None:
            self._kept.append(kind)
            self.versions.append((id(kind) + at, version_of(kind)))
        return at is not None

    def entry(self, owner: dict[Any, Any], key: Any) -> None:
        """Add what a dict has at a key, nothing maybe."""
        self.entries.append((owner, key, owner.get(key, AbsentEntry)))

    def module_part(self, module: types.ModuleType, name: str) -> None:
        """Add what a module has under a name; a module of the package is seldom changed, so that one word will do."""
        at = dict_version_place() if module.__name__.startswith("dy2st") else None
        if at is None:
            self.entry(vars(module), name)
        elif (line := (id(vars(module)) + at, word(id(vars(module)) + at))) not in self.words:
            self._kept.append(module)
            self.words.append(line)

    def unchanged(self) -> Callable[[], bool] | None:
        """Return what says whether all is as it is now; None where machine code does not run yet."""
        address = call.unchanged_address()
        if address is None:
            return None
        counts = [len(self.words), len(self.versions), len(self.entries)]
        lines = [x for at, value in (*self.words, *self.versions) for x in (at, 0, value)]
        lines += [x for owner, key, value in self.entries for x in (id(owner), id(key), _address(value))]
        plate = np.array([0, 0, *api.addresses(), *counts, *lines], np.int64)
        return api.builtin_function(address, "dy2st", plate, keeps=(self.entries, self._kept))


class AbsentEntry:
    """Stands for an entry of a dict that is not there."""


def _address(x: Any) -> int:
    return 0 if x is AbsentEntry else id(x)


def version_of(kind: type) -> int:
    """Return the version of a class, NO_VERSION where it has none."""
    at = version_place()
    assert at is not None
    place = ctypes.c_uint32.from_address(id(kind) + at)
    if place.value == 0:
        hasattr(kind, "__dy2st_version__")  # Python gives a class a version when it looks something up
    return place.value or NO_VERSION


@functools.cache
def function_places() -> tuple[int, ...] | None:
    """Return where a function has its code and its defaults, in bytes; None where that is not one place each."""
    if not api.available():
        return None

    def f(a: Any, *, b: Any) -> Any:
        return a, b

    f.__defaults__, f.__kwdefaults__ = (object(),), {"b": object()}
    found = [_only_place(f, getattr(f, name)) for name in _FIELDS]
    f.__defaults__ = f.__kwdefaults__ = None  # type: ignore[assignment]
    gone = all(at is not None and word(id(f) + at) == 0 for at in found[1:])
    return None if found[0] is None or not gone else tuple(at for at in found if at is not None)


@functools.cache
def cell_place() -> int | None:
    """Return where a cell has what it holds; None where that is not one place."""
    sign = object()
    return _only_place(types.CellType(sign), sign) if api.available() else None


@functools.cache
def version_place() -> int | None:
    """Return where a class has its version; None where no single word of it is what a version must be."""
    if not api.available():
        return None

    class Looked:
        """A class that is changed and looked at."""

    def words() -> Sequence[int]:
        size: Any = type.__basicsize__
        return (ctypes.c_uint32 * (size // 4)).from_buffer_copy(ctypes.string_at(id(Looked), size // 4 * 4))

    states: list[Sequence[int]] = []
    for number in range(3):
        setattr(Looked, f"attribute_{number}", number)
        changed = words()
        hasattr(Looked, "another")
        states += [changed, words()]
    found = [
        4 * i
        for i, (a, b, c, d, e, f) in enumerate(zip(*states, strict=True))
        if a == c == e == 0 and 0 < b < d < f < NO_VERSION
    ]
    return found[0] if len(found) == 1 else None


@functools.cache
def dict_version_place() -> int | None:
    """Return where a dict has a number that is another one after each change; None where that is not one place."""
    if not api.available():
        return None
    looked, size = {"a": 0}, dict.__basicsize__ // 8
    states: list[list[int]] = []
    for number in range(1_000, 1_004):
        looked["a"] = number
        states.append([word(id(looked) + 8 * i) for i in range(size)])
    found = [8 * i for i, values in enumerate(zip(*states, strict=True)) if len(set(values)) == len(values)]
    return found[0] if len(found) == 1 else None


def _only_place(x: Any, part: Any) -> int | None:
    """Return where an object has the address of another one; None where that is not one place."""
    size: Any = type(x).__basicsize__
    found = [at for at in range(2 * 8, size, 8) if word(id(x) + at) == id(part)]
    return found[0] if len(found) == 1 else None
