"""`sorted`, `min` and `max` on symbolic values: what Python compares is compared when the Program runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import reduce
from typing import Any

from dy2st.dtypes import float64, int64
from dy2st.ir.opdef import OpDef
from dy2st.ir.types import ScalarType
from dy2st.kinds import is_tuple
from dy2st.ops.control.scalar import ScalarMax, ScalarMin
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.access.items import item
from dy2st.runtime.tracer.access.symbolic_list import as_symbolic
from dy2st.runtime.tracer.builtins.container_methods import method
from dy2st.runtime.tracer.builtins.iteration import collected, must_roll
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.loop_statement import fold, for_
from dy2st.runtime.tracer.values.abstract import Items
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable, iterable_of
from dy2st.runtime.tracer.values.symbolic_scalar import Number, Scalar
from dy2st.runtime.tracer.values.union import SymbolicList

Key = Callable[[Any], Any]


# ---- sorted --------------------------------------------------------------------------------------------------------
def sorted_(trace: Trace, items: Any, *, key: Any = None, reverse: bool = False) -> Any:
    """Return `sorted(...)`; where the keys are symbolic, a list whose order the run finds."""
    content = trace.content(items)
    if isinstance(content, Tensor) and content.ndim == 1 and key is None and must_roll(trace, content):
        return collected(trace, content.sort(descending=bool(reverse)))
    call: Key = (lambda x: x) if key is None else trace.callable(key)
    if must_roll(trace, items):
        elements = collected(trace, items)
        keys = collected(trace, iterable_of(trace, elements), of=lambda x: _components(trace, call(x)))
        return _in_order(trace, elements, _columns(trace, keys), bool(reverse))
    known = list(trace.iterate(items))
    found = [call(x) for x in known]
    if not any(_is_symbolic(trace, k) for k in found):
        return [known[i] for i in natively(trace, _places, found, reverse)]
    elements: list[Any] = []
    keys: list[Any] = []
    trace.store(elements, as_symbolic(trace, known))
    trace.store(keys, as_symbolic(trace, [_components(trace, k) for k in found]))
    return _in_order(trace, elements, _columns(trace, keys), bool(reverse))


def _places(keys: list[Any], reverse: bool) -> list[int]:
    """Return the places of things in the order of their keys."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def _is_symbolic(trace: Trace, key: Any) -> bool:
    return any(_is_symbolic(trace, k) for k in key) if is_tuple(key) else trace.is_symbolic(key)


def _components(trace: Trace, key: Any) -> tuple[Any, ...]:
    """Return the numbers that decide the order, the first first."""
    if is_tuple(key):
        return tuple(number for part in key for number in _components(trace, part))
    if isinstance(key, Tensor):
        key = trace.item(key)
    if not isinstance(key, (Scalar, *Number)):
        raise needs_value(f"sorted() of things that are compared by a {type(key).__name__}, in an order of the run")
    return (key,)


def _columns(trace: Trace, keys: Any) -> list[Tensor]:
    """Return a vector for each component of the keys in a list of tuples."""
    content = trace.content(keys)
    assert isinstance(content, SymbolicList)
    if not isinstance(content.element, Items):
        raise needs_value("sorted() by keys of different lengths, in an order of the run")
    made: list[Tensor] = []
    for i, aval in enumerate(content.element.items):
        whole = aval.number_kind in ("int", "bool")
        part = functools.partial(_part, trace, i, whole)
        numbers = trace.content(collected(trace, iterable_of(trace, keys), of=part))
        dtype = int64 if whole else float64
        made.append(trace.wrap(trace.emit("list_to_tensor", [numbers.value], {"dtype": dtype}), True))
    return made


def _part(trace: Trace, i: int, whole: bool, key: Any) -> Any:
    """Return a part of a key, as a float where it is not `whole`."""
    return key[i] if whole else trace.callable(float)(key[i])


