"""Next values of parameters, written into the memory of the values before: where nobody else holds that.

    together                                        together
      loops over [2000, 2000] -> %w.1                 loops over [2000, 2000] -> %w.1, which stands where %w stood
    %w.2 = renew(%w.1, %w)                          %w.2 = renew(%w.1, %w)
    return %loss, %w.2                              return %loss, %w.2

A Program says which of its results are the next values of arguments (`Program.renewed`). Such a result takes the memory
of its argument if

1. nothing that may fail, ask for memory or call Python comes behind its loop nest: an error leaves all as it was. So
   it is made by the last nests of a block that ends a run (in_place_updates.py), after the rooms of all of them are
   there;
2. the argument is read by that nest alone, each element no later than its next value is written, and no other value
   that may show its memory is read by those nests or later (in_place_updates.py);
3. when those nests are about to run, nobody but the caller's tensor holds the array: it has as many holders as an
   object that the caller passes behind the arguments, held in the same way and by nobody else. Views and exported
   buffers hold their array, and so does a thread that reads it. Its memory is its own, or that of one of our results;
4. Python's lock is held from there to the end, so that no thread begins to read meanwhile.

Who does not pass such an object gets new arrays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dy2st.ir.program import Value, tensor_type
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD, OBJECTS, PLATE
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components, known_extents
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_values import API, ObjectConversions

if TYPE_CHECKING:
    from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter


# ---- the run --------------------------------------------------------------------------------------------------------
def claim(w: FunctionEmitter) -> None:
    """Write that Python's lock is taken where arguments may be overwritten (4); from here on it is not given away."""
    if not w.unit.takes_long:
        return  # then nothing has given it away
    w.unit.module.add("dy2st.take_lock", "declare void @dy2st.take_lock()")
    given = compare(w.f, "ne", w.f.load("i64", w.f.offset("%context", OBJECTS)), 0)
    with w.f.when(given, "claim"):
        w.f.call("void", "@dy2st.take_lock")


def room_in_place(w: FunctionEmitter, value: Value, argument: Components) -> Components:
    """Write where the next value of an argument is to stand: in its memory, or in new memory."""
    t, f = tensor_type(value), w.f
    shape = known_extents(t)
    block, (_, number), alone = f.slot("ptr"), w.overwritten[value], len(w.unit.program.block.arguments)
    given = f"ptr {argument[1]}", f"i64 {math.prod(shape) * t.dtype.itemsize}", f"ptr {block}"
    data = f.call("ptr", f"@{_room(w.unit.kernels)}", "ptr %context", f"i64 {number}", f"i64 {alone}", *given)
    w.demand(f.value(f"icmp ne ptr {data}, null"))
    return (f.load("ptr", block), data, *map(str, shape))


def _room(kernels: LLVMModule) -> str:
    """Add the function `ptr (context, number, alone, data, bytes, block)`: memory, and the block that it belongs to.

    That is `data` and null where the argument of this number, which stands there, may be overwritten; `alone` is the
    number of the object that nobody else holds. Null where there is no memory.
    """
    name = "dy2st.overwritten"
    if name not in kernels:
        parameters = [("ptr", "%context"), ("i64", "%number"), ("i64", "%alone"), ("ptr", "%data"), ("i64", "%bytes"),
                      ("ptr", "%block")]  # fmt: skip
        f = LLVMFunction(name, parameters, "ptr", also="nounwind")
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


def _is_free(kernels: LLVMModule) -> str:
    """Add the function `i1 (plate, array, alone)`: whether nobody else holds an array and its memory (3)."""
    name = "dy2st.array.free"
    if name not in kernels:
        f = LLVMFunction(name, [("ptr", "%plate"), ("ptr", "%array"), ("ptr", "%alone")], "i1", also="nounwind")
        _Free(f, kernels).write()
        kernels.add(name, f.text())
    return name


class _Free(ObjectConversions):
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
