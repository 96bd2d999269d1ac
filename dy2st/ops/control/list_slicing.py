"""Lists put together, cut, turned round and seen as lists of a wider element type.

Each acts on the slots of a tangent list as it acts on the elements, so the tangent ops here are pairs of transposes:
`slots_extend` and `slots_part`, `slots_reverse` with itself, `slots_widen` and `slots_narrow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import INT, ConstType, ListType, ScalarType, Type, UnsetType, VariantType, tangent_type
from dy2st.ops.control.control_flow import join
from dy2st.ops.control.list_cotangents import empty_tangent, refuse_slot
from dy2st.ops.core.base import Op, Sample

Tangents = Sequence[Value | None]


def _slots(b: Builder, tangent: Value | None, primal: Value) -> Value:
    return tangent if tangent is not None else empty_tangent(b, primal.type)


def _long(slots: Any, n: int) -> list[Any]:
    """Return slots that are n: behind the last element there may be too few, or too many unset ones."""
    refuse_slot(n)
    return [*slots[:n], *[(0, None)] * (n - len(slots))]


class ListExtend(Op):
    """The elements of one list and then those of another."""

    name = "list_extend"
    moves_elements = True

    def infer(self, items: ListType, more: ListType) -> Type:
        return join(items, more)

    def eval(self, xp: Any, items: Any, more: Any) -> Any:
        return [*items, *more]

    def eval_in_place(self, xp: Any, items: Any, more: Any) -> Any:
        items.extend(more)
        return items

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        if tangents[1] is None:
            return tangents[0]
        return b.slots_extend(_slots(b, tangents[0], primals[0]), b.list_len(primals[0]), tangents[1])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class SlotsExtend(Op):
    """The slots of a tangent list, made n long, and then those of another."""

    name = "slots_extend"
    linear_together = (0, 2)

    def infer(self, slots: ListType, n: ScalarType, more: ListType) -> Type:
        return join(slots, more)

    def eval(self, xp: Any, slots: Any, n: int, more: Any) -> Any:
        return [*_long(slots, n), *more]

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        if tangents[2] is None:
            return tangents[0]
        return b.slots_extend(_slots(b, tangents[0], primals[0]), primals[1], tangents[2])

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        ct, n = cts[0], operands[1]
        first = b.slots_part(ct, b.scalar(0), n) if linear[0] else None
        return [first, None, b.slots_part(ct, n, b.scalar(END)) if linear[2] else None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


END = 2**62


class ListBounds(Op):
    """The start and stop of `items[start:stop]`, counted from the front and inside of the list; bounds as Python's."""

    name = "list_bounds"
    places = slice(1, 3)
    tells_structure = True
    differentiable = False

    def infer(self, items: ListType, start: ScalarType, stop: ScalarType) -> Any:
        return (INT, INT)

    def eval(self, xp: Any, items: Any, start: int, stop: int) -> tuple[int, int]:
        first, last, _ = slice(start, stop).indices(len(items))
        return first, max(first, last)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListPart(Op):
    """The elements from number `start` to before `stop`, which `list_bounds` gives."""

    name = "list_part"
    moves_elements = True

    def infer(self, items: ListType, start: ScalarType, stop: ScalarType) -> Type:
        return items

    def eval(self, xp: Any, items: Any, start: int, stop: int) -> Any:
        return items[start:stop]

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.slots_part(tangents[0], primals[1], primals[2])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class SlotsPart(Op):
    """The slots from number `start` to before `stop` of a tangent list."""

    name = "slots_part"
    linear_in = (0,)

    def infer(self, slots: ListType, start: ScalarType, stop: ScalarType) -> Type:
        return slots

    def eval(self, xp: Any, slots: Any, start: int, stop: int) -> Any:
        return slots[start:stop]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        empty = b.emit("list_new", [], {"type": operands[0].type})
        start, stop = operands[1:]
        n = b.scalar_max(b.scalar_sub(stop, start), b.scalar(0))
        ct = b.slots_part(cts[0], b.scalar(0), n)  # behind them is what was appended without a tangent
        return [b.slots_extend(empty, start, ct), None, None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListReverse(Op):
    """The elements in the other order."""

    name = "list_reverse"
    moves_elements = True

    def infer(self, items: ListType) -> Type:
        return items

    def eval(self, xp: Any, items: Any) -> Any:
        return items[::-1]

    def eval_in_place(self, xp: Any, items: Any) -> Any:
        items.reverse()
        return items

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.slots_reverse(tangents[0], b.list_len(primals[0]))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class SlotsReverse(Op):
    """The slots of a tangent list of n elements in the other order."""

    name = "slots_reverse"
    linear_in = (0,)

    def infer(self, slots: ListType, n: ScalarType) -> Type:
        return slots

    def eval(self, xp: Any, slots: Any, n: int) -> Any:
        return _long(slots, n)[::-1]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.slots_reverse(cts[0], operands[1]), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListInsert(Op):
    """The list with one more element before number `at`, which `list_bounds` gives."""

    name = "list_insert"
    moves_elements = True
    places = slice(1, 2)

    def infer(self, items: ListType, at: ScalarType, item: Type) -> Type:
        return ListType(join(items.element, item))

    def eval(self, xp: Any, items: Any, at: int, item: Any) -> Any:
        return [*items[:at], item, *items[at:]]

    def eval_in_place(self, xp: Any, items: Any, at: int, item: Any) -> Any:
        items.insert(at, item)
        return items

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        ditems, _, ditem = tangents
        moved = None if ditems is None else b.list_spread(ditems, primals[1])
        return moved if ditem is None else b.list_put(_slots(b, moved, primals[0]), primals[1], ditem)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListWiden(Op):
    """The elements in a list of `type`, whose elements may have more extents or more alternatives.

    With `wrap`, elements that were no variant become alternative `tags[0]`; otherwise alternative k of an element
    becomes `tags[k]`. Without tags only extents differ.
    """

    name = "list_widen"
    moves_elements = True
    attributes = ("type", "tags", "wrap")

    def infer(self, items: ListType, *, type: ListType, tags: tuple[int, ...], wrap: bool) -> Type:
        return type

    def eval(self, xp: Any, items: Any, *, type: ListType, tags: tuple[int, ...], wrap: bool) -> Any:
        if not tags:
            return items
        kind = type.element
        if wrap and isinstance(kind, VariantType) and isinstance(kind.alternatives[tags[0]], (ConstType, UnsetType)):
            return [(tags[0], None)] * len(items)  # these have no payload
        return [(tags[0], x) if wrap else (tags[x[0]], x[1]) for x in items]

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        return b.slots_widen(tangents[0], **{**attributes, "type": tangent_type(attributes["type"])})

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class SlotsWiden(Op):
    """What `list_widen` does, on the slots of a tangent list: an unset one stays unset."""

    name = "slots_widen"
    attributes = ("type", "tags", "wrap")
    linear_in = (0,)

    def infer(self, slots: ListType, *, type: ListType, tags: tuple[int, ...], wrap: bool) -> Type:
        return type

    def eval(self, xp: Any, slots: Any, *, type: ListType, tags: tuple[int, ...], wrap: bool) -> Any:
        if not tags:
            return slots
        moved: list[int] = [0 if tag == 0 else tags[0] if wrap else tags[tag] for tag, _ in slots]
        return [(tag, x if tag else None) for tag, (_, x) in zip(moved, slots, strict=True)]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        made = {"type": operands[0].type, "wide": attributes["type"], "tags": attributes["tags"]}
        return [b.slots_narrow(cts[0], **made, wrap=attributes["wrap"])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class SlotsNarrow(Op):
    """The slots of a tangent list of the `wide` type as those of `type`: alternatives it lacks become unset."""

    name = "slots_narrow"
    attributes = ("type", "wide", "tags", "wrap")
    linear_in = (0,)

    def infer(self, slots: ListType, *, type: ListType, wide: ListType, tags: tuple[int, ...], wrap: bool) -> Type:
        return type

    def eval(self, xp: Any, slots: Any, *, type: ListType, wide: ListType, tags: tuple[int, ...], wrap: bool) -> Any:
        if not tags:
            return slots
        places = {tags[0]: 1} if wrap else {new: old for old, new in enumerate(tags)}
        return [(places[s[0]], s[1]) if s[0] in places and s[0] else (0, None) for s in slots]

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.slots_widen(cts[0], type=attributes["wide"], tags=attributes["tags"], wrap=attributes["wrap"])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())
