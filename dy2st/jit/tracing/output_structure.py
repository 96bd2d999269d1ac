"""What a run gives back: Python objects made from the values that a Program returns."""

from __future__ import annotations

import functools
import gc
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.errors import StructureError
from dy2st.formatting import render
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program, Value
from dy2st.ir.types import INT, ListType, TupleType, Type, VariantType
from dy2st.jit.tracing.external_reads import ExternalReads
from dy2st.jit.tracing.output_choices import NO_OTHER, Told
from dy2st.jit.tracing.output_sharing import OutputSharing
from dy2st.kinds import TUPLE, derives, is_class, is_dict, is_tuple, type_of
from dy2st.naming import is_plain_module
from dy2st.ops.core.bundle import Bundle
from dy2st.runtime.eager.device import namespace_among
from dy2st.runtime.eager.shape_list import Extents
from dy2st.runtime.eager.tape.node import call, freed
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.union_cast import names
from dy2st.runtime.tracer.loops.generators import PushIterator
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
    refuse_attributes,
)
from dy2st.runtime.tracer.values.container_classes import CONTENT, bare, is_of_users_class, put_part
from dy2st.runtime.tracer.values.object_attributes import attributes
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.shared_objects import AfterObjects, MadeObject, SameArgument, SameObject
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable
from dy2st.runtime.tracer.values.symbolic_iterator import TracedIterator, is_own
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

MAPPINGS: tuple[type[Any], ...] = (OrderedDict, Counter, defaultdict)
LIKE_BUILTINS = (*CONTAINERS, *MAPPINGS, Extents)
PLAIN: tuple[type, ...] = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    types.ModuleType,
    types.CodeType,
    np.ndarray,
    DType,
)


def output_aval(trace: ExternalReads, x: Any, sharing: OutputSharing | None = None) -> AbstractValue:
    """Return the abstract value of something that leaves the Program: containers made in the trace are taken apart.

    What `sharing` has met before is that object again.
    """
    if (is_own(x) and id(x) not in trace.external) or isinstance(x, (TracedIterator, SymbolicIterable, PushIterator)):
        raise StructureError("an iterator leaves the function, which no Program can hand out: return a list")
    inner = functools.partial(output_aval, trace, sharing=sharing)
    if is_tuple(x):
        refuse_attributes(trace, x)
        return Items(type_of(x), tuple(map(inner, x)))
    if sharing is None and id(x) in trace.stand_in_objects:
        raise StructureError(f"a {type(x).__name__} that is an argument leaves the function")
    if sharing is not None and (found := sharing.again(x)) is not None:
        return found
    record = getattr(type_of(x), "leaves_programs", False) and id(x) not in trace.external and _holds_symbolic(x)
    number = None if sharing is None or not (record or sharing.is_made(x)) else sharing.number(x)
    own = isinstance(x, CONTAINERS) and type(x) in LIKE_BUILTINS and id(x) not in trace.external
    is_open = own and type(x) not in CONTAINERS and not isinstance(trace.content(x), CONTAINERS)
    if own and not is_open:
        content, kind = trace.content(x), type_of(x)
        if not isinstance(content, CONTAINERS):
            made = written_aval(trace, content, sharing)
        elif is_dict(content):
            made_by: Any = functools.partial(kind, x.default_factory) if derives(kind, defaultdict) else kind
            made = Items(made_by, tuple(map(inner, content.values())), tuple(content))
        else:
            made = Items(kind, tuple(map(inner, content)))
    elif is_open or id(x) in trace.made.objects or (is_of_users_class(x) and id(x) not in trace.external):
        parts = trace.made_of(x)
        items = (_held(trace, x, sharing) if name == CONTENT else inner(i) for name, i in parts.items())
        made = NewObject(type_of(x), tuple(parts), tuple(items))
    elif record:
        parts = attributes(x)
        made = NewObject(type_of(x), tuple(parts), tuple(map(inner, parts.values())))
    else:
        made = _constant(trace, x)
        if sharing is not None and number is None:
            return sharing.after(made, inner, x if made.children else None)
    return made if number is None else MadeObject(number, made)


def _held(trace: ExternalReads, x: Any, sharing: OutputSharing | None) -> AbstractValue:
    return NewList(written_aval(trace, trace.content(x), sharing))


