"""The ops of tangents and cotangents of lists: slots addressed by number.

They are each other's transposes: `list_put` and `list_take` with `list_clear`, `list_remove` and `list_spread`,
`list_take` and `list_accumulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ListType, ScalarType, Type, VariantType, optional, tangent_type
from dy2st.ops.control.control_flow import join
from dy2st.ops.control.optional import add_values
from dy2st.ops.core.base import Op, Sample

Tangents = Sequence[Value | None]
MOST_SLOTS = 2**32


class _Slots(Op):
    """An op on slot i of a tangent list. Only derivatives hold these, and their tests cover them: it has no samples."""

    abstract = True

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListTake(_Slots):
    """Slot i of a tangent list, an optional; unset where nobody wrote."""

    name = "list_take"
    linear_in = (0,)

    def infer(self, slots: ListType, i: ScalarType) -> Type:
        return optional(slots.element)

    def eval(self, xp: Any, slots: Any, i: int) -> Any:
        return slots[i] if 0 <= i < len(slots) else (0, None)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [self.transpose_into(b, None, cts, operands), None]

    def transpose_into(self, b: Builder, so_far: Value | None, cts: Tangents, operands: Sequence[Value]) -> Value:
        """Add the cotangent to the list's cotangent in place of adding whole lists."""
        so_far = so_far if so_far is not None else b.emit("list_new", [], {"type": operands[0].type})
        return b.list_accumulate(so_far, operands[1], cts[0])


class _Change(_Slots):
    """What changes a tangent list; `eval_in_place` does it on the list itself."""

    abstract = True
    eval_in_place: Callable[..., Any]

    def eval(self, xp: Any, slots: Any, i: int, *item: Any) -> Any:
        return self.eval_in_place(xp, list(slots), i, *item)


class _SetSlot(_Change):
    """What puts an item into slot i; the list grows as needed."""

    abstract = True
    linear_together = (0, 2)
    joined: Callable[..., Any]
    """What slot i holds then, from what it held and the item: optionals, all three."""

    def infer(self, slots: ListType, i: ScalarType, item: Type) -> Type:
        return ListType(join(slots.element, item if isinstance(item, VariantType) else optional(item)))

    def eval_in_place(self, xp: Any, slots: Any, i: int, item: Any) -> Any:
        refuse_slot(i)
        if i >= len(slots):
            slots.extend([(0, None)] * (i + 1 - len(slots)))
        slots[i] = self.joined(slots[i], cast("tuple[Any, Any]", item) if isinstance(item, tuple) else (1, item))
        return slots


class ListPut(_SetSlot):
    """A tangent list with slot i set."""

    name = "list_put"
    writes = 2

    def joined(self, held: Any, item: Any) -> Any:
        return item

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dslots, _, ditem = tangents
        if ditem is None:
            return b.list_clear(dslots, primals[1])
        return b.list_put(dslots if dslots is not None else empty_tangent(b, primals[0].type), primals[1], ditem)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        ct, at = cts[0], operands[1]
        taken = b.list_take(ct, at) if linear[2] else None  # first: then nobody else holds the list that is cleared
        return [b.list_clear(ct, at) if linear[0] else None, None, taken]


class ListAccumulate(_SetSlot):
    """A tangent list with an item added to slot i."""

    name = "list_accumulate"

    def joined(self, held: Any, item: Any) -> Any:
        return add_values(held, item)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dslots, _, ditem = tangents
        if ditem is None:
            return dslots
        return b.list_accumulate(dslots if dslots is not None else empty_tangent(b, primals[0].type), primals[1], ditem)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [cts[0] if linear[0] else None, None, b.list_take(cts[0], operands[1]) if linear[2] else None]


class _MoveSlots(_Change):
    """What is linear in the list alone; its transpose is the op named `transposed`."""

    abstract = True
    linear_in = (0,)
    transposed: str

    def infer(self, slots: ListType, i: ScalarType) -> Type:
        return slots

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        ct = cts[0]
        assert ct is not None
        return [b.emit(self.transposed, [ct, operands[1]]), None]


class ListClear(_MoveSlots):
    """A tangent list with slot i unset."""

    name = transposed = "list_clear"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if 0 <= i < len(slots):
            slots[i] = (0, None)
        return slots


class ListRemove(_MoveSlots):
    """A tangent list without slot i: those behind it move forward."""

    name, transposed = "list_remove", "list_spread"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if 0 <= i < len(slots):
            del slots[i]
        return slots


class ListSpread(_MoveSlots):
    """A tangent list with an unset slot put in at i: those from there on move back."""

    name, transposed = "list_spread", "list_remove"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if 0 <= i < len(slots):
            slots.insert(i, (0, None))
        return slots


def refuse_slot(number: int) -> None:
    """Raise IndexError for a number that no slot, and MemoryError for one that no list, has."""
    if number < 0:
        raise IndexError(f"there is no slot {number}")
    if number >= MOST_SLOTS:
        raise MemoryError(f"a list of {number} slots")


def empty_tangent(b: Builder, t: Type) -> Any:
    """Emit the tangent of a list of type `t` in which nothing is set yet."""
    return b.emit("list_new", [], {"type": tangent_type(t)})
