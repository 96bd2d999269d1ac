"""Give the values of a block their registers: few of them, because a dead value's register is used again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.shapes import product

_SMALL = 4096
"""Tensors known to have at most so many elements may stay in a dead register until it is used again."""


class Frame:
    """The registers of one block: arguments first, then whatever is needed."""

    def __init__(self, arguments: Sequence[Value], pinned: Sequence[Value], wanted: dict[Value, int]):
        self.slot = {v: i for i, v in enumerate(arguments)}
        self._arity = self._count = len(arguments)
        self._pinned = set(pinned)
        self._wanted = wanted
        self._free: list[int] = []
        self._constants: dict[int, Any] = {}

    def constant(self, value: Value, content: Any) -> None:
        """Keep a constant in a register of its own."""
        self.slot[value] = self._count
        self._constants[self._count] = content
        self._pinned.add(value)
        self._count += 1

    def release(self, value: Value) -> int | None:
        """Say that `value` is dead; return its register, None when it must keep it."""
        if value in self._pinned:
            return None
        slot = self.slot[value]
        self._free.append(slot)
        return slot

    def place(self, value: Value, best: int | None = None) -> int:
        """Give `value` the register it should end in, else `best`, else any free one."""
        for slot in (self._wanted.get(value), best):
            if slot is not None and slot in self._free:
                self._free.remove(slot)
                break
        else:
            slot = self._free.pop() if self._free else self._grown()
        self.slot[value] = slot
        return slot

    def is_free(self, slot: int) -> bool:
        return slot in self._free

    def rest(self) -> list[Any]:
        """Return what the registers behind the arguments hold at the start."""
        return [self._constants.get(i) for i in range(self._arity, self._count)]

    def _grown(self) -> int:
        self._count += 1
        return self._count - 1


def worth_clearing(value: Value) -> bool:
    """Return whether a dead value may hold much memory."""
    if isinstance(value.type, TensorType):
        size = product(value.type.shape)
        return not (isinstance(size, int) and size <= _SMALL)
    return not isinstance(value.type, ScalarType)
