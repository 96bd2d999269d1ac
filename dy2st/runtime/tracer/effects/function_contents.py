"""What functions, methods, iterators and exceptions keep: things that others can change.

A list in a cell of two closures is one list, as one in two variables is. Of functions only the user's are looked into.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Iterator, MappingView
from typing import Any

from dy2st.kinds import is_generator
from dy2st.naming import is_plain_module
from dy2st.runtime.tracer.effects.code_names import contents_of

_WRAPPERS: tuple[type, ...] = (types.MethodType, staticmethod, classmethod)
_KINDS: tuple[type, ...] = (
    types.FunctionType, functools.partial, functools.cached_property, property, types.GeneratorType, *_WRAPPERS,
)  # fmt: skip
_OPAQUE: tuple[type, ...] = (
    Iterator, BaseException, frozenset, types.SimpleNamespace, types.MappingProxyType, MappingView,
)  # fmt: skip


def keeps_things(x: Any) -> bool:
    """Return whether `x` is a function or the like."""
    return isinstance(x, (*_KINDS, *_OPAQUE))


def kept_by(x: Any) -> Iterator[Any]:
    """Yield what a function or the like keeps.

    >>> list(kept_by(functools.partial(max, [5], key=len)))
    [<built-in function max>, [5], <built-in function len>]
    """
    if isinstance(x, types.FunctionType):
        if not is_plain_module(x.__module__):
            yield from contents_of(x)
            yield from x.__defaults__ or ()
            yield from (x.__kwdefaults__ or {}).values()
            yield from vars(x).values()
    elif isinstance(x, _WRAPPERS):
        yield from (getattr(x, "__self__", None), x.__func__)
    elif isinstance(x, property):
        yield from (x.fget, x.fset, x.fdel)
    elif isinstance(x, functools.cached_property):
        yield x.func
    elif isinstance(x, functools.partial):
        yield from (x.func, *x.args, *x.keywords.values())
    elif is_generator(x):
        if x.gi_frame is not None and not is_plain_module(x.gi_frame.f_globals.get("__name__", "")):
            yield from x.gi_frame.f_locals.values()
            yield x.gi_yieldfrom
    elif isinstance(x, _OPAQUE):
        yield from gc.get_referents(x)
