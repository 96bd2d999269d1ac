"""`and`, `or`, `not`, chained comparison, `is` and `in` on symbolic values: Python's values and short circuit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dy2st.ir.types import TensorType
from dy2st.kinds import is_dict, is_sequence, is_set, is_tuple, type_of
from dy2st.runtime.eager.shape_list import Extents
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.access.items import users_method
from dy2st.runtime.tracer.access.operators import compared, truth, users_dunder
from dy2st.runtime.tracer.access.symbolic_keys import is_among, is_open
from dy2st.runtime.tracer.control_flow.conditional import Assigned, if_exp, predicate, switch
from dy2st.runtime.tracer.effects.alias_analysis import root
from dy2st.runtime.tracer.effects.container_state import CONTAINERS
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Const,
    NewList,
    NewObject,
    Number,
    TensorLike,
    abstract_value_of,
)
from dy2st.runtime.tracer.values.container_classes import own_method
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable, iterable_of, sequence_of
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

Thunk = Callable[[], Any]


def and_(trace: Trace, first: Any, thunks: Sequence[Thunk], assigned: Assigned | None = None) -> Any:
    """Return what `first and ...` gives."""
    for i, thunk in enumerate(thunks):
        if trace.is_symbolic(first):
            value = first
            return if_exp(
                trace,
                value,
                lambda: and_(trace, thunk(), thunks[i + 1 :], assigned),  # noqa: B023
                lambda: value,  # noqa: B023
                assigned,
            )
        if not truth(trace, first):
            return first
        first = thunk()
    return first


def or_(trace: Trace, first: Any, thunks: Sequence[Thunk], assigned: Assigned | None = None) -> Any:
    """Return what `first or ...` gives."""
    for i, thunk in enumerate(thunks):
        if trace.is_symbolic(first):
            value = first
            return if_exp(
                trace,
                value,
                lambda: value,  # noqa: B023
                lambda: or_(trace, thunk(), thunks[i + 1 :], assigned),  # noqa: B023
                assigned,
            )
        if truth(trace, first):
            return first
        first = thunk()
    return first


def not_(trace: Trace, x: Any) -> Any:
    """Return what `not x` gives."""
    if not trace.is_symbolic(x):
        return not truth(trace, x)
    return Scalar(trace.emit("scalar_not", [as_bool(trace, x).value]))


def as_bool(trace: Trace, x: Any) -> Scalar:
    """Return the truth of a symbolic value as a symbolic bool."""
    if isinstance(x, SymbolicList):
        return Scalar(trace.emit("list_len", [x.value])) > 0
    value = predicate(trace, x)
    return trace.item(trace.wrap(value)) if isinstance(value.type, TensorType) else Scalar(value)


def compare(trace: Trace, first: Any, ops: Sequence[str], thunks: Sequence[Thunk]) -> Any:
    """Return what a chained comparison gives; each operand is evaluated once, and only as far as needed."""
    second = thunks[0]()
    result = compare_one(trace, first, ops[0], second)
    if len(ops) == 1:
        return result
    return and_(trace, result, [lambda: compare(trace, second, ops[1:], thunks[1:])])


def compare_one(trace: Trace, a: Any, op: str, b: Any) -> Any:
    """Return what one comparison gives."""
    if op in ("is", "is not"):
        return is_(trace, a, b, op == "is not")
    if op in ("in", "not in"):
        return in_(trace, a, b, op == "not in")
    if isinstance(a, Variant):
        return switch(trace, a, lambda x: compare_one(trace, x, op, b))
    if isinstance(b, Variant):
        return switch(trace, b, lambda x: compare_one(trace, a, op, x))
    for x in (a, b):
        if isinstance(x, CONTAINERS) and isinstance(trace.content(x), Variant):
            return trace.on_content(x, switch, lambda: compare_one(trace, a, op, b))
    if isinstance(a, Extents) or isinstance(b, Extents):
        kind: type[Any] = tuple if is_tuple(a) or is_tuple(b) else list
        a, b = (kind(x) if isinstance(x, Extents) else x for x in (a, b))
    if op in ("==", "!=") and type(a) is type(b) and type(a) in (list, tuple):
        return _equal_items(trace, a, b, op == "!=")
    if op in ("==", "!=") and type(a).__eq__ is type(b).__eq__ is object.__eq__:
        return is_(trace, a, b, op == "!=")
    return compared(trace, op, a, b)


def _equal_items(trace: Trace, a: Any, b: Any, negate: bool) -> Any:
    """Return what `a == b` (or `!=`) gives of two lists or tuples: of shapes, numbers known only at run time."""
    mine, others = trace.content(a), trace.content(b)
    if SymbolicList in (type(mine), type(others)):
        equal = _equal_lists(trace, a, b)
        return not_(trace, equal) if negate else equal
    if type(mine) is not type(a) or type(others) is not type(b) or len(mine) != len(others):
        return a != b if negate else a == b
    found: Any = True
    for x, y in zip(mine, others, strict=True):
        one = x is y or compare_one(trace, x, "==", y)
        if isinstance(one, Scalar) and isinstance(found, Scalar):
            found = found & one
        else:
            found = and_(trace, found, [lambda one=one: one])
    found = as_bool(trace, found) if trace.is_symbolic(found) else bool(found)
    return not_(trace, found) if negate else found


def _equal_lists(trace: Trace, a: Any, b: Any) -> Any:
    """Return what `a == b` gives of two lists of which one has a length known only at run time."""
    first, second = sequence_of(trace, a), sequence_of(trace, b)
    if second.must_roll:
        first, second = second, first

    def is_same(i: Any) -> Any:
        x, y = first.get(i), second.get(i)
        if isinstance(x, Tensor) or isinstance(y, Tensor):
            raise needs_value("lists of tensors were compared, of which one has a length that only the run tells")
        return compare_one(trace, x, "==", y)

    def items() -> Any:
        if second.must_roll:
            return trace.callable(all)(SymbolicIterable(first.length, is_same, True))
        return and_(trace, True, [partial(is_same, i) for i in range(second.length)])

    return trace.if_exp(first.length == second.length, items, lambda: False)


def is_(trace: Trace, a: Any, b: Any, negate: bool) -> Any:
    """Return what `a is b` (or `is not`) gives."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Variant):
            if isinstance(other, bool) and any(isinstance(t, Number) and t.kind == "bool" for t in one.alternatives):
                return switch(trace, one, partial(is_, trace, b=other, negate=negate))
            return _is_same_variant(trace, one, other, negate)
        if isinstance(one, Scalar) and one.kind == "bool" and isinstance(other, bool):
            return one if other is not negate else not_(trace, one)
    if a is not b and type(a) is type(b):
        _refuse_unknown(trace, a, b)
    return (a is not b) if negate else (a is b)


