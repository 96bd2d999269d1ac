"""What Python's built-ins mean on symbolic values. Each takes the trace first; on plain ones it is Python's."""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable
from typing import Any

from dy2st.formatting import Part
from dy2st.ir.program import Value
from dy2st.kinds import type_of
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.access.attributes import (
    attr,
    del_attr,
    del_plain_attr,
    has_attr,
    set_as_object,
    set_attr,
    set_plain_attr,
)
from dy2st.runtime.tracer.access.boolean_ops import and_, as_bool, or_
from dy2st.runtime.tracer.access.items import users_method
from dy2st.runtime.tracer.access.operators import truth, users_dunder
from dy2st.runtime.tracer.builtins.iteration import (
    enumerate_,
    filter_,
    iter_,
    iterated,
    list_,
    map_,
    must_roll,
    next_,
    tuple_,
    zip_,
)
from dy2st.runtime.tracer.builtins.sorting import extreme, sorted_
from dy2st.runtime.tracer.builtins.warnings import warn
from dy2st.runtime.tracer.control_flow.conditional import by_alternative, switch
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator, quantified
from dy2st.runtime.tracer.loops.loop_statement import fold
from dy2st.runtime.tracer.values.container_classes import own_method
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable, symbolic_range, symbolic_reversed
from dy2st.runtime.tracer.values.symbolic_iterator import CalledMap, check_moved
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text, fstring, text_part
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def print_(trace: Trace, *values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None,
           flush: bool = False) -> None:  # fmt: skip
    """Print when the Program runs."""
    if file is not None and file is not sys.stdout:
        raise needs_value("print(file=...) inside a Program", "print without `file`, or return the value and print it")
    aval: list[Part] = []
    operands: list[Value] = []
    variant = next((i for i, x in enumerate(values) if isinstance(x, Variant)), None)
    if variant is not None:
        switch(trace, values[variant], lambda x: print_(
            trace, *values[:variant], x, *values[variant + 1 :], sep=sep, end=end, flush=flush))  # fmt: skip
        return
    for x in values:
        part, more = text_part(trace, x)
        aval.append(part)
        operands += more
    attributes = {"template": tuple(aval), "sep": " " if sep is None else sep, "end": "\n" if end is None else end}
    trace.emit("print", operands, attributes)


_BUILT_IN = frozenset((list, tuple, dict, set, frozenset, str, bytes, range))


@by_alternative()
def len_(trace: Trace, x: Any) -> Any:
    """Return `len(x)`."""
    if isinstance(x, CONTAINERS) and (method := own_method(x, "__len__")) is not None:
        return trace.callable(method)(x)
    content = trace.content(x)
    if isinstance(content, SymbolicList):
        return Scalar(trace.emit("list_len", [content.value]))
    if isinstance(content, SymbolicIterable):
        return content.length
    if isinstance(content, Tensor):
        if content.ndim == 0:
            raise TypeError("len() of a 0-D tensor")
        return content.shape[0]
    own = users_method(trace, content, "__len__")
    if own is not None:
        return own()
    return len(content) if type(content) in _BUILT_IN else natively(trace, len, content)


def range_(trace: Trace, *bounds: Any) -> Any:
    """Return `range(...)`, symbolic where a bound is."""
    bounds = tuple(trace.as_scalar(b) if isinstance(b, Variant) else b for b in bounds)
    return symbolic_range(trace, *bounds) if any(map(trace.is_symbolic, bounds)) else range(*bounds)


def _number(name: str) -> Callable[..., Any]:
    kind = getattr(builtins, name)

    def convert(trace: Trace, *args: Any, **keywords: Any) -> Any:
        x = args[0] if args else MISSING
        if isinstance(x, Variant):
            return switch(trace, x, lambda y: convert(trace, y, *args[1:], **keywords))
        if isinstance(x, Tensor):
            x = trace.item(x)
        if isinstance(x, Text):
            str(x)  # raises: Python needs it
        if isinstance(x, Scalar):
            return x if x.kind == name else Scalar(trace.emit(f"scalar_{name}", [x.value]))
        own = users_dunder(type_of(x), f"__{name}__") or users_dunder(type_of(x), "__index__")
        if own is not None and len(args) == 1:
            return convert(trace, trace.callable(own)(x))
        return kind(*args, **keywords)

    return convert


def bool_(trace: Trace, x: Any = False) -> Any:
    """Return `bool(x)`."""
    return as_bool(trace, x) if trace.is_symbolic(x) else truth(trace, x)


@by_alternative()
def isinstance_(trace: Trace, x: Any, kinds: Any) -> Any:
    """Return `isinstance(x, kinds)`; a symbolic number is what it will be when the Program runs."""
    if isinstance(x, Scalar):
        return issubclass(x.python_type, kinds)
    return isinstance(x, kinds)


@by_alternative()
def type_(trace: Trace, x: Any, *more: Any) -> Any:
    """Return `type(x)`."""
    return x.python_type if isinstance(x, Scalar) else type(x, *more)


@by_alternative(1)
def getattr_(trace: Trace, obj: Any, name: str, *default: Any) -> Any:
    """Return `getattr(...)`."""
    return attr(trace, obj, name, *default)


@by_alternative(1)
def hasattr_(trace: Trace, obj: Any, name: Any) -> Any:
    """Return `hasattr(...)`."""
    return has_attr(trace, obj, name)


