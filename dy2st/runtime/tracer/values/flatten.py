"""Python objects taken apart into values and made of them again, as their abstract values say.

flatten(trace, x, t)          the values of `x` seen as `t`, emitted where the builder stands
unflatten(trace, values, t)   the object again
pack, unpack                  the same for one value: an element of a list, the payload of a variant
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.program import Value
from dy2st.ir.types import (
    TupleType,
)
from dy2st.kinds import TUPLE, derives, is_tuple
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    Items,
    ListOf,
    NewList,
    NewObject,
    Number,
    OneOf,
    TensorLike,
    TextOf,
    Unset,
    abstract_value_of,
    content_value,
)
from dy2st.runtime.tracer.values.container_classes import is_of_users_class
from dy2st.runtime.tracer.values.join import place, same_form
from dy2st.runtime.tracer.values.shared_objects import AfterObjects, MadeObject, SameArgument, SameObject
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.runtime.tracer.values.trace import ValueTrace
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def flatten(trace: ValueTrace, x: Any, t: AbstractValue) -> list[Value]:
    """Return the values of `x` seen as `t`, emitted where the builder stands."""
    b = trace.builder
    if isinstance(t, (Const, Unset, SameObject, SameArgument)):
        return []
    if isinstance(t, MadeObject):
        return flatten(trace, x, t.content)
    if isinstance(t, AfterObjects):
        pairs = [*zip(t.objects, t.items, strict=True), (x, t.then)]
        return [v for part, item in pairs for v in flatten(trace, part, item)]
    if isinstance(t, TensorLike):
        return [b.use(trace.value_of(x))]
    if isinstance(t, Number):
        return [b.use(trace.scalar(x))]
    if isinstance(t, Items):
        x = trace.content(x)
        parts = [x.get(k, UnboundLocal("")) for k in t.keys] if t.keys is not None else list(x)
        if len(parts) != len(t.items):
            raise StructureError("a container inside of another one has different lengths on two paths")
        return [v for part, item in zip(parts, t.items, strict=True) for v in flatten(trace, part, item)]
    if isinstance(t, NewList):
        return flatten(trace, trace.content(x), t.content)
    if isinstance(t, NewObject):
        found = trace.made_of(x)
        parts = [found.get(n, UnboundLocal(n)) for n in t.names]
        return [v for part, item in zip(parts, t.items, strict=True) for v in flatten(trace, part, item)]
    if isinstance(t, TextOf):
        return [b.use(v) for v in x.operands]
    if isinstance(t, ListOf):
        return [_flatten_list(trace, trace.content(x), t)]
    assert isinstance(t, OneOf)
    return [_flatten_variant(trace, x, t)]


def _flatten_list(trace: ValueTrace, x: Any, t: ListOf) -> Value:
    kind = trace.builder.named(t.types()[0])
    if isinstance(x, SymbolicList):
        if x.element == t.element:
            return trace.builder.use(x.value)
        wide = trace.widened(x, t.element)
        if wide.element != t.element:
            raise StructureError("the elements of a list change their type inside of a loop or branch")
        if wide.value.type == kind:
            return trace.builder.use(wide.value)
        return trace.builder.emit("list_widen", [wide.value], {"type": kind, "tags": (), "wrap": False})
    for item in x:
        trace.lend(item)
    items = [pack(trace, item, t.element) for item in x]
    return trace.builder.emit("list_new", items, {"type": kind})


def pack(trace: ValueTrace, x: Any, t: AbstractValue) -> Value:
    """Return one value for an element of a list."""
    values = flatten(trace, x, t)
    if len(values) == 1 and not t.is_taken_apart:
        return values[0]
    return trace.builder.emit("tuple_new", values)


def _flatten_variant(trace: ValueTrace, x: Any, t: OneOf) -> Value:
    b, kind = trace.builder, trace.builder.named(t.types()[0])
    if not any(isinstance(a, Const) and a.object is x for a in t.alternatives) and not is_of_users_class(x):
        content = trace.content(x)
        x = content if isinstance(content, Variant) else x
    if isinstance(x, Variant):
        if x.alternatives == t.alternatives:
            return b.use(x.value)
        tags = tuple(_place_of_aval(trace, a, t) for a in x.alternatives)
        if all(
            same_form(a.packed(), t.alternatives[k].packed()) for a, k in zip(x.alternatives, tags, strict=True) if k
        ):
            return b.emit("variant_cast", [x.value], {"type": kind, "tags": tags})
        return trace.recast(x, t, kind, tags)
    return _new_variant(trace, x, t, _place_of(trace, x, t))


def _new_variant(trace: ValueTrace, x: Any, t: OneOf, tag: int) -> Value:
    b, kind = trace.builder, trace.builder.named(t.types()[0])
    values = flatten(trace, x, t.alternatives[tag])
    if t.alternatives[tag].is_taken_apart:
        values = [b.emit("tuple_new", values)]
    return b.emit("variant_new", values, {"type": kind, "tag": tag})


def with_alternative(trace: ValueTrace, variant: Variant, tag: int, x: Any, aval: AbstractValue) -> Variant:
    """Return a variant that is `x` under a tag, as this abstract value says, and may be what `variant` may be
    otherwise.
    """
    found = tuple(aval if i == tag else a for i, a in enumerate(variant.alternatives))
    return Variant(_new_variant(trace, x, OneOf(found), tag), found)


def _place_of_aval(trace: ValueTrace, a: AbstractValue, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits another; a constant container may be made anew there."""
    named = isinstance(a, Const) and isinstance(a.object, (list, dict, set, deque)) and a not in t.alternatives
    return _place_of(trace, a.object, t) if named else place(a, t)  # type: ignore[attr-defined]


