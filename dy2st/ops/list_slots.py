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
from dy2st.ir.types import ListType, ScalarType, Type, optional, tangent_type
from dy2st.ops.base import Op, Sample
from dy2st.ops.optional import add_values

Tangents = Sequence[Value | None]


class ListPut(Op):
    """A tangent list with slot i set; it grows as needed."""

    name = "list_put"
    linear_together = (0, 2)

    def infer(self, slots: ListType, i: ScalarType, item: Type) -> Type:
        return slots

    def eval(self, xp: Any, slots: Any, i: int, item: Any) -> Any:
        return self.eval_in_place(xp, list(slots), i, item)

    def eval_in_place(self, xp: Any, slots: Any, i: int, item: Any) -> Any:
        if i >= len(slots):
            slots.extend([(0, None)] * (i + 1 - len(slots)))
        slots[i] = item if isinstance(item, tuple) else (1, item)
        return slots

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dslots, _, ditem = tangents
        if ditem is None:
            return b.list_clear(dslots, primals[1])
        return b.list_put(dslots if dslots is not None else empty_tangent(b, primals[0].type), primals[1], ditem)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        ct, at = cts[0], operands[1]
        return [b.list_clear(ct, at) if linear[0] else None, None, b.list_take(ct, at) if linear[2] else None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListTake(Op):
    """Slot i of a tangent list, an optional; unset where nobody wrote."""

    name = "list_take"
    linear_in = (0,)

    def infer(self, slots: ListType, i: ScalarType) -> Type:
        return optional(slots.element)

    def eval(self, xp: Any, slots: Any, i: int) -> Any:
        return slots[i] if i < len(slots) else (0, None)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [self.transpose_into(b, None, cts, operands), None]

    def transpose_into(self, b: Builder, so_far: Value | None, cts: Tangents, operands: Sequence[Value]) -> Value:
        """Add the cotangent to the list's cotangent in place of adding whole lists."""
        so_far = so_far if so_far is not None else b.emit("list_new", [], {"type": operands[0].type})
        return b.list_accumulate(so_far, operands[1], cts[0])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class _OfSlot(Op):
    """What changes slot i of a tangent list, and is linear in the list; `eval_in_place` does it on the list itself."""

    abstract = True
    eval_in_place: Callable[..., Any]
    linear_in = (0,)

    def infer(self, slots: ListType, i: ScalarType) -> Type:
        return slots

    def eval(self, xp: Any, slots: Any, i: int) -> Any:
        return self.eval_in_place(xp, list(slots), i)


class ListClear(_OfSlot):
    """A tangent list with slot i unset."""

    name = "list_clear"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if i < len(slots):
            slots[i] = (0, None)
        return slots

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_clear(cts[0], operands[1]), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListRemove(_OfSlot):
    """A tangent list without slot i: those behind it move forward."""

    name = "list_remove"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if i < len(slots):
            del slots[i]
        return slots

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_spread(cts[0], operands[1]), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListSpread(_OfSlot):
    """A tangent list with an unset slot put in at i: those from there on move back."""

    name = "list_spread"

    def eval_in_place(self, xp: Any, slots: Any, i: int) -> Any:
        if i < len(slots):
            slots.insert(i, (0, None))
        return slots

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.list_remove(cts[0], operands[1]), None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class ListAccumulate(Op):
    """A tangent list with an item added to slot i."""

    name = "list_accumulate"
    linear_together = (0, 2)

    def infer(self, slots: ListType, i: ScalarType, item: Type) -> Type:
        return slots

    def eval(self, xp: Any, slots: Any, i: int, item: Any) -> Any:
        return self.eval_in_place(xp, list(slots), i, item)

    def eval_in_place(self, xp: Any, slots: Any, i: int, item: Any) -> Any:
        item = cast("tuple[Any, Any]", item) if isinstance(item, tuple) else (1, item)
        if i >= len(slots):
            slots.extend([(0, None)] * (i + 1 - len(slots)))
        slots[i] = add_values(slots[i], item)
        return slots

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value],
            **attributes: Any) -> Any:  # fmt: skip
        dslots, _, ditem = tangents
        if ditem is None:
            return dslots
        return b.list_accumulate(dslots if dslots is not None else empty_tangent(b, primals[0].type), primals[1], ditem)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [cts[0] if linear[0] else None, None, b.list_take(cts[0], operands[1]) if linear[2] else None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def empty_tangent(b: Builder, t: Type) -> Any:
    """Emit the tangent of a list of type `t` in which nothing is set yet."""
    return b.emit("list_new", [], {"type": tangent_type(t)})
