"""What code that is not converted can come to from its arguments: lists, objects, arrays, with what the trace knows.

Each thing found can show what the trace wrote to it, on the real object and for the length of a call, and be taken back
afterwards; what the call itself changed goes into the side-effect log of the block that the trace stands in. What the
log cannot say (elements of arrays, library objects from outside) is put back, and refused.
"""

from __future__ import annotations

import array
import copy
import enum
import functools
import gc
import io
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dy2st.ir.context import current
from dy2st.ir.literals import is_array
from dy2st.ir.program import Value
from dy2st.kinds import DEQUE, DICT, LIST, is_deque, is_dict, is_list, is_mutable_set, is_tuple, variables_of
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.effects.code_names import contents_of
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, Spliced
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.object_attributes import attributes, drop_attribute, put_attribute
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

MOST = 20_000
"""So many containers and objects are looked at for one call."""
SYMBOLIC = (Scalar, Variant, SymbolicList, Text, Spliced)
_FROZEN: tuple[type, ...] = (frozenset,)
ELEMENTS: tuple[type, ...] = (np.ndarray, bytearray, array.array)
_ATOMS = frozenset((
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), type, range, np.dtype,
    np.ufunc, types.ModuleType, types.BuiltinFunctionType, types.CodeType,
))  # fmt: skip
_PASSED: tuple[type, ...] = (
    type, types.ModuleType, np.generic, np.dtype, enum.Enum, io.IOBase, Iterator, types.FrameType,
)  # fmt: skip


def is_atom(x: Any) -> bool:
    """Return whether nothing can be read through `x` that may change."""
    if type(x) in _ATOMS:
        return not (type(x) is types.BuiltinFunctionType and not isinstance(x.__self__, types.ModuleType | type(None)))
    return isinstance(x, _PASSED) or (type(x).__module__ or "").startswith("dy2st.")


class Reach:
    """One walk; `things` are what was found, in order, and `symbolic` says whether values of the run were."""

    def __init__(self, trace: Trace, roots: Iterable[Any]):
        self.trace = trace
        self.things: list[Any] = []
        self.symbolic = False
        self.seen: dict[int, Any] = {}
        waiting = [(x, False) for x in roots]
        while waiting:
            x, outside = waiting.pop()
            if isinstance(x, SYMBOLIC) or (isinstance(x, Tensor) and isinstance(x.payload, Value)):
                self.symbolic = True
            elif not is_atom(x) and id(x) not in self.seen:
                self.seen[id(x)] = x
                waiting += self._inside(x, outside)
            if len(self.seen) > MOST:
                raise needs_value("a call of code that is not converted can reach too many objects")

    def _inside(self, x: Any, outside: bool) -> Iterable[tuple[Any, bool]]:
        """Return what is inside of `x`, each with whether it was there before the trace."""
        trace = self.trace
        outside = outside or id(x) in trace.external
        if outside and id(x) not in trace.external and id(x) not in trace.first and id(x) not in trace.made.objects:
            trace.mark_external(x)
        if isinstance(x, CONTAINERS):
            thing = ReachedContainer(trace, x)
            self.things.append(thing)
            inner = [*thing.shown, *thing.shown.values()] if is_dict(thing.shown) else thing.shown
            own = variables_of(x).values() if hasattr(x, "__dict__") else ()
            return [*((i, False) for i in inner), *((i, outside) for i in own)]
        if is_tuple(x) or isinstance(x, _FROZEN):
            return [(i, outside) for i in x]
        if isinstance(x, ELEMENTS):
            self.things.append(ReachedArray(trace, whole(x)))
            return ()
        if isinstance(x, types.MethodType):
            return ((x.__self__, outside), (x.__func__, True))
        if isinstance(x, types.FunctionType):
            return [(i, True) for i in _of_function(x)]
        if isinstance(x, functools.partial):
            return [(i, outside) for i in (x.func, *x.args, *x.keywords.values())]
        if hasattr(x, "__dict__") or is_plain_object(x):
            thing = ReachedObject(trace, x)
            self.things.append(thing)
            users = thing.users
            return [*((i, outside and not users) for i in thing.shown.values()),
                    *((i, True) for i in of_class(type(x))),
                    *((i, outside) for i in ([] if users else gc.get_referents(x)))]  # fmt: skip
        return [(i, outside) for i in gc.get_referents(x)]