def _place_of(trace: ValueTrace, x: Any, t: OneOf) -> int:
    """Return the number of the alternative of `t` that fits an object."""
    for i, one in enumerate(t.alternatives):  # what was there before is itself
        if isinstance(one, Const) and one.object is x and not isinstance(x, (bool, int, float, str)):
            return i
    for i, one in enumerate(t.alternatives):  # what a branch made is known by its type alone
        if isinstance(one, NewObject) and type(x) is one.kind:
            return i
        if isinstance(one, NewList) and type(x) is one.kind:
            return i
    kinds = [list if isinstance(a, ListOf) else a.kind for a in t.alternatives if isinstance(a, (Items, ListOf))]
    is_content = not is_tuple(x) and any(isinstance(x, kind) for kind in kinds)
    return place(content_value(trace, trace.content(x)) if is_content else abstract_value_of(trace, x), t)


def unflatten(trace: ValueTrace, values: Iterator[Value], t: AbstractValue) -> Any:
    """Return the object that `values` make up; takes from `values` what it needs."""
    if isinstance(t, Const):
        return t.object
    if isinstance(t, Unset):
        return UnboundLocal(t.name)
    if isinstance(t, TensorLike):
        return trace.wrap(next(values), t.stop_gradient)
    if isinstance(t, Number):
        return Scalar(next(values), t.choices)
    if isinstance(t, Items):
        return _rebuild(t, [unflatten(trace, values, i) for i in t.items])
    if isinstance(t, NewList):
        content = unflatten(trace, values, t.content)
        fresh: Any = t.kind()
        trace.store(fresh, content)
        return fresh
    if isinstance(t, NewObject):
        return trace.new_object(t.kind, dict(zip(t.names, [unflatten(trace, values, i) for i in t.items], strict=True)))
    if isinstance(t, TextOf):
        return Text(t.parts, [next(values) for _ in t.items])
    if isinstance(t, ListOf):
        return SymbolicList(next(values), t.element)
    assert isinstance(t, OneOf)
    return Variant(next(values), t.alternatives)


def _rebuild(t: Items, items: list[Any]) -> Any:
    if t.keys is not None:
        return {k: v for k, v in zip(t.keys, items, strict=True) if not isinstance(v, UnboundLocal)}
    return TUPLE.__new__(t.kind, items) if derives(t.kind, tuple) else t.kind(items)


def unpack(trace: ValueTrace, value: Value, t: AbstractValue) -> Any:
    """Return the object of a list element or of a variant's payload."""
    if isinstance(value.type, TupleType):
        parts = trace.builder.operation("tuple_get", [value]).results
        return unflatten(trace, iter(parts), t)
    return unflatten(trace, iter([value]), t)


def alternative(trace: ValueTrace, variant: Variant, tag: int) -> Any:
    """Return what a variant is under `tag`; a run in which it is something else raises there."""
    aval = variant.alternatives[tag]
    if not aval.types() and not aval.holds_objects:
        return unflatten(trace, iter(()), aval)
    name = getattr(variant.alternatives[0], "name", "")
    message = f"cannot access local variable '{name}' where it is not associated with a value"
    attributes = {"tag": tag, "message": message}
    found = unpack(trace, trace.emit("variant_get", [variant.value], attributes), aval)
    if isinstance(found, Tensor):  # what is written into it goes to the variant
        trace.make_view(found, variant, attributes)
    trace.aliases.hold(found)
    if aval.holds_objects:
        trace.borrows.taken(variant.whole, tag, found)
    return found