def sum_(trace: Trace, items: Any, start: Any = 0) -> Any:
    """Return `sum(...)`."""
    content = trace.content(items)
    if isinstance(content, Tensor) and not isinstance(content.shape[0], int):
        return content.sum(0) + start
    if must_roll(trace, items):
        return fold(trace, items, start, lambda a, b: a + b)
    total = start
    for item in trace.iterate(items):
        total = total + item
    return total


def any_(trace: Trace, items: Any) -> Any:
    """Return `any(...)`."""
    items = iterated(trace, items)
    if isinstance(items, PushIterator):
        return quantified(trace, items, bool_, False)
    if isinstance(items, Variant):
        return switch(trace, items, lambda x: any_(trace, x))
    if must_roll(trace, items):
        return _of_unknown_length(trace, items, False)
    found = or_(trace, False, _asked_for(trace, items))
    return bool_(trace, found)


def all_(trace: Trace, items: Any) -> Any:
    """Return `all(...)`."""
    items = iterated(trace, items)
    if isinstance(items, PushIterator):
        return quantified(trace, items, bool_, True)
    if isinstance(items, Variant):
        return switch(trace, items, lambda x: all_(trace, x))
    if must_roll(trace, items):
        return _of_unknown_length(trace, items, True)
    found = and_(trace, True, _asked_for(trace, items))
    return bool_(trace, found)


def _asked_for(trace: Trace, items: Any) -> list[Callable[[], Any]]:
    """Return what gives each item of what Python runs through: the calls of a `map` are made where one is asked for."""
    if isinstance(items, CalledMap):
        check_moved(trace, items)
        return items.calls_left()
    return [lambda x=x: x for x in trace.iterate(items)]


def _of_unknown_length(trace: Trace, items: Any, every: bool) -> Any:
    """Return `all(items)` or `any(items)` where it is known only at run time how many there are."""
    content = trace.content(items)
    if isinstance(content, Tensor) and content.ndim == 1:
        true = content if content.dtype.is_bool else content != 0
        return trace.item(true.all() if every else true.any())
    if every:
        return fold(trace, items, True, lambda a, x: and_(trace, a, [lambda: bool_(trace, x)]))
    return fold(trace, items, False, lambda a, x: or_(trace, a, [lambda: bool_(trace, x)]))


@by_alternative()
def round_(trace: Trace, x: Any, *digits: Any) -> Any:
    """Return `round(...)`."""
    return round(x, *digits)


@by_alternative()
def abs_(trace: Trace, x: Any) -> Any:
    """Return `abs(x)`."""
    return abs(x)


def str_(trace: Trace, *args: Any) -> Any:
    """Return `str(x)`, text with values of the run where x has some."""
    return _text(trace, args[0], "s") if len(args) == 1 else str(*args)


@by_alternative()
def _text(trace: Trace, x: Any, conversion: str | None, spec: str = "") -> Any:
    return fstring(trace, (x, conversion, spec))


def repr_(trace: Trace, x: Any) -> Any:
    """Return `repr(x)`."""
    return _text(trace, x, "r")


def ascii_(trace: Trace, x: Any) -> Any:
    """Return `ascii(x)`."""
    return _text(trace, x, "a")


def format_(trace: Trace, x: Any, spec: str = "") -> Any:
    """Return `format(x, spec)`."""
    return _text(trace, x, None, spec)


def vars_(trace: Trace, *objects: Any) -> Any:
    """Return `vars(...)`."""
    return attr(trace, objects[0], "__dict__") if objects else vars()


@by_alternative(1)
def setattr_(trace: Trace, obj: Any, name: str, value: Any) -> None:
    """Do `setattr(...)`."""
    set_attr(trace, obj, name, value)


@by_alternative(1)
def delattr_(trace: Trace, obj: Any, name: Any) -> None:
    """Do `delattr(...)`."""
    del_attr(trace, obj, name)


def hash_(trace: Trace, x: Any) -> int:
    """Return `hash(x)` of a Python value; of a number known only at run time it cannot be known."""
    if isinstance(x, (Scalar, Variant)):
        raise needs_value("the hash of a value that only the run will tell was needed")
    return hash(x)


def dict_(trace: Trace, *args: Any, **keywords: Any) -> Any:
    """Return `dict(...)`."""
    return dict(*(trace.content(a) for a in args), **keywords)


def _over_list(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Return a built-in that runs through all of its first argument, with a list in the place of a generator."""

    def run(trace: Trace, *args: Any, **keywords: Any) -> Any:
        first = iterated(trace, args[0]) if args else None
        if isinstance(first, PushIterator):
            args = (list_(trace, first), *args[1:])
        elif args and first is not args[0]:
            args = (first, *args[1:])
        return convert(trace, *args, **keywords)

    return run


BUILTINS: dict[Any, Callable[..., Any]] = {
    print: print_, len: len_, range: range_, int: _number("int"), float: _number("float"), bool: bool_,
    isinstance: isinstance_, type: type_, getattr: getattr_, setattr: setattr_, hasattr: hasattr_,
    min: _over_list(extreme("min")), max: _over_list(extreme("max")), sum: _over_list(sum_), any: any_, all: all_,
    abs: abs_, round: round_, list: list_, tuple: _over_list(tuple_), str: str_, enumerate: enumerate_, zip: zip_,
    reversed: symbolic_reversed, iter: iter_, next: next_, map: map_, filter: filter_, sorted: _over_list(sorted_),
    dict: _over_list(dict_),
    object.__setattr__: set_as_object, object.__delattr__: del_plain_attr, type.__setattr__: set_plain_attr,
    delattr: delattr_, vars: vars_, hash: hash_, warnings.warn: warn, repr: repr_, ascii: ascii_,
    format: format_,
}  # fmt: skip