def whole(x: Any) -> Any:
    """Return the array whose memory a view shows."""
    while is_array(x) and isinstance(x.base, ELEMENTS):
        x = x.base
    return x


def _of_function(f: types.FunctionType) -> Iterator[Any]:
    """Return what a function of the user's that runs as it is names from outside, lists and objects."""
    if is_plain_module(f.__module__):
        return
    yield from contents_of(f)
    for name in f.__code__.co_names:
        found = f.__globals__.get(name)
        if isinstance(found, (*CONTAINERS, *ELEMENTS)) or is_plain_object(found):
            yield found


def of_class(kind: Any) -> Iterator[Any]:
    """Return what the special methods that the user wrote for a class name from outside: code may run them unseen."""
    for base in kind.__mro__:
        for name, f in variables_of(base).items() if not is_plain_module(base.__module__) else ():
            if isinstance(f, types.FunctionType) and name.startswith("__"):
                yield from _of_function(f)


class ReachedContainer:
    """A list, dict, set or deque."""

    def __init__(self, trace: Trace, x: Any):
        self.trace, self.x = trace, x
        content = trace.content(x)
        items = content.values() if is_dict(content) else content
        if not isinstance(content, CONTAINERS) or any(type(i) is Spliced for i in items):
            raise needs_value(f"code that is not converted reads a {type(x).__name__} that only the run will tell")
        self.real, self.shown = items_of(x), items_of(content)
        self.hides = False
        self.outside = id(x) in trace.external

    def show(self) -> None:
        """Let the real object hold what the trace wrote."""
        if not same(self.real, self.shown):
            put(self.x, self.shown)
            self.hides = self.trace.beneath.setdefault(id(self.x), self.real) is self.real

    def take_back(self) -> Callable[[], None] | None:
        """Put back what stood there; return what notes what a call changed."""
        if self.hides:
            del self.trace.beneath[id(self.x)]
        now = items_of(self.x)
        changed = not same(now, self.shown)
        if self.outside and not same(now, self.real):
            put(self.x, self.real)
        if not changed:
            return None
        made = deque(now, self.x.maxlen) if is_deque(self.x) else now
        if not self.outside:
            self.trace.first.setdefault(id(self.x), copy.copy(self.shown))
        return lambda: self.trace.store(self.x, made)