def _constant(trace: ExternalReads, x: Any) -> AbstractValue:
    found = abstract_value_of(trace, trace.rebound.outside(x) if type(x) is FunctionType else x)
    names(found, lambda thing: _refuse_symbolic(trace, thing))
    return found


def _refuse_symbolic(trace: ExternalReads, x: Any) -> bool:
    """Raise StructureError where a constant of an output refers to what only the trace knows; return False."""
    known = id(x) in trace.external or id(x) in trace.arguments or id(x) in trace.made.objects
    changed = isinstance(x, CONTAINERS) and trace.log.get(("items", id(x))) is not MISSING
    if not known and type(x) not in CONTAINERS and (changed or _holds_symbolic(x)):
        raise StructureError(
            f"a {type(x).__name__} that holds tensors of the Program leaves the function",
            hint="return the tensors, and make it of them outside",
        )
    return False


def written_aval(trace: ExternalReads, content: Any, sharing: OutputSharing | None = None) -> AbstractValue:
    """Return the abstract value of what a container holds in the end, or of elements written in place."""
    inner = functools.partial(output_aval, trace, sharing=sharing)
    if is_dict(content):
        return Items(dict, tuple(map(inner, content.values())), tuple(content))
    if isinstance(content, CONTAINERS):
        return Items(next(k for k in CONTAINERS if isinstance(content, k)), tuple(map(inner, content)))
    found = abstract_value_of(trace, content)
    if sharing is None or not isinstance(content, (SymbolicList, Variant)):
        return found
    return sharing.after(found, inner)


def _holds_symbolic(x: Any) -> bool:
    """Return whether an object refers, over a few steps, to something that only a trace knows."""
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
    return isinstance(x, (Scalar, Variant)) or (isinstance(x, Tensor) and isinstance(x.payload, Value))


class SharedObjects:
    """What one call makes under a number, the containers that it was given, and tensors by the ids of their arrays."""

    __slots__ = ("containers", "holders", "made")

    def __init__(self, containers: Sequence[Any] = ()):
        self.containers = containers
        self.holders: dict[int, Tensor] = {}
        self.made: dict[int, Any] = {}


NOTHING = SharedObjects()


def restore(values: Iterator[Any], t: AbstractValue, shared: SharedObjects = NOTHING) -> Any:
    """Return the object that run-time values (tensors, numbers) make up; takes from `values` what it needs."""
    if isinstance(t, Const):
        return t.object
    if isinstance(t, Unset):
        return UnboundLocal(t.name)
    if isinstance(t, TensorLike):
        made = next(values)
        if type(made) is Told:
            return _restore_told(made, t, shared)
        if t.stop_gradient and not made.stop_gradient:
            made.stop_gradient, made.tape_node = True, None
        if shared is not NOTHING and shared.holders.setdefault(id(made.payload), made) is not made:
            made.payload = made.payload.copy()  # one value to the Program, two tensors that may be written
        return made
    if isinstance(t, Number):
        return _made(next(values))
    if isinstance(t, Items):
        items = [restore(values, i, shared) for i in t.items]
        if t.keys is not None:
            pairs = {k: v for k, v in zip(t.keys, items, strict=True) if not isinstance(v, UnboundLocal)}
            return pairs if t.kind is dict else t.kind(pairs)
        kind: Any = t.kind  # or a `partial` of one
        return TUPLE.__new__(kind, items) if is_class(kind) and derives(kind, tuple) else kind(items)
    if isinstance(t, NewList):
        return restore(values, t.content, shared)
    if isinstance(t, NewObject):
        return _fill(bare(t.kind), t, values, shared)
    if isinstance(t, TextOf):
        operands = [_made(next(values)) for _ in t.items]
        return "".join(render(t.parts, tuple(getattr(v, "payload", v) for v in operands)))
    if isinstance(t, ListOf):
        return _restore_list(next(values), t, shared)
    if isinstance(t, OneOf):
        return _restore_variant(next(values), t, shared)
    return _restore_shared(values, t, shared)


