"""Next values of parameters, written into the memory of the values before: where nobody else holds that.

    together                                        together
      loops over [2000, 2000] -> %w.1                 loops over [2000, 2000] -> %w.1, which stands where %w stood
    %w.2 = renew(%w.1, %w)                          %w.2 = renew(%w.1, %w)
    return %loss, %w.2                              return %loss, %w.2

A Program says which of its results are the next values of arguments (`Program.renewed`). Such a result takes the memory
of its argument if

1. nothing that may fail, ask for memory or call Python comes behind its loop nest: an error leaves all as it was. So
   it is made by the last nests of the entry function, whose rooms are there before the first of them runs;
2. the argument is read by that nest alone, each element no later than its next value is written, and no other value
   that may show its memory is read by those nests or later;
3. when those nests are about to run, nobody but the caller's tensor holds the array: it has as many holders as an
   object that the caller passes behind the arguments, held in the same way and by nobody else. Views and exported
   buffers hold their array, and so does a thread that reads it. Its memory is its own, or that of one of our results;
4. Python's lock is held from there to the end, so that no thread begins to read meanwhile.

Who does not pass such an object gets new arrays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.runtime.cpu import python_api as api
from dy2st.runtime.cpu.emit import Function, Module
from dy2st.runtime.cpu.entry_values import API, Values
from dy2st.runtime.cpu.integers import compare
from dy2st.runtime.cpu.joint import NAMES, Step, groups_of, may_join
from dy2st.runtime.cpu.memory import HEAD, OBJECTS, PLATE
from dy2st.runtime.cpu.reductions import REDUCTIONS
from dy2st.runtime.cpu.representation import Components, in_registers, known_extents

if TYPE_CHECKING:
    from dy2st.runtime.cpu.writer import Writer

_FRESH = (
    *("matmul", "matmul_add", "conv", "conv_input_grad", "conv_weight_grad", "attention", "attention_grad"),
    *("take", "take_add", "one_hot", "max_pool", "avg_pool", "avg_pool_grad", *REDUCTIONS),
)
"""Ops whose results never show the memory of an operand; so do loop nests."""


Next = dict[Value, tuple[Value, int]]
"""Results of loop nests, each with the operand whose memory it may take, and the number of the argument that it is."""


def overwritten(program: Program, block: Block, steps: Sequence[Step]) -> Next:
    """Return what results of the last loop nests of a block may overwrite, as far as the Program tells (1, 2)."""
    nests = [at for at, step in enumerate(steps) if not isinstance(step, Operation)]
    if block is not program.block or not program.renewed or not nests:
        return {}
    last, end = steps[nests[-1]], steps[nests[-1] + 1 :]
    groups = groups_of(last)
    if not all(map(may_join, groups)) or not all(isinstance(o, Operation) and o.op.name in NAMES for o in end):  # 1
        return {}
    made = next_values(program, block)
    found = {v: made[v] for group in groups for v in group.results if v in made and not in_registers(v.type)}
    shown, kept = _shown(block, steps)
    reads = [v for group in groups for v in group.operands]
    for o in end:
        reads += o.operands[:1] if isinstance(o, Operation) and o.op.name == "renew" else o.operands
    readers = Counter(argument for v in (*reads, *block.results) for argument in shown.get(v, ()))
    makers = {v: group for group in groups for v in group.results}
    next_ones: Next = {}
    for value, number in found.items():
        argument = block.arguments[number]
        if readers[argument] != 1 or argument in kept:  # 2
            continue
        for operand in makers[value].operands:
            if _named(operand) is argument:
                next_ones[value] = operand, number
    return next_ones


def _named(value: Value) -> Value:
    """Return what a value is another name of."""
    while value.operation is not None and value.operation.op.name == "detach":
        value = value.operation.operands[0]
    return value


def next_values(program: Program, block: Block) -> dict[Value, int]:
    """Return the values of a block that are next values of arguments, under whatever names, with their numbers."""
    found: dict[Value, int] = {}
    for result, number in program.renewed if block is program.block else ():
        value = block.results[result]
        while value.operation is not None and value.operation.op.name in ("detach", "renew"):
            value = value.operation.operands[0]
        if value.type == block.arguments[number].type and value is not block.arguments[number]:
            found.setdefault(value, number)
    return found


def _shown(block: Block, steps: Sequence[Step]) -> tuple[dict[Value, set[Value]], set[Value]]:
    """Return of which arguments values may show the memory, and of which somebody outside may."""
    shown: dict[Value, set[Value]] = {v: {v} for v in block.arguments}
    kept: set[Value] = set()
    for step in steps:
        if not isinstance(step, Operation) or step.op.name in _FRESH:
            continue
        operands = step.operands[:1] if step.op.name == "renew" else step.operands
        seen = {argument for v in operands for argument in shown.get(v, ())}
        if step.op.effect:
            kept |= seen
        shown.update((v, seen) for v in step.results if seen and not in_registers(v.type))
    return shown, kept


# ---- the run --------------------------------------------------------------------------------------------------------
def claim(w: Writer) -> None:
    """Write that Python's lock is taken where arguments may be overwritten (4); from here on it is not given away."""
    if not w.unit.takes_long:
        return  # then nothing has given it away
    w.unit.module.add("dy2st.take_lock", "declare void @dy2st.take_lock()")
    given = compare(w.f, "ne", w.f.load("i64", w.f.offset("%context", OBJECTS)), 0)
    with w.f.when(given, "claim"):
        w.f.call("void", "@dy2st.take_lock")


