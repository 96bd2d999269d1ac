"""The barrier before whatever is not converted: a library function, a C function, an operator of a library's type.

Before such a call what the trace wrote is shown on all that the call can reach (`reach`), afterwards that is taken back
and what the call changed is noted in the log, so that it happens where that path runs, at the end of each call. It is
the trace's own thread that sees this, for the length of one call; nothing stays.

    push = heapq.heappush      push(h, 1)        h is shown, changed, and its new content is written to the log
    copy.copy(o)                                  o has its pending attributes while it is copied
    a[0] = 5                                      an array: allowed in the block that made it, refused elsewhere
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from dy2st.errors import Dy2stError
from dy2st.ir.literals import is_array
from dy2st.kinds import is_dict
from dy2st.late import types_of
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.side_effect_check import OF_ARRAYS
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.reach import ELEMENTS, Reach, is_atom, of_class, refuse, refuse_change
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.container_classes import is_of_users_class, plain_content
from dy2st.runtime.tracer.values.object_attributes import attributes

_QUIET = (StopIteration, KeyError, IndexError, RecursionError)
"""What is raised for what a call was asked, not for a value known only at run time."""


def natively(trace: Trace, f: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call `f` as it is, behind the barrier."""
    given = (f, *args, *keywords.values())
    roots = [x for x in given if not is_atom(x)] + [i for x in given if isinstance(x, type) for i in of_class(x)]
    owner = getattr(f, "__self__", None)
    _refuse_hidden(trace, owner, getattr(f, "__name__", ""))
    if owner is not None and not is_atom(owner):
        roots.append(owner)
    if not roots:
        return _watched(trace, f, args, keywords, any(isinstance(x, Tensor) or _is_number(x) for x in args))
    reach = Reach(trace, roots)
    with shown(reach):
        result = _watched(trace, f, args, keywords, reach.symbolic)
    if isinstance(result, ELEMENTS) or (id(result) not in reach.seen and _is_new(trace, result)):
        note_born(trace, result, reach.seen)
    return result


_HIDDEN = ("_queue:SimpleQueue", "contextvars:ContextVar", "threading:Thread", "types:GeneratorType")
_CHANGE = frozenset(
    ("put", "put_nowait", "get", "get_nowait", "set", "reset", "start", "run", "send", "throw", "close")
)
"""Methods that change what cannot be looked into."""


def _refuse_hidden(trace: Trace, owner: Any, name: str) -> None:
    """Raise NeedsPythonValue where a method changes what nobody can see, and the trace may not."""
    if is_array(owner) and name in OF_ARRAYS:
        refuse_change(trace, owner)
    if name in _CHANGE and isinstance(owner, types_of(*_HIDDEN)) and id(owner) not in trace.made.iterators:
        born = trace.made.library.get(id(owner))
        if born is None or born[1] is not trace.builder or name == "start":
            refuse(owner)


def _is_number(x: Any) -> bool:
    return type(x).__module__.startswith("dy2st.")


def _watched(trace: Trace, f: Any, args: Any, keywords: Any, symbolic: bool) -> Any:
    """Call `f`; what it raises because it was handed a value of the run is refused, also where it catches that."""
    trace.natively += 1
    trace.asked = None
    try:
        result = f(*args, **keywords)
        if trace.asked is not None and not is_plain_module(getattr(f, "__module__", None)):
            raise trace.asked
        return result
    except (Dy2stError, *_QUIET):
        raise
    except Exception as error:
        numbers = [x for x in (*args, *keywords.values()) if _is_number(x)] or None
        if not symbolic or _raises_eagerly(f, args):
            trace.blamed = trace.extents_behind(numbers or ())
            raise
        name = getattr(f, "__qualname__", type(f).__name__)
        text = f"{name}() raised {type(error).__name__} ({error}) for a value of the run"
        raise needs_value(text, needed=numbers) from error
    finally:
        trace.natively -= 1


def _raises_eagerly(f: Any, args: Any) -> bool:
    """Return whether eager mode raises the same: for what is no function, or of an operator that lacks these types."""
    if not callable(f):
        return True
    of_operators = getattr(f, "__module__", "") == "_operator"
    return of_operators and all(isinstance(x, Tensor) or not _is_number(x) for x in args)


@contextmanager
def shown(reach: Reach) -> Generator[None]:
    """Show what the trace wrote for the length of a `with`; note what was changed meanwhile."""
    notes: list[Callable[[], None]] = []
    done: list[Any] = []
    try:
        for thing in reach.things:
            done.append(thing)
            thing.show()
        yield
    finally:
        notes = [note for thing in reversed(done) if (note := thing.take_back()) is not None]
    for note in notes:
        note()


def note_born(trace: Trace, x: Any, known: Any = ()) -> None:
    """Note in which block something was made that code which is not converted may change."""
    if isinstance(x, ELEMENTS):
        trace.made.library.setdefault(id(x), (x, trace.builder))
    elif is_plain_object(x) or is_of_users_class(x):
        trace.made.objects[id(x)] = x
        held = plain_content(x) if isinstance(x, CONTAINERS) else ()
        for item in (*attributes(x).values(), *(held.values() if is_dict(held) else held)):
            if id(item) not in known and id(item) not in trace.external and id(item) not in trace.made.objects:
                note_born(trace, item, known)
    elif type(x) in (list, tuple, dict):
        for item in x.values() if is_dict(x) else x:
            if id(item) not in known and id(item) not in trace.external and id(item) not in trace.made.objects:
                note_born(trace, item, known)
    elif not is_atom(x) and not isinstance(x, CONTAINERS) and is_plain_module(type(x).__module__):
        trace.made.library.setdefault(id(x), (x, trace.builder))


def _is_new(trace: Trace, x: Any) -> bool:
    """Return whether nobody else holds what a call gave."""
    if id(x) in trace.external or id(x) in trace.made.objects or isinstance(x, (Tensor, type, types.FunctionType)):
        return False
    return _references(x) <= _references_of_new()


def _references(x: Any) -> int:
    return sys.getrefcount(x)


@functools.cache
def _references_of_new() -> int:
    def call() -> int:
        result = _Thing()
        return _held(result)

    return call()


class _Thing:
    pass


def _held(x: Any) -> int:
    return _references(x)