def _in_order(trace: Trace, elements: list[Any], columns: list[Tensor], reverse: bool) -> list[Any]:
    """Return the elements of a list in the order of the columns, the first of which counts most; it is stable."""
    order: Any = None
    for column in reversed(columns):
        more = (column if order is None else column[order]).argsort(descending=reverse)
        order = more if order is None else order[more]
    made: list[Any] = []
    trace.store(made, [])
    append = method(trace, made, "append")
    for_(trace, order, lambda i: append(item(trace, elements, trace.item(i))), tuple, lambda _: None, (), None)
    return made


# ---- min and max -----------------------------------------------------------------------------------------------------
def extreme(name: str) -> Callable[..., Any]:
    """Return what stands for `min` or `max`."""
    python, op = (min, ScalarMin()) if name == "min" else (max, ScalarMax())

    def convert(trace: Trace, *args: Any, **keywords: Any) -> Any:
        key = keywords.get("key")
        call: Key | None = None if key is None else trace.callable(key)
        if len(args) == 1 and must_roll(trace, args[0]):
            return _of_unknown_length(trace, name, op, args[0], call, keywords)
        items = list(trace.iterate(args[0])) if len(args) == 1 else list(args)
        keys = items if call is None else [call(x) for x in items]
        if not items or not any(map(trace.is_symbolic, keys)):
            if call is None or not items:
                return python(items, **keywords)
            return items[python(range(len(items)), key=keys.__getitem__)]
        if call is None:
            return reduce(lambda a, b: _pick(trace, op, a, b), items)
        return reduce(lambda a, b: _pick_by_key(trace, op, a, b), zip(items, keys, strict=True))[0]

    return convert


def _of_unknown_length(trace: Trace, name: str, op: OpDef, x: Any, call: Key | None, keywords: dict[str, Any]) -> Any:
    """Return `min(x)` or `max(x)` of something whose length is known only at run time."""
    items = iterable_of(trace, x)
    assert items is not None
    empty = (lambda: keywords["default"]) if "default" in keywords else lambda: _raise_empty(name)
    return trace.if_exp(items.length == 0, empty, lambda: _of_some(trace, op, x, items, call))


def _of_some(trace: Trace, op: OpDef, x: Any, items: SymbolicIterable, call: Key | None) -> Any:
    content = trace.content(x)
    if call is None and isinstance(content, Tensor) and content.ndim == 1:
        return content[content.argmin() if isinstance(op, ScalarMin) else content.argmax()]
    first = items.get(0)
    if call is None:
        return fold(trace, x, first, lambda a, b: _pick(trace, op, a, b))
    start = (first, call(first))
    return fold(trace, x, start, lambda a, b: _pick_by_key(trace, op, a, (b, call(b))))[0]


def _raise_empty(name: str) -> None:
    raise ValueError(f"{name}() iterable argument is empty")


def _pick(trace: Trace, op: OpDef, a: Any, b: Any) -> Any:
    """Return `b` where it is beyond `a`, else `a`, as Python's min and max do."""
    if isinstance(a, (Scalar, int, float)) and isinstance(b, (Scalar, int, float)):
        first, second = trace.scalar(a), trace.scalar(b)
        kinds = [v.type.kind for v in (first, second) if isinstance(v.type, ScalarType)]
        if len(set(kinds)) == 1:  # else the result is an int or a float, as it comes
            return Scalar(trace.emit(op.name, [first, second]))
    beyond = b < a if isinstance(op, ScalarMin) else b > a
    return trace.if_exp(beyond, lambda: b, lambda: a)


def _pick_by_key(trace: Trace, op: OpDef, a: tuple[Any, Any], b: tuple[Any, Any]) -> Any:
    """Return the pair of an item and its key that Python's min and max would keep."""
    beyond = b[1] < a[1] if isinstance(op, ScalarMin) else b[1] > a[1]
    return trace.if_exp(beyond, lambda: b, lambda: a)