def _is_same_variant(trace: Trace, a: Variant, b: Any, negate: bool) -> Any:
    """Return what `a is b` (or `is not`) gives of something that is one of several things."""
    if isinstance(b, Variant) and a.whole is b.whole:
        return not negate
    tag = Scalar(trace.emit("variant_tag", [a.value]))
    found: Any = False
    for i, t in enumerate(a.alternatives):
        if isinstance(t, Const):
            same = is_(trace, b, t.object, False) if isinstance(b, Variant) else t.object is b
        else:
            same = False
            _refuse_alternative(trace, a, t, b)
        if same is not False:
            one = tag == i if same is True else (tag == i) & same
            found = one if found is False else found | one
    return not_(trace, found) if negate else found


def _refuse_alternative(trace: Trace, a: Variant, t: AbstractValue, b: Any) -> None:
    """Raise where `b` may be what a variant holds by value."""
    others = b.alternatives if isinstance(b, Variant) else (abstract_value_of(trace, b),)
    kind = t.kind if isinstance(t, (NewObject, NewList)) else None
    for other in others:
        if t.is_like(other) and (t.holds_objects or isinstance(t, TensorLike)):
            _refuse_unknown(trace, a, b)
        elif isinstance(other, Const) and type(other.object) is kind:
            _refuse_unknown(trace, a, other.object)


def _refuse_unknown(trace: Trace, a: Any, b: Any) -> None:
    """Raise NeedsPythonValue where it is known only at run time whether two things are one."""
    borrows, aliases = trace.borrows.parts, trace.aliases
    a, b = root(a), root(b)
    if id(a) in borrows or id(b) in borrows or any(x is b for x in aliases.groups.get(id(a), ())) or (
        isinstance(a, Tensor) and isinstance(b, Tensor) and (aliases.is_held(a) or aliases.is_held(b))
    ):  # fmt: skip
        raise needs_value("only the run will tell whether two things are one", "compare what they hold")


def in_(trace: Trace, a: Any, container: Any, negate: bool) -> Any:
    """Return what `a in container` (or `not in`) gives."""
    content = trace.content(container)
    if isinstance(content, Variant):
        if content is container:
            return switch(trace, container, lambda x: in_(trace, a, x, negate))
        return trace.on_content(container, switch, lambda: in_(trace, a, container, negate))
    if isinstance(a, Variant) and isinstance(content, str):
        return switch(trace, a, lambda x: in_(trace, x, container, negate))
    if isinstance(container, CONTAINERS) and (method := own_method(container, "__contains__")) is not None:
        found: Any = trace.callable(method)(container, a)
        found = as_bool(trace, found) if trace.is_symbolic(found) else bool(found)
    elif isinstance(content, Tensor):
        found = trace.item((content == a).any())
    elif isinstance(content, SymbolicList):
        items = iterable_of(trace, container)
        assert items is not None
        equal = SymbolicIterable(items.length, lambda i: compare_one(trace, items.get(i), "==", a), True)
        found = trace.callable(any)(equal)
    elif is_sequence(content) and (meets_symbols(trace, a) or any(meets_symbols(trace, i) for i in content)):
        found = False
        for item in content:
            one = True if item is a else compare_one(trace, item, "==", a)
            found = or_(trace, found, [lambda one=one: one])
        found = as_bool(trace, found) if trace.is_symbolic(found) else bool(found)
    elif isinstance(content, range) and not content:
        found = False
    elif isinstance(content, range) and isinstance(a, Scalar) and a.kind == "int":
        low, high = sorted((content[0], content[-1]))
        found = (a >= low) & (a <= high) & ((a - low) % abs(content.step) == 0)
    elif (is_dict(content) or is_set(content)) and is_open(a):
        found = is_among(trace, a, content)
    elif (own := users_method(trace, content, "__contains__")) is not None:
        found = own(a)
        found = as_bool(trace, found) if trace.is_symbolic(found) else bool(found)
    else:
        found = a in content
    return not_(trace, found) if negate else found


def meets_symbols(trace: Trace, x: Any) -> bool:
    """Return whether only converted code compares `x`: a value of the run, or an object that the user compares."""
    return trace.is_symbolic(x) or (is_plain_object(x) and users_dunder(type_of(x), "__eq__") is not None)
