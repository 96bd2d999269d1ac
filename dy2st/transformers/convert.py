"""`convert(fn)`: the converted form of a function, once per source text.

What makes it, the passes and the tree that they work on, loads when the first function is converted in this process;
one whose conversion was kept (`kept`) needs none of that.

>>> from dy2st.transformers import is_converted_code
>>> is_converted_code(Converted.make.__code__)
False
"""

from __future__ import annotations

import marshal
import types
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

from dy2st.forks import ForkLock
from dy2st.naming import is_plain_module
from dy2st.pysrc.source import ByCode
from dy2st.records import field, record, replace


@record(frozen=True)
class Converted:
    """A converted function, waiting for a helper."""

    original: str  # as the user wrote it
    file: str
    firstlineno: int
    code: types.CodeType = field(repr=False)
    helper: str = field(repr=False)  # the free variable that holds the helper
    print: Callable[[], str] | None = field(repr=False, compare=False)  # None for one that was kept
    fn: weakref.ref[types.FunctionType] = field(repr=False, compare=False)

    @property
    def source(self) -> str:
        """Return the converted source, readable."""
        if self.print is None:
            return _made_now(self._function(None)).converted.source
        return self.print()

    def make(self, helper: object, fn: types.FunctionType | None = None) -> types.FunctionType:
        """Make a function that asks `helper`, with the cells, defaults and attributes of `fn`.

        `fn` is the function that was converted, unless another one with the same code is given.
        """
        fn = self._function(fn)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        cells[self.helper] = types.CellType(helper)
        closure = tuple(cells[name] for name in self.code.co_freevars)
        made = types.FunctionType(self.code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        made.__qualname__, made.__module__, made.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
        made.__kwdefaults__ = fn.__kwdefaults__
        made.__dict__.update(fn.__dict__)
        _copy_annotations(fn, made)
        return made

    def _function(self, given: types.FunctionType | None) -> types.FunctionType:
        fn = self.fn() if given is None else given
        if fn is None:
            raise ReferenceError("the function that was converted is gone: pass it to make()")
        return fn


def _copy_annotations(fn: Any, made: Any) -> None:
    """Share annotations, lazily where Python evaluates them lazily (3.14)."""
    if hasattr(fn, "__annotate__"):
        made.__annotate__ = fn.__annotate__
    else:
        made.__annotations__ = fn.__annotations__
    if hasattr(fn, "__type_params__"):
        made.__type_params__ = fn.__type_params__


@record(frozen=True)
class Conversion:
    """A converted function, and for which names around it that was done."""

    converted: Converted
    asked: frozenset[str]
    """The names that dotted paths in the function start with."""
    modules: frozenset[str]
    """Those of them that are bound to modules of libraries."""

    def to_bytes(self) -> bytes:
        """Return the conversion as a later process can take it; it is code, to be read only from who may give some."""
        made = self.converted
        return marshal.dumps((made.original, made.helper, made.code, sorted(self.asked), sorted(self.modules)))


def conversion_from(data: bytes, fn: types.FunctionType) -> Conversion:
    """Return the conversion of a function from what `to_bytes` gave; ValueError for anything else."""
    try:
        original, helper, code, asked, modules = marshal.loads(data)
    except (EOFError, TypeError, ValueError) as error:
        raise ValueError(f"no conversion: {error}") from None
    known = isinstance(original, str) and isinstance(helper, str) and isinstance(code, types.CodeType)
    if not known or not {*code.co_freevars} <= {*fn.__code__.co_freevars, helper}:
        raise ValueError("no conversion of this function")
    remember(code)
    place = fn.__code__.co_filename, fn.__code__.co_firstlineno
    converted = Converted(original, *place, code, helper, None, weakref.ref(fn))
    return Conversion(converted, frozenset(asked), frozenset(modules))


_converted, _generated = ByCode(), ByCode()
_lock = ForkLock(level=0)
Keep = Callable[[types.FunctionType, Callable[[], Conversion]], Conversion]
"""Returns the conversion of a function that was kept, or what the second argument makes."""


def is_converted_code(code: types.CodeType) -> bool:
    """Return whether a code object came out of a conversion (functions inside converted functions included)."""
    return _generated.get(code) is not None


def convert(fn: types.FunctionType, kept: Keep | None = None) -> Converted:
    """Convert a function; the work is done once per source text (and set of modules that it names).

    Raises
    ------
    ConversionError
        There is no source, the source was edited, or the function is `async`.
    """
    with _lock:
        known: list[Conversion] = _converted.get(fn.__code__) or []
        for conversion in known:
            if modules_among(fn, conversion.asked) == conversion.modules:
                return _of(conversion.converted, fn)
        conversion = _made_now(fn) if kept is None else kept(fn, lambda: _made_now(fn))
        _converted.put(fn.__code__, [*known, conversion])
        return _of(conversion.converted, fn)


def _made_now(fn: types.FunctionType) -> Conversion:
    """Convert a function with the modules that do so, which nothing else imports."""
    return import_module("dy2st.transformers.conversion").conversion_of(fn)


def _of(converted: Converted, fn: types.FunctionType) -> Converted:
    if converted.fn() is fn:
        return converted
    return replace(converted, fn=weakref.ref(fn))


def modules_among(fn: types.FunctionType, names: frozenset[str]) -> frozenset[str]:
    """Return the names that are bound to modules of libraries around a function; those of the user's hold state."""
    return frozenset(name for name in names if _is_library(outside(fn, name)))


def _is_library(x: object) -> bool:
    return isinstance(x, types.ModuleType) and is_plain_module(x.__name__)


def outside(fn: types.FunctionType, name: str) -> object:
    """Return what a name from outside of a function stands for; None where that is nothing."""
    if name in fn.__code__.co_freevars and fn.__closure__ is not None:
        try:
            return fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents
        except ValueError:  # not assigned yet
            return None
    return fn.__globals__.get(name)


def remember(code: types.CodeType) -> None:
    """Note that code came out of a conversion, with all functions inside."""
    _generated.put(code, True)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            remember(const)