def room_in_place(w: Writer, value: Value, argument: Components) -> Components:
    """Write where the next value of an argument is to stand: in its memory, or in new memory."""
    t, f = tensor_type(value), w.f
    shape = known_extents(t)
    block, (_, number), alone = f.slot("ptr"), w.overwritten[value], len(w.unit.program.block.arguments)
    given = f"ptr {argument[1]}", f"i64 {math.prod(shape) * t.dtype.itemsize}", f"ptr {block}"
    data = f.call("ptr", f"@{_room(w.unit.kernels)}", "ptr %context", f"i64 {number}", f"i64 {alone}", *given)
    w.demand(f.value(f"icmp ne ptr {data}, null"))
    return (f.load("ptr", block), data, *map(str, shape))


def _room(kernels: Module) -> str:
    """Add the function `ptr (context, number, alone, data, bytes, block)`: memory, and the block that it belongs to.

    That is `data` and null where the argument of this number, which stands there, may be overwritten; `alone` is the
    number of the object that nobody else holds. Null where there is no memory.
    """
    name = "dy2st.overwritten"
    if name not in kernels:
        parameters = [("ptr", "%context"), ("i64", "%number"), ("i64", "%alone"), ("ptr", "%data"), ("i64", "%bytes"),
                      ("ptr", "%block")]  # fmt: skip
        f = Function(name, parameters, "ptr", also="nounwind")
        objects, look, new = f.load("ptr", f.offset("%context", OBJECTS)), f.label("look"), f.label("new")
        f.branch(f.value(f"icmp ne ptr {objects}, null"), look, new)
        f.start(look)
        plate = f.load("ptr", f.offset("%context", PLATE))
        held, alone = (f.load("ptr", f.offset(objects, n, "ptr")) for n in ("%number", "%alone"))
        take = f.label("take")
        given = (f"ptr {plate}", f"ptr {held}", f"ptr {alone}")
        f.branch(f.call("i1", f"@{_is_free(kernels)}", *given), take, new)
        f.start(take)
        f.store("ptr", "null", "%block")
        f.ret("ptr", "%data")
        f.start(new)
        made = f.call("ptr", "@dy2st.allocate", "ptr %context", "i64 %bytes")
        f.store("ptr", made, "%block")
        none = f.value(f"icmp eq ptr {made}, null")
        content = f.value(f"getelementptr i8, ptr {made}, i64 {HEAD}")
        f.ret("ptr", f.value(f"select i1 {none}, ptr null, ptr {content}"))
        kernels.add(name, f.text())
    return name


def _is_free(kernels: Module) -> str:
    """Add the function `i1 (plate, array, alone)`: whether nobody else holds an array and its memory (3)."""
    name = "dy2st.array.free"
    if name not in kernels:
        f = Function(name, [("ptr", "%plate"), ("ptr", "%array"), ("ptr", "%alone")], "i1", also="nounwind")
        _Free(f, kernels).write()
        kernels.add(name, f.text())
    return name


class _Free(Values):
    def write(self) -> None:
        f = self.f
        holders = [f.load("i32", f.offset(x, api.HOLDERS)) for x in ("%array", "%alone")]
        self._only(f.value(f"icmp ule i32 {holders[0]}, {holders[1]}"))
        flags, base = f.load("i32", f.offset("%array", api.FLAGS)), f.load("ptr", f.offset("%array", api.BASE))
        self._only(f.value(f"icmp ne i32 {f.value(f'and i32 {flags}, {api.WRITEABLE}')}, 0"))
        own, ours = f.label("own"), f.label("ours")
        f.branch(f.value(f"icmp eq ptr {base}, null"), own, ours)
        f.start(own)
        f.ret("i1", f.value(f"icmp ne i32 {f.value(f'and i32 {flags}, {api.OWNS}')}, 0"))
        f.start(ours)
        self._only(self._is(f.load("ptr", f.offset(base, api.TYPE)), "capsule"))
        self._only(f.value(f"icmp eq i32 {f.load('i32', f.offset(base, api.HOLDERS))}, 1"))
        given_back = f.load("ptr", f.offset(self.table, API + 8 * len(api.NAMES)))
        ends = self._call("ptr", "PyCapsule_GetDestructor", f"ptr {base}")
        f.ret("i1", f.value(f"icmp eq ptr {ends}, {given_back}"))
        f.start(self.other)
        f.ret("i1", "false")
