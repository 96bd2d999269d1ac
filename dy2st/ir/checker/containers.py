"""Type rules of lists, tuples and variants, and of the values that derivatives keep in them.

A type that an attribute names is taken for what may be inside; of extents only what the operands prove is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dy2st.dtypes import int64
from dy2st.ir.checker.shapes import typed
from dy2st.ir.checker.type_join import join, parts, same_kind
from dy2st.ir.checker.typed_operation import TypedOperation, rule
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


def _joined(g: TypedOperation, a: Type, b: Type, what: str) -> Type:
    g.alike(b, a, what)
    return join(a, b)


# ---- lists ---------------------------------------------------------------------------------------------------------
@rule("list_new")
def _new(g: TypedOperation) -> Sequence[Type]:
    element = g.list_type().element
    for i, t in enumerate(g.types):
        element = _joined(g, element, t, f"operand {i}")
    g.replace("type", ListType(element))
    return (ListType(element),)


# what is taken (L a list, S slots, E an element, i an int, I an int or a bool), what is given (e an element): ops
_LISTS = """
LE  L   list_append
LIE L   list_set list_insert
L   i   list_len
LI  i   list_index list_popped
LII ii  list_bounds
LI  e   list_get
LI  Le  list_pop
LL  L   list_extend
SiL L   slots_extend
Lii L   list_part
Sii L   slots_part
L   L   list_reverse
Si  L   slots_reverse list_clear list_remove list_spread
Si  e   list_take
"""


def _entered(taken: str, given: str, names: Sequence[str]) -> None:
    @rule(" ".join(names), len(taken))
    def _(g: TypedOperation) -> Sequence[Type]:
        items = _slots(g, 0) if taken[0] == "S" else g.items(0)
        for i, what in enumerate(taken[1:], 1):
            if what in "iI":
                g.number(i, "int", *(("bool",) if what == "I" else ()))
            else:
                pair = (items, g.items(i)) if what == "L" else (items.element, g.types[i])
                made = _joined(g, *pair, f"operand {i}")
                items = made if isinstance(made, ListType) and what == "L" else ListType(made)
        return [{"L": items, "e": items.element, "i": INT}[what] for what in given]


# ---- slots: lists of optionals -------------------------------------------------------------------------------------
def _slots(g: TypedOperation, i: int) -> ListType:
    """Return the type of operand i, a list whose elements may be unset."""
    items = g.items(i)
    inner = items.element
    if not isinstance(inner, VariantType) or not isinstance(inner.alternatives[0], UnsetType):
        g.refuse(f"operand {i} is {items}, whose elements are never unset")
    return items


def _payload(g: TypedOperation, t: Type) -> Type:
    """Return T of `variant<unset | T>`."""
    if not isinstance(t, VariantType) or len(t.alternatives) != 2 or t.alternatives[0] != UNSET:
        g.refuse(f"{t} is no optional")
    return t.alternatives[1]


for _line in _LISTS.strip().splitlines():
    _taken, _given, *_names = _line.split()
    _entered(_taken, _given, _names)


@rule("list_put list_accumulate", 3)
def _put(g: TypedOperation) -> Sequence[Type]:
    slots, item = _slots(g, 0), g.types[2]
    g.number(1)
    if not isinstance(item, VariantType):
        item = VariantType((UNSET, item))
    return (ListType(_joined(g, slots.element, item, "the item")),)


@rule("list_widen slots_widen", 1)
def _widen(g: TypedOperation) -> Sequence[Type]:
    slots = g.name == "slots_widen"
    old = (_slots(g, 0) if slots else g.items(0)).element
    g.replace("type", ListType(_moved(g, old, g.list_type().element, slots)))
    return (g.type(),)


def _moved(g: TypedOperation, old: Type, wanted: Type, slots: bool) -> Type:
    """Return an element type with alternatives of another one in their new places."""
    if not g.sequence("tags"):
        return _joined(g, wanted, old, "the list")
    if not isinstance(wanted, VariantType):
        g.refuse(f"{wanted} is no variant")
    last = len(wanted.alternatives) - 1
    if g.attributes["wrap"]:
        (tag,) = g.wholes("tags", 0, last, 1)
        inner = _payload(g, old) if slots else old
        drops = isinstance(wanted.alternatives[tag], (UnsetType, ConstType))
        return _filled(g, wanted, () if drops else [(tag, inner)])
    if not isinstance(old, VariantType):
        g.refuse(f"{old} is no variant")
    pairs = zip(g.wholes("tags", 0, last, len(old.alternatives)), old.alternatives, strict=True)
    return _filled(g, wanted, [(tag, inner) for tag, inner in pairs if tag or not slots])


@rule("slots_narrow", 1)
def _narrow(g: TypedOperation) -> Sequence[Type]:
    wide, made = _slots(g, 0).element, g.list_type().element
    g.alike(g.list_type("wide").element, wide, "wide")
    if not g.sequence("tags"):
        made = _joined(g, made, wide, "the list")
    elif isinstance(made, VariantType) and isinstance(wide, VariantType):
        count, wrap = len(made.alternatives), g.attributes["wrap"]
        tags = g.wholes("tags", 0, len(wide.alternatives) - 1, 1 if wrap else count)
        g.require(isinstance(made.alternatives[0], UnsetType), "the first alternative is not unset")
        taken = [(old, wide.alternatives[tag]) for old, tag in enumerate(tags, int(wrap)) if tag]
        g.require(all(old < count for old, _ in taken), "more tags than alternatives")
        made = _filled(g, made, taken)
    else:
        g.refuse(f"{made} is no variant")
    g.replace("type", ListType(made))
    return (g.type(),)


# ---- lists and tensors ---------------------------------------------------------------------------------------------
def _element(g: TypedOperation, i: int, slots: bool = False) -> TensorType:
    found = _payload(g, g.items(i).element) if slots else g.items(i).element
    return found if isinstance(found, TensorType) else g.refuse(f"operand {i} is no list of tensors")


@rule("list_stack list_concat list_extents list_to_tensor", 1)
def _to_tensor(g: TypedOperation) -> Sequence[Type]:
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


@rule("list_stack_tangent:2 list_concat_tangent:3")
def _to_tangent(g: TypedOperation) -> Sequence[Type]:
    concat = g.name == "list_concat_tangent"
    t, like = _element(g, 0, True), g.tensor(2 if concat else 1)
    if concat:
        g.like(1, int64, 1)
        g.axis("axis", like.rank)
    shape = t.shape if concat else (like.shape[0] if like.rank else 0, *t.shape)
    g.require(t.dtype is like.dtype and len(shape) == like.rank, f"{t} in {like}")
    return (like,)


@rule("list_unstack:1 list_split:2")
def _to_slots(g: TypedOperation) -> Sequence[Type]:
    split = g.name == "list_split"
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
def _tuple_new(g: TypedOperation) -> Sequence[Type]:
    return (TupleType(tuple(g.types)),)


@rule("tuple_get", 1)
def _tuple_get(g: TypedOperation) -> Sequence[Type]:
    (t,) = g.types
    return t.items if isinstance(t, TupleType) else g.refuse(f"operand 0 is {t}, no tuple")


@rule("variant_new")
def _variant_new(g: TypedOperation) -> Sequence[Type]:
    t = g.variant_type()
    tag = g.whole("tag", 0, len(t.alternatives) - 1)
    empty = isinstance(t.alternatives[tag], (UnsetType, ConstType))
    g.count(0 if empty else 1)
    return _replaced(g, t, () if empty else [(tag, g.types[0])])


def _replaced(g: TypedOperation, t: VariantType, found: Iterable[tuple[int, Type]]) -> Sequence[Type]:
    """Return the type of an attribute after these alternatives were joined with what goes there."""
    g.replace("type", _filled(g, t, found))
    return (g.type(),)


def _filled(g: TypedOperation, t: VariantType, found: Iterable[tuple[int, Type]]) -> VariantType:
    alternatives = list(t.alternatives)
    for tag, inner in found:
        alternatives[tag] = _joined(g, alternatives[tag], inner, f"alternative {tag}")
    return VariantType(tuple(alternatives))


@rule("variant_tag", 1)
def _variant_tag(g: TypedOperation) -> Sequence[Type]:
    g.variant(0)
    return (INT,)


def _alternative(g: TypedOperation) -> Type:
    """Return the alternative of operand 0, a variant, that the tag says."""
    t = g.variant(0)
    return t.alternatives[g.whole("tag", 0, len(t.alternatives) - 1)]


@rule("variant_get", 1)
def _variant_get(g: TypedOperation) -> Sequence[Type]:
    found = _alternative(g)
    g.require(not isinstance(found, (UnsetType, ConstType)), f"{found} has no payload")
    return (found,)


@rule("variant_ct", 1)
def _variant_ct(g: TypedOperation) -> Sequence[Type]:
    return (VariantType((UNSET, _alternative(g))),)


@rule("variant_or_zeros", 2)
def _variant_or_zeros(g: TypedOperation) -> Sequence[Type]:
    found, like = _alternative(g), g.types[1]
    g.require(not isinstance(like, VariantType), f"zeros like {like}")
    return (_joined(g, _zeros(g, like), found, "the alternative"),)


@rule("variant_wrap", 1)
def _variant_wrap(g: TypedOperation) -> Sequence[Type]:
    t, inner = g.variant_type(), _payload(g, g.types[0])
    g.require(isinstance(t.alternatives[0], UnsetType), "the first alternative is not unset")
    return _replaced(g, t, [(g.whole("tag", 0, len(t.alternatives) - 1), inner)])


@rule("variant_cast", 1)
def _variant_cast(g: TypedOperation) -> Sequence[Type]:
    old, t = g.variant(0), g.variant_type()
    kept: list[tuple[int, Type]] = []
    tags = g.wholes("tags", 0, len(t.alternatives) - 1, len(old.alternatives))
    for inner, tag in zip(old.alternatives, tags, strict=True):
        wanted = t.alternatives[tag]
        if same_kind(wanted, inner):
            kept.append((tag, inner))
            continue
        # nothing is left of it: what has no payload becomes a constant, or anything becomes unset
        into = isinstance(wanted, UnsetType) or isinstance(inner, (UnsetType, ConstType))
        g.require(into and isinstance(wanted, (UnsetType, ConstType)), f"{inner} as {wanted}")
    return _replaced(g, t, kept)


@rule("optional_add", 2)
def _optional_add(g: TypedOperation) -> Sequence[Type]:
    a, b = g.types
    g.require(_may_be_added(a) and _may_be_added(b), f"{a} and {b} are no derivatives")
    if same_kind(a, b):
        return (join(a, b),)
    dense, other = (b, a) if isinstance(a, VariantType) else (a, b)
    g.require(not isinstance(dense, VariantType), f"{a} and {b}: a run could not tell which of two variants is unset")
    total = _joined(g, dense, _payload(g, other), "the sum")
    return (dense if isinstance(dense, TensorType) else total,)  # tensors of other extents are not added: an error


def _may_be_added(t: Type) -> bool:
    return isinstance(t, (TensorType, VariantType)) or (
        isinstance(t, (ListType, TupleType)) and all(isinstance(part, VariantType) for part in parts(t))
    )


@rule("unreachable", 0)
def _unreachable(g: TypedOperation) -> Sequence[Type]:
    return (g.type(),)


@rule("zeros_like", 1)
def _zeros_like(g: TypedOperation) -> Sequence[Type]:
    return (_zeros(g, g.types[0]),)


def _zeros(g: TypedOperation, like: Type) -> Type:
    if not isinstance(like, (TensorType, ListType, TupleType, VariantType)):
        g.refuse(f"there are no zeros like {like}")
    return tangent_type(like)


@rule("detach", 1)
def _detach(g: TypedOperation) -> Sequence[Type]:
    return (g.types[0],)


@rule("renew", 2)
def _renew(g: TypedOperation) -> Sequence[Type]:
    new, old = g.types
    g.alike(new, old, "the new value")
    if isinstance(old, TensorType):
        g.same_shape(0, 1)
        return (old,)
    g.require(new == old, f"{new} in place of {old}")
    return (old,)
