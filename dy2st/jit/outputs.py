"""What a run gives back: Python objects made from the values that a Program returns."""

from __future__ import annotations

import functools
import gc
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.errors import StructureError
from dy2st.formatting import render
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import INT, ListType, TupleType, Type, VariantType
from dy2st.jit.same_results import Handed, Known, Repeated, made_of_values, skip
from dy2st.naming import is_plain_module
from dy2st.runtime.attributes import put_attribute
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.contents import CONTAINERS
from dy2st.runtime.log import MISSING
from dy2st.runtime.pushed import Pushed
from dy2st.runtime.recasting import names
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.symbolic_range import SymbolicIterable
from dy2st.runtime.tape import call, freed
from dy2st.runtime.templates import (
    Const,
    Items,
    ListOf,
    NewList,
    NewObject,
    Number,
    OneOf,
    Template,
    TensorLike,
    TextOf,
    Unset,
    template_of,
    types_of,
)
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.traced_iterator import TracedIterator, is_own
from dy2st.runtime.undefined import Undefined
from dy2st.runtime.variant import SymbolicList, Variant

MAPPINGS = (OrderedDict, Counter, defaultdict)
PLAIN = (str, bytes, int, float, complex, type(None), type, types.ModuleType, types.CodeType, np.ndarray, DType)


def output_template(trace: Any, x: Any) -> Template:
    """Return the template of something that leaves the Program: containers made in the trace are taken apart."""
    if (is_own(x) and id(x) not in trace.external) or isinstance(x, (TracedIterator, SymbolicIterable, Pushed)):
        raise StructureError("an iterator leaves the function, which no Program can hand out: return a list")
    if type(x) in CONTAINERS and id(x) not in trace.external:
        content = trace.content(x)
        if isinstance(content, (SymbolicList, Variant)):
            return template_of(trace, content)
        if isinstance(content, dict):
            return Items(dict, tuple(output_template(trace, i) for i in content.values()), tuple(content))
        return Items(type(x), tuple(output_template(trace, i) for i in content))
    if isinstance(x, tuple):
        return Items(type(x), tuple(output_template(trace, i) for i in x))
    if isinstance(x, dict) and type(x) in MAPPINGS and id(x) not in trace.external:
        content = trace.content(x)
        kind: Any = functools.partial(defaultdict, x.default_factory) if isinstance(x, defaultdict) else type(x)
        return Items(kind, tuple(output_template(trace, i) for i in content.values()), tuple(content))
    if id(x) in trace.stand_in_objects:
        raise StructureError(f"a {type(x).__name__} that is an argument leaves the function")
    if id(x) in trace.made_objects:
        found = trace.attributes_of(x)
        return NewObject(type(x), tuple(found), tuple(output_template(trace, i) for i in found.values()))
    found = template_of(trace, x)
    names(found, lambda thing: _refuse_symbolic(trace, thing))
    return found


def _refuse_symbolic(trace: Any, x: Any) -> bool:
    """Raise StructureError where a constant of an output refers to what only the trace knows; return False."""
    if id(x) not in trace.external and _holds_symbolic(x):
        raise StructureError(
            f"a {type(x).__name__} that holds tensors of the Program leaves the function",
            hint="return the tensors, and make it of them outside",
        )
    return False


def written_template(trace: Any, content: Any) -> Template:
    """Return the template of what a container from outside holds in the end, or of elements written in place."""
    if isinstance(content, dict):
        return Items(dict, tuple(output_template(trace, i) for i in content.values()), tuple(content))
    if isinstance(content, CONTAINERS):
        kind = next(k for k in CONTAINERS if isinstance(content, k))
        return Items(kind, tuple(output_template(trace, i) for i in content))
    return template_of(trace, content)


def _holds_symbolic(x: Any) -> bool:
    """Say whether an object refers, over a few steps, to something that only a trace knows."""
    if isinstance(x, type) and not is_plain_module(x.__module__):
        return any(map(_is_of_trace, vars(x).values()))
    if isinstance(x, PLAIN):
        return False
    seen: dict[int, Any] = {id(x): x}
    level = [x]
    for _ in range(5):
        level = [i for i in gc.get_referents(*level) if id(i) not in seen and not isinstance(i, PLAIN)][:2000]
        seen.update((id(i), i) for i in level)
        if any(map(_is_of_trace, level)):
            return True
    return False


