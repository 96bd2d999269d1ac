"""Type rules of lists, tuples and variants, and of the values that derivatives keep in them.

A type that an attribute names is taken for what may be inside; of extents only what the operands prove is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import int64
from dy2st.ir.checker.given import Given, rule
from dy2st.ir.checker.joining import join, parts, same_kind
from dy2st.ir.checker.shapes import typed
from dy2st.ir.types import (
    INT,
    UNSET,
    ConstType,
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    UnsetType,
    VariantType,
    tangent_type,
)


def _joined(g: Given, a: Type, b: Type, what: str) -> Type:
    g.alike(b, a, what)
    return join(a, b)


# ---- lists ---------------------------------------------------------------------------------------------------------
@rule("list_new")
def _new(g: Given) -> Sequence[Type]:
    element = g.list_type().element
    for i, t in enumerate(g.types):
        element = _joined(g, element, t, f"operand {i}")
    g.replace("type", ListType(element))
    return (ListType(element),)


@rule("list_append list_set list_insert")
def _with_item(g: Given) -> Sequence[Type]:
    at = 1 if g.name == "list_append" else 2
    g.count(at + 1)
    if at == 2:
        g.number(1, "int", "bool")
    return (ListType(_joined(g, g.items(0).element, g.types[at], "the item")),)


@rule("list_len list_index list_popped list_bounds")
def _places(g: Given) -> Sequence[Type]:
    numbers = {"list_len": 0, "list_bounds": 2}.get(g.name, 1)
    g.count(1 + numbers)
    g.items(0)
    for i in range(numbers):
        g.number(1 + i, "int", "bool")
    return (INT, INT) if g.name == "list_bounds" else (INT,)


@rule("list_get list_pop")
def _got(g: Given) -> Sequence[Type]:
    g.count(2)
    items = g.items(0)
    g.number(1, "int", "bool")
    return (items, items.element) if g.name == "list_pop" else (items.element,)


@rule("list_extend slots_extend")
def _extend(g: Given) -> Sequence[Type]:
    last = 1 if g.name == "list_extend" else 2
    g.count(last + 1)
    if last == 2:
        g.number(1)
        _slots(g, 0)
    return (_joined(g, g.items(0), g.items(last), f"operand {last}"),)


@rule("list_part slots_part list_reverse slots_reverse")
def _rearranged(g: Given) -> Sequence[Type]:
    numbers = {"list_reverse": 0, "slots_reverse": 1}.get(g.name, 2)
    g.count(1 + numbers)
    for i in range(numbers):
        g.number(1 + i)
    return (_slots(g, 0) if g.name.startswith("slots") else g.items(0),)


# ---- slots: lists of optionals -------------------------------------------------------------------------------------
def _slots(g: Given, i: int) -> ListType:
    """Return the type of operand i, a list whose elements may be unset."""
    items = g.items(i)
    inner = items.element
    if not isinstance(inner, VariantType) or not isinstance(inner.alternatives[0], UnsetType):
        g.refuse(f"operand {i} is {items}, whose elements are never unset")
    return items


def _payload(g: Given, t: Type) -> Type:
    """Return T of `variant<unset | T>`."""
    if not isinstance(t, VariantType) or len(t.alternatives) != 2 or t.alternatives[0] != UNSET:
        g.refuse(f"{t} is no optional")
    return t.alternatives[1]


@rule("list_take list_clear list_remove list_spread")
def _slot(g: Given) -> Sequence[Type]:
    g.count(2)
    slots = _slots(g, 0)
    g.number(1)
    return (slots.element if g.name == "list_take" else slots,)


@rule("list_put list_accumulate")
def _put(g: Given) -> Sequence[Type]:
    g.count(3)
    slots, item = _slots(g, 0), g.types[2]
    g.number(1)
    if not isinstance(item, VariantType):
        item = VariantType((UNSET, item))
    return (ListType(_joined(g, slots.element, item, "the item")),)


def _tags(g: Given, count: int, most: int) -> tuple[int, ...]:
    return g.wholes("tags", 0, most - 1, count)


@rule("list_widen slots_widen")
def _widen(g: Given) -> Sequence[Type]:
    g.count(1)
    slots = g.name == "slots_widen"
    old = (_slots(g, 0) if slots else g.items(0)).element
    g.replace("type", ListType(_moved(g, old, g.list_type().element, slots)))
    return (g.type(),)


def _moved(g: Given, old: Type, wanted: Type, slots: bool) -> Type:
    """Return an element type with alternatives of another one in their new places."""
    wrap = g.flag("wrap")
    if not g.sequence("tags"):
        return _joined(g, wanted, old, "the list")
    if not isinstance(wanted, VariantType):
        g.refuse(f"{wanted} is no variant")
    alternatives = list(wanted.alternatives)
    if wrap:
        (tag,) = _tags(g, 1, len(alternatives))
        inner = _payload(g, old) if slots else old
        if not isinstance(alternatives[tag], (UnsetType, ConstType)):  # these drop what they are made of
            alternatives[tag] = _joined(g, alternatives[tag], inner, f"alternative {tag}")
    else:
        if not isinstance(old, VariantType):
            g.refuse(f"{old} is no variant")
        tags = _tags(g, len(old.alternatives), len(alternatives))
        for inner, tag in zip(old.alternatives, tags, strict=True):
            if tag or not slots:
                alternatives[tag] = _joined(g, alternatives[tag], inner, f"alternative {tag}")
    return VariantType(tuple(alternatives))


@rule("slots_narrow")
def _narrow(g: Given) -> Sequence[Type]:
    g.count(1)
    wide, made = _slots(g, 0).element, g.list_type().element
    g.alike(g.list_type("wide").element, wide, "wide")
    wrap = g.flag("wrap")
    if not g.sequence("tags"):
        made = _joined(g, made, wide, "the list")
    elif isinstance(made, VariantType) and isinstance(wide, VariantType):
        tags = _tags(g, 1 if wrap else len(made.alternatives), len(wide.alternatives))
        alternatives = list(made.alternatives)
        g.require(isinstance(alternatives[0], UnsetType), "the first alternative is not unset")
        for old, tag in enumerate(tags, 1 if wrap else 0):
            if tag:
                g.require(old < len(alternatives), "more tags than alternatives")
                alternatives[old] = _joined(g, alternatives[old], wide.alternatives[tag], f"alternative {old}")
        made = VariantType(tuple(alternatives))
    else:
        g.refuse(f"{made} is no variant")
    g.replace("type", ListType(made))
    return (g.type(),)


# ---- lists and tensors ---------------------------------------------------------------------------------------------
def _element(g: Given, i: int, slots: bool = False) -> TensorType:
    found = _payload(g, g.items(i).element) if slots else g.items(i).element
    return found if isinstance(found, TensorType) else g.refuse(f"operand {i} is no list of tensors")


@rule("list_stack list_concat list_extents list_to_tensor")
def _to_tensor(g: Given) -> Sequence[Type]:
    g.count(1)
    if g.name == "list_to_tensor":
        g.require(isinstance(g.items(0).element, ScalarType), "no list of numbers")
        return (typed(g.dtype(), (None,)),)
    t = _element(g, 0)
    if g.name == "list_stack":
        return (typed(t.dtype, (None, *t.shape)),)
    axis = g.axis("axis", t.rank)
    if g.name == "list_extents":
        return (typed(int64, (None,)),)
    return (typed(t.dtype, (*t.shape[:axis], None, *t.shape[axis + 1 :])),)


@rule("list_stack_tangent list_concat_tangent")
def _to_tangent(g: Given) -> Sequence[Type]:
    concat = g.name == "list_concat_tangent"
    g.count(3 if concat else 2)
    t, like = _element(g, 0, True), g.tensor(2 if concat else 1)
    if concat:
        g.like(1, int64, 1)
        g.axis("axis", like.rank)
    shape = t.shape if concat else (like.shape[0] if like.rank else 0, *t.shape)
    g.require(t.dtype is like.dtype and len(shape) == like.rank, f"{t} in {like}")
    return (like,)


@rule("list_unstack list_split")
def _to_slots(g: Given) -> Sequence[Type]:
    split = g.name == "list_split"
    g.count(2 if split else 1)
    x, made = g.tensor(0, least=1), g.list_type()
    part = typed(x.dtype, x.shape[1:])
    if split:
        g.like(1, int64, 1)
        axis = g.axis("axis", x.rank)
        part = typed(x.dtype, (*x.shape[:axis], None, *x.shape[axis + 1 :]))
    inner = _joined(g, _payload(g, made.element), part, "the parts")
    g.replace("type", ListType(VariantType((UNSET, inner))))
    return (g.type(),)


# ---- tuples and variants -------------------------------------------------------------------------------------------
@rule("tuple_new tuple_of_tangents")
def _tuple_new(g: Given) -> Sequence[Type]:
    return (TupleType(tuple(g.types)),)


@rule("tuple_get")
def _tuple_get(g: Given) -> Sequence[Type]:
    g.count(1)
    (t,) = g.types
    return t.items if isinstance(t, TupleType) else g.refuse(f"operand 0 is {t}, no tuple")


@rule("variant_new")
def _variant_new(g: Given) -> Sequence[Type]:
    t = g.variant_type()
    tag = g.whole("tag", 0, len(t.alternatives) - 1)
    chosen, alternatives = t.alternatives[tag], list(t.alternatives)
    empty = isinstance(chosen, (UnsetType, ConstType))
    g.count(0 if empty else 1)
    if not empty:
        alternatives[tag] = _joined(g, chosen, g.types[0], "the payload")
    g.replace("type", VariantType(tuple(alternatives)))
    return (g.type(),)


@rule("variant_tag")
def _variant_tag(g: Given) -> Sequence[Type]:
    g.count(1)
    g.variant(0)
    return (INT,)


@rule("variant_get variant_ct")
def _variant_get(g: Given) -> Sequence[Type]:
    g.count(1)
    t = g.variant(0)
    found = t.alternatives[g.whole("tag", 0, len(t.alternatives) - 1)]
    if g.name == "variant_ct":
        return (VariantType((UNSET, found)),)
    g.text("message")
    g.require(not isinstance(found, (UnsetType, ConstType)), f"{found} has no payload")
    return (found,)


@rule("variant_or_zeros")
def _variant_or_zeros(g: Given) -> Sequence[Type]:
    g.count(2)
    t, like = g.variant(0), g.types[1]
    found = t.alternatives[g.whole("tag", 0, len(t.alternatives) - 1)]
    g.require(not isinstance(like, VariantType), f"zeros like {like}")
    zeros = _zeros(g, like)
    return (_joined(g, zeros, found, f"alternative {g.attribute('tag')}"),)


@rule("variant_wrap")
def _variant_wrap(g: Given) -> Sequence[Type]:
    g.count(1)
    t, inner = g.variant_type(), _payload(g, g.types[0])
    tag, alternatives = g.whole("tag", 0, len(t.alternatives) - 1), list(t.alternatives)
    g.require(isinstance(alternatives[0], UnsetType), "the first alternative is not unset")
    alternatives[tag] = _joined(g, alternatives[tag], inner, f"alternative {tag}")
    g.replace("type", VariantType(tuple(alternatives)))
    return (g.type(),)


@rule("variant_cast")
def _variant_cast(g: Given) -> Sequence[Type]:
    g.count(1)
    old, t = g.variant(0), g.variant_type()
    alternatives = list(t.alternatives)
    for inner, tag in zip(old.alternatives, _tags(g, len(old.alternatives), len(alternatives)), strict=True):
        if not same_kind(alternatives[tag], inner):
            # nothing is left of it: what has no payload becomes a constant, or anything becomes unset
            into = isinstance(alternatives[tag], UnsetType) or isinstance(inner, (UnsetType, ConstType))
            g.require(into and isinstance(alternatives[tag], (UnsetType, ConstType)), f"{inner} as {alternatives[tag]}")
            continue
        alternatives[tag] = join(alternatives[tag], inner)
    g.replace("type", VariantType(tuple(alternatives)))
    return (g.type(),)


@rule("optional_add")
def _optional_add(g: Given) -> Sequence[Type]:
    g.count(2)
    a, b = g.types
    g.require(_may_be_added(a) and _may_be_added(b), f"{a} and {b} are no derivatives")
    if same_kind(a, b):
        return (join(a, b),)
    dense, other = (b, a) if isinstance(a, VariantType) else (a, b)
    total = _joined(g, dense, _payload(g, other), "the sum")
    return (dense if isinstance(dense, TensorType) else total,)  # tensors of other extents are not added: an error


def _may_be_added(t: Type) -> bool:
    return isinstance(t, (TensorType, VariantType)) or (
        isinstance(t, (ListType, TupleType)) and all(isinstance(part, VariantType) for part in parts(t))
    )


@rule("unreachable")
def _unreachable(g: Given) -> Sequence[Type]:
    g.count(0)
    return (g.type(),)


@rule("zeros_like")
def _zeros_like(g: Given) -> Sequence[Type]:
    g.count(1)
    return (_zeros(g, g.types[0]),)


def _zeros(g: Given, like: Type) -> Type:
    if not isinstance(like, (TensorType, ListType, TupleType, VariantType)):
        g.refuse(f"there are no zeros like {like}")
    return tangent_type(like)


@rule("detach")
def _detach(g: Given) -> Sequence[Type]:
    g.count(1)
    return (g.types[0],)


@rule("renew")
def _renew(g: Given) -> Sequence[Type]:
    g.count(2)
    new, old = g.types
    g.alike(new, old, "the new value")
    if isinstance(old, TensorType):
        g.same_shape(0, 1)
        return (old,)
    g.require(new == old, f"{new} in place of {old}")
    return (old,)
