"""What writes random operations on lists, slots, tuples and variants: op by op, with what the first operand is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dy2st.dtypes import bfloat16, bool_, complex64, float16, float32, float64, int8, int32, int64, uint8
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import INT, UNSET, ListType, TensorType, VariantType
from dy2st.shapes import symbol

if TYPE_CHECKING:
    from tests.fuzzing.written import Author

DTYPES = (float64, float64, float32, float32, int64, int32, bool_, complex64, float16, bfloat16, uint8, int8)
Writes = Callable[["Author", Builder, str, Value], None]


def _with_numbers(count: int) -> Writes:
    def write(a: Author, b: Builder, name: str, x: Value) -> None:
        b.emit(name, [x, *(a.value(b, INT) for _ in range(count))])

    return write


def _with_item(a: Author, b: Builder, name: str, x: Value) -> None:
    assert isinstance(x.type, ListType)
    item = x.type.element
    if name in ("list_put", "list_accumulate") and isinstance(item, VariantType) and a.rng.random() < 0.5:
        item = item.alternatives[-1]
    places = [] if name == "list_append" else [a.value(b, INT)]
    b.emit(name, [x, *places, a.value(b, item)])


def _with_another(a: Author, b: Builder, name: str, x: Value) -> None:
    places = [a.value(b, INT)] if name == "slots_extend" else []
    b.emit(name, [x, *places, a.value(b, x.type)])


def _widened(a: Author, b: Builder, name: str, x: Value) -> None:
    """Write a list whose elements are one of more things, or of fewer."""
    rng, element = a.rng, x.type.element  # type: ignore[union-attr]
    slots, wrap = name != "list_widen", rng.random() < 0.5
    inner = element.alternatives[-1] if slots else element
    if wrap:
        wide, tags = VariantType((UNSET, a.type(1), inner)), (2,)
    else:
        old = element if isinstance(element, VariantType) else VariantType((UNSET, element))
        wide, tags = VariantType((*old.alternatives, a.type(1))), tuple(range(len(old.alternatives)))
    if rng.random() < 0.2:
        tags = rng.choice(((), (0,), (1,), (1, 0), tags[::-1]))
    if name == "slots_narrow":
        wider = b.emit("slots_widen", [x], {"type": ListType(wide), "tags": tags, "wrap": wrap})
        b.emit(name, [wider], {"type": x.type, "wide": ListType(wide), "tags": tags, "wrap": wrap})
        return
    b.emit(name, [x], {"type": ListType(wide), "tags": tags, "wrap": wrap})


def _along(a: Author, b: Builder, name: str, x: Value) -> None:
    attributes: dict[str, Any] = {"axis": a.rng.randrange(3)} if name in ("list_concat", "list_extents") else {}
    if name == "list_to_tensor":
        attributes = {"dtype": a.rng.choice(DTYPES)}
    b.emit(name, [x], attributes)


def _tagged(a: Author, b: Builder, name: str, x: Value) -> None:
    rng, alternatives = a.rng, x.type.alternatives  # type: ignore[union-attr]
    tag = rng.randrange(len(alternatives))
    if name == "variant_get":
        b.emit(name, [x], {"tag": tag, "message": "none"})
    elif name == "variant_ct":
        b.emit(name, [x], {"tag": tag})
    elif name == "variant_or_zeros":
        b.emit(name, [x, a.value(b, alternatives[tag])], {"tag": tag})
    elif name == "variant_wrap":
        b.emit(name, [x], {"type": VariantType((UNSET, a.type(1), alternatives[-1])), "tag": rng.choice((0, 1, 2, 2))})
    elif name == "optional_add":
        b.emit(name, [x, a.value(b, rng.choice((x.type, alternatives[-1])))])
    else:
        tags = [*range(len(alternatives))]
        rng.shuffle(tags)
        wide = [*alternatives, a.type(1)] if rng.random() < 0.5 else [*alternatives]
        made = [wide[tags.index(i)] if i in tags else wide[i] for i in range(len(wide))]
        b.emit("variant_cast", [x], {"type": VariantType(tuple(made)), "tags": tuple(tags)})


def _any(a: Author, b: Builder, name: str, x: Value) -> None:
    if name == "unreachable":
        then, t = b.child(), x.type
        then.block.results = [then.emit(name, [], {"type": t})]
        other = b.child()
        other.block.results = [other.use(x)]
        then.argument(t)
        b.emit("cond", [b.scalar(False), x], {}, [then.block, other.block])
        return
    if name in ("tuple_new", "tuple_of_tangents"):
        b.emit(name, [x, a.value(b, a.type(1))])
        return
    b.emit(name, [x, *([a.value(b, x.type)] if name == "renew" else [])])


def _cut(a: Author, b: Builder, name: str, _: Value) -> None:
    """Write a tensor as slots, or slots as a tensor, in parts of lengths that need not fit."""
    rank = a.rng.choice((1, 2, 3))
    whole = TensorType(a.rng.choice(DTYPES), tuple(a.extent() for _ in range(rank)))
    x, axis = a.value(b, whole), 0 if a.rng.random() < 0.8 else a.rng.randrange(rank)
    part = TensorType(whole.dtype, (None,) * (rank - (name in ("list_unstack", "list_stack_tangent"))))  # type: ignore[arg-type]
    slots = ListType(VariantType((UNSET, part)))
    lengths = [a.value(b, TensorType(int64, (symbol("N"),)))] if name in ("list_split", "list_concat_tangent") else []
    if lengths and a.rng.random() < 0.7:
        lengths = [b.constant(np.array([a.rng.choice((0, 1, 1, 2, -1, 3)) for _ in range(a.rng.randrange(4))]), int64)]
    where = {"axis": axis} if lengths else {}
    if name.endswith("tangent"):
        b.emit(name, [a.value(b, slots), *lengths, x], where)
    else:
        b.emit(name, [x, *lengths], {"type": slots, **where})


CONTAINERS: dict[str, tuple[str, Writes]] = {
    **dict.fromkeys(("list_append", "list_set", "list_insert"), ("list", _with_item)),
    **dict.fromkeys(("list_put", "list_accumulate"), ("slots", _with_item)),
    **dict.fromkeys(("list_get", "list_pop", "list_index", "list_popped"), ("list", _with_numbers(1))),
    **dict.fromkeys(("list_take", "list_clear", "list_remove", "list_spread", "slots_reverse"),
                    ("slots", _with_numbers(1))),
    **dict.fromkeys(("list_part", "list_bounds"), ("list", _with_numbers(2))),
    **dict.fromkeys(("list_len", "list_reverse"), ("list", _with_numbers(0))),
    **dict.fromkeys(("list_unstack", "list_split", "list_stack_tangent", "list_concat_tangent"), ("any", _cut)),
    "slots_part": ("slots", _with_numbers(2)), "list_extend": ("list", _with_another),
    "tuple_get": ("tuple", _with_numbers(0)),
    "slots_extend": ("slots", _with_another), "list_widen": ("list", _widened),
    "slots_widen": ("slots", _widened), "slots_narrow": ("slots", _widened),
    **dict.fromkeys(("list_stack", "list_concat", "list_extents", "list_to_tensor"), ("list", _along)),
    "variant_tag": ("variant", _with_numbers(0)),
    **dict.fromkeys(("variant_get", "variant_ct", "variant_or_zeros", "variant_wrap", "variant_cast", "optional_add"),
                    ("variant", _tagged)),
    **dict.fromkeys(("unreachable", "tuple_new", "tuple_of_tangents", "renew", "detach", "zeros_like"), ("any", _any)),
}  # fmt: skip
"""Op: what its first operand is, and what writes it."""