def _is_of_trace(x: Any) -> bool:
    return isinstance(x, (Scalar, Variant)) or (isinstance(x, Tensor) and isinstance(x._payload, Value))


def restore(values: Iterator[Any], t: Template, known: Known | None = None) -> Any:
    """Return the object that run-time values (tensors, numbers) make up; takes from `values` what it needs.

    `known` has what the call took and, in the end, the objects that stand in the output several times.
    """
    if known is not None and isinstance(t, (Handed, Repeated)):
        found = known.found(t)
        if found is MISSING:
            return known.keep(t, restore(values, t.content, known))
        skip(values, t.content)
        return found
    if isinstance(t, Const):
        return t.object
    if isinstance(t, Unset):
        return Undefined(t.name)
    if isinstance(t, TensorLike):
        made = next(values)
        if t.stop_gradient and not made.stop_gradient:
            made.stop_gradient, made._node = True, None
        return made
    if isinstance(t, Number):
        return next(values)
    if isinstance(t, Items):
        items = [restore(values, i, known) for i in t.items]
        if t.keys is not None:
            pairs = {k: v for k, v in zip(t.keys, items, strict=True) if not isinstance(v, Undefined)}
            return pairs if t.kind is dict else t.kind(pairs)
        return t.kind(*items) if hasattr(t.kind, "_fields") else t.kind(items)
    if isinstance(t, NewList):
        return restore(values, t.content)
    if isinstance(t, NewObject):
        again = object.__new__(t.kind)
        found = zip(t.names, [restore(values, i, known) for i in t.items], strict=True)
        for name, x in found:
            if not isinstance(x, Undefined):
                put_attribute(again, name, x)
        return again
    if isinstance(t, TextOf):
        operands = [next(values) for _ in t.items]
        return "".join(render(t.parts, tuple(getattr(v, "_payload", v) for v in operands)))
    if isinstance(t, ListOf):
        return _restore_list(next(values), t)
    assert isinstance(t, OneOf)
    return _restore_variant(next(values), t, known)


def _restore_list(made: Tensor, t: ListOf) -> list[Any]:
    kind = types_of(t)[0]
    assert isinstance(kind, ListType)
    items = made._payload
    if made._node is None:
        return [_restore_packed(_tensor(x), kind.element, t.element) for x in items]
    if made._node.freed:
        return [_restore_packed(freed(_tensor(x)), kind.element, t.element) for x in items]
    return [_restore_packed(call(Tensor, _getter(kind), [made, i], np)[0], kind.element, t.element)
            for i in range(len(items))]  # fmt: skip


def _restore_variant(made: Tensor, t: OneOf, known: Known | None = None) -> Any:
    tag, payload = made._payload
    chosen = t.alternatives[tag]
    if known is not None and isinstance(chosen, Handed):
        return known.found(chosen)
    t = made_of_values(t)
    kind = types_of(t)[0]
    assert isinstance(kind, VariantType)
    if payload is None:
        return restore(iter(()), t.alternatives[tag])
    inner = _tensor(payload) if made._node is None else call(Tensor, _unwrapper(kind, tag), [made], np)[0]
    return _restore_packed(inner, kind.alternatives[tag], t.alternatives[tag])


def _restore_packed(made: Any, kind: Type, t: Template) -> Any:
    """Return the object of one packed value: a tuple value is taken apart."""
    if not isinstance(kind, TupleType):
        return restore(iter([made]), t)
    if made._node is None:
        return restore(iter([_tensor(x) for x in made._payload.items]), t)
    return restore(iter(call(Tensor, _splitter(kind), [made], np)), t)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else Tensor(value)


@lru_cache(maxsize=256)
def _getter(kind: ListType) -> Compiled:
    b = Builder()
    b.block.results = [b.list_get(b.argument(kind), b.argument(INT))]
    return Compiled(Program({"main": b.block}))


@lru_cache(maxsize=256)
def _unwrapper(kind: VariantType, tag: int) -> Compiled:
    b = Builder()
    b.block.results = [b.variant_get(b.argument(kind), tag=tag, message="")]
    return Compiled(Program({"main": b.block}))


@lru_cache(maxsize=256)
def _splitter(kind: TupleType) -> Compiled:
    b = Builder()
    b.block.results = b.operation("tuple_get", [b.argument(kind)]).results
    return Compiled(Program({"main": b.block}))