class ReachedObject:
    """An object by its attributes."""

    def __init__(self, trace: Trace, x: Any):
        self.trace, self.x = trace, x
        self.users = is_plain_object(x)
        self.real = attributes(x)
        self.outside = (
            id(x) not in trace.made.objects and id(x) not in trace.made.library and id(x) not in trace.made.constructing
        )
        self.shown = seen_attributes(trace, x) if self.users else dict(self.real)
        for name, value in self.shown.items():
            if isinstance(value, (Variant, SymbolicList)):
                raise needs_value(f"code that is not converted reads .{name} of a {type(x).__name__}, which is one of "
                                  "several things")  # fmt: skip

    def show(self) -> None:
        """Let the real object have what the trace wrote."""
        if not same(self.real, self.shown):
            self._put(self.real, self.shown)

    def take_back(self) -> Callable[[], None] | None:
        """Put back what stood there; return what notes what a call changed."""
        now = attributes(self.x)
        changed = not same(now, self.shown)
        if changed and not self.users and may_change(self.trace, self.x):
            return None
        if not same(now, self.real) and (self.outside or changed):
            self._put(now, self.real)
        if not changed:
            return None
        return functools.partial(self._note, now) if self.users else functools.partial(refuse, self.x)

    def _note(self, now: dict[str, Any]) -> None:
        for name in dict.fromkeys((*self.shown, *now)):
            value = now.get(name, MISSING)
            if value is not self.shown.get(name, MISSING):
                self.trace.log_attribute(self.x, name, UnboundLocal(name) if value is MISSING else value)

    def _put(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        for name in old:
            if name not in new:
                drop_attribute(self.x, name)
        for name, value in new.items():
            if old.get(name, MISSING) is not value:
                put_attribute(self.x, name, value)


def seen_attributes(trace: Trace, x: Any) -> dict[str, Any]:
    """Return the attributes of an object as they stand in the trace, which depends on all of them from now on."""
    outside = id(x) not in trace.made.objects and id(x) not in trace.made.constructing
    found = trace.attributes_of(x)
    for name, value in attributes(x).items():
        read = trace.log.get(("attr", id(x), name)) is MISSING and not trace.came_with(x, name)
        if outside and read and not name.startswith("__dy2st"):
            found[name] = trace.note_attribute(x, name, value)
    return found


class ReachedArray:
    """An array: no Program changes its elements, but the block that made it may."""

    def __init__(self, trace: Trace, x: Any):
        self.trace, self.x = trace, x
        self.before = None if may_change(trace, x) or _is_fixed(x) else copy.copy(x)

    def show(self) -> None:
        """Nothing is written to arrays in the log."""

    def take_back(self) -> Callable[[], None] | None:
        """Put back what stood there; return what refuses a change."""
        if self.before is None or _same_elements(self.before, self.x):
            return None
        if is_array(self.x):
            self.x[...] = self.before
        else:
            self.x[:] = self.before
        return functools.partial(refuse, self.x)


def may_change(trace: Trace, x: Any) -> bool:
    """Return whether the trace may change an object for real: nobody else has it, and it is gone where its block is."""
    if id(x) in trace.external or id(x) in trace.arrays:
        return False
    born = trace.made.library.get(id(x))
    return trace.builder is (trace.root if born is None else born[1])


def refuse(x: Any) -> None:
    """Raise NeedsPythonValue for an object that no Program changes."""
    outside = id(x) in current().trace.external
    where = "from outside is changed" if outside else "is changed that was made outside of this branch or loop"
    hint = "keep such state in tensors, lists, dicts or attributes"
    raise needs_value(
        f"a {type(x).__name__} {where}, which a Program cannot do",
        hint if outside else f"{hint}, or make a new one here",
    )


def refuse_change(trace: Trace, x: Any) -> None:
    """Raise NeedsPythonValue where an object is changed that the trace keeps no writes of, and may not change."""
    x = whole(x)
    if not may_change(trace, x):
        refuse(x)


def _is_fixed(x: Any) -> bool:
    return isinstance(x, np.ndarray) and not x.flags.writeable


def _same_elements(a: Any, b: Any) -> bool:
    if not is_array(a):
        return a == b
    return a.shape == b.shape and a.dtype == b.dtype and (
        all(x is y for x, y in zip(a.flat, b.flat, strict=True)) if a.dtype.hasobject else a.tobytes() == b.tobytes()
    )  # fmt: skip


def items_of(x: Any) -> Any:
    """Return a plain copy of a container."""
    if is_dict(x):
        return dict(DICT.items(x))
    return set(x) if is_mutable_set(x) else [*(LIST.__iter__(x) if is_list(x) else x)]


def same(a: Any, b: Any) -> bool:
    """Return whether two plain copies hold the same things, in the same order."""
    if len(a) != len(b):
        return False
    if is_dict(a):
        pairs = zip(a.items(), b.items(), strict=True)
        return all((k is m or k == m) and v is w for (k, v), (m, w) in pairs)
    return a == b if is_mutable_set(a) else all(x is y for x, y in zip(a, b, strict=True))


def put(x: Any, items: Any) -> None:
    """Let a container hold items; no code of its class runs."""
    if is_list(x):
        LIST.__setitem__(x, slice(None), items)
        return
    kinds = {k.__name__: k for k in type(x).__mro__ if k.__module__ in ("builtins", "collections")}
    kind: Any = kinds.get("OrderedDict") or kinds.get("dict") or kinds.get("set") or deque
    kind.clear(x)
    if is_dict(x):
        for key, value in items.items():
            kind.__setitem__(x, key, value)
    elif kind is deque:
        DEQUE.extend(x, items)
    else:
        kind.update(x, items)
