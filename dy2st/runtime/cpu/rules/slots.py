"""Slots of the cotangents of lists, which the backward pass of a loop reads and clears once a turn."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Operation
from dy2st.runtime.cpu.list_functions import list_function
from dy2st.runtime.cpu.representation import Components, zeros
from dy2st.runtime.cpu.rules.lists import checked, length, list_type, row
from dy2st.runtime.cpu.rules.registry import rule
from dy2st.runtime.cpu.writer import Writer

Made = Sequence[Components]


def _is_inside(w: Writer, block: str, at: str) -> str:
    return w.f.value(f"icmp ult i64 {at}, {length(w, block)}")


@rule("list_take")
def take(w: Writer, operation: Operation, operands: list[Components]) -> Made:
    """Write a read of one slot; unset where there is none."""
    (block,), (at,) = operands
    t = list_type(operation.operands[0].type)
    kept = w.slots(t.element)
    w.put(kept, t.element, zeros(t.element))
    with w.f.when(_is_inside(w, block, at), "inside"):
        components = w.read(row(w, block, at, t), t.element)
        w.retain(t.element, components)
        w.put(kept, t.element, components)
    return [w.get(kept, t.element)]


@rule("list_clear")
def clear(w: Writer, operation: Operation, operands: list[Components]) -> Made:
    """Write the list with one slot unset; in place where nobody else holds the list."""
    items, at = operation.operands[0], operands[1][0]
    t = list_type(items.type)
    w.owned(items, operands[0])
    writable = list_function(w.unit.kernels, "writable", t)
    block = checked(w, w.f.call("ptr", writable, "ptr %context", f"ptr {operands[0][0]}"))
    with w.f.when(_is_inside(w, block, at), "inside"):
        place = row(w, block, at, t)
        old = w.read(place, t.element)
        w.write(place, [t.element], [zeros(t.element)])
        w.release(t.element, old)
    return [(block,)]