def _restore_shared(values: Iterator[Any], t: AbstractValue, shared: SharedObjects) -> Any:
    """Return what the call has as an object that is met at several places."""
    if isinstance(t, SameObject):
        return shared.made[t.number]
    if isinstance(t, SameArgument):
        return shared.containers[t.index]
    if isinstance(t, AfterObjects):
        for item in t.items:
            restore(values, item, shared)
        return restore(values, t.then, shared)
    assert isinstance(t, MadeObject)
    inside = t.content
    if isinstance(inside, NewObject):  # there before what is in it, which may lead to it
        shared.made[t.number] = bare(inside.kind)
        return _fill(shared.made[t.number], inside, values, shared)
    if isinstance(inside, Items) and inside.kind in CONTAINERS:
        empty: Any = inside.kind()
        shared.made[t.number] = empty
        found = restore(values, inside, shared)
        empty.update(found) if hasattr(empty, "update") else empty.extend(found)
        return empty
    shared.made[t.number] = restore(values, inside, shared)
    return shared.made[t.number]


def _fill(made: Any, t: NewObject, values: Iterator[Any], shared: SharedObjects) -> Any:
    """Give an object its attributes."""
    for name, item in zip(t.names, t.items, strict=True):
        x = restore(values, item, shared)
        if not isinstance(x, UnboundLocal):
            put_part(made, name, x)
    return made


def _made(value: Any) -> Any:
    return value.made if type(value) is Told else value


def _restore_told(told: Told, t: TensorLike, shared: SharedObjects) -> Any:
    """Return the tensor of which a run has told the number: one that the call has already, or else this one."""
    if told.numbers in told.known:
        return told.known[told.numbers]
    made = restore(iter([told.made]), t, shared)
    if told.numbers != NO_OTHER:
        told.known[told.numbers] = made
    return made


def _restore_list(made: Tensor | Told, t: ListOf, shared: SharedObjects) -> list[Any]:
    kind = t.types()[0]
    assert isinstance(kind, ListType)
    whole: Any = _made(made)
    told = made if isinstance(made, Told) and not isinstance(made.numbers, int) else None
    items: list[Any] = []
    xp = namespace_among([whole.payload])
    for i, x in enumerate(whole.payload):
        if told is not None and isinstance(t.element, TensorLike) and told.numbers[i] in told.known:
            items.append(told.known[told.numbers[i]])
            continue
        if whole.tape_node is None:
            item = _tensor(x)
        else:
            item = freed(_tensor(x)) if whole.tape_node.freed else call(Tensor, _getter(kind), [whole, i], xp)[0]
        item = item if told is None else Told(item, told.numbers[i], told.known)
        items.append(_restore_packed(item, kind.element, t.element, shared))
    return items


def _restore_variant(made: Tensor | Told, t: OneOf, shared: SharedObjects) -> Any:
    kind = t.types()[0]
    assert isinstance(kind, VariantType)
    told = made if isinstance(made, Told) else None
    whole: Any = made if told is None else told.made
    if not is_tuple(whole.payload):  # a tensor that the call found (output_choices.py)
        return whole
    tag: int
    tag, payload = whole.payload
    if payload is None:
        return restore(iter(()), t.alternatives[tag], shared)
    inner = (
        _tensor(payload)
        if whole.tape_node is None
        else call(Tensor, _unwrapper(kind, tag), [whole], namespace_among([payload]))[0]
    )
    if told is not None:  # one number where only one alternative has one
        inner = Told(inner, told.numbers[1] if is_tuple(told.numbers) else told.numbers, told.known)
    return _restore_packed(inner, kind.alternatives[tag], t.alternatives[tag], shared)


def _restore_packed(made: Any, kind: Type, t: AbstractValue, shared: SharedObjects) -> Any:
    """Return the object of one packed value: a tuple value is taken apart."""
    if not isinstance(kind, TupleType):
        return restore(iter([made]), t, shared)
    whole = _made(made)
    if whole.tape_node is None:
        parts = [_tensor(x) for x in whole.payload.items]
    else:
        parts = call(Tensor, _splitter(kind), [whole], namespace_among([whole.payload]))
    if made is not whole and isinstance(made.numbers, Bundle):
        parts = [Told(part, n, made.known) for part, n in zip(parts, made.numbers.items, strict=True)]
    return restore(iter(parts), t, shared)


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
