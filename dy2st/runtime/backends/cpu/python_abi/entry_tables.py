"""Many arrays on the way between Python and native code: one loop over a table reads them, another one makes them.

A step of an optimizer takes and gives some hundreds of arrays of which the types know all; written out one by one, they
would be most of the code of such a Program. A table has a line for each:

    number   place   type    rank   bytes of an element   elements that are registers, 0 in memory   old   extents...

`place` is where the components stand in their row, in bytes; `type` is where the descriptor stands on the plate for
arrays that are read, NumPy's number of the type for those that are made. `old` is the number of the argument that an
array may be which is made, or -1.

    i1 @dy2st.entry.known(ptr %plate, ptr %arguments, ptr %row, ptr %table, i64 %count, i64 %width)
    i1 @dy2st.entry.made(ptr %plate, ptr %context, ptr %row, ptr %list, ptr %table, i64 %count, i64 %width)
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from dy2st.ir.types import TensorType, Type
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import OBJECTS
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import any_of, compare, negation, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers, kinds, known_extents
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_values import API, ObjectConversions, array_function, is_plain

_LEAST = 8
"""So many arrays are worth a table."""
_NUMBER, _PLACE, _TYPE, _RANK, _BYTES, _REGISTERS, _OLD, _EXTENTS = range(0, 64, 8)
_WIDTHS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


Line = tuple[int, int, TensorType]
"""The number of an array, where its components stand, and its type."""


def lines_of(types: Sequence[Type], places: Sequence[int], apart: Container[int] = ()) -> list[Line]:
    """Return the lines of a table for values that stand at places, but those `apart`; none where they are few."""
    found = [
        (i, place, t) for i, (t, place) in enumerate(zip(types, places, strict=True))
        if i not in apart and isinstance(t, TensorType) and _is_tabled(t)
    ]  # fmt: skip
    return found if len(found) >= _LEAST else []


def _is_tabled(t: TensorType) -> bool:
    """Return whether a line of a table can say all of a type: an array whose extents are known."""
    if not is_plain(t) or len(known_extents(t)) != t.rank:
        return False
    if t.dtype.name == "bfloat16":  # whose number another process may have another one for
        return False
    return not (t.dtype.is_bool and in_registers(t))  # a byte of an array is true that is not 0


def table(
    module: LLVMModule, name: str, lines: Sequence[Line], *, read: bool, old: Mapping[int, int] | None = None
) -> tuple[str, ...]:
    """Add a table to a module; return the arguments that say where it is, and how large."""
    width = _EXTENTS // 8 + max(t.rank for _, _, t in lines)
    words: list[int] = []
    for number, place, t in lines:
        shown = API + 8 * api.NAMES.index(t.dtype.name) if read else api.type_number(t.dtype)
        line = [
            number,
            place,
            shown,
            t.rank,
            t.dtype.itemsize,
            len(kinds(t)) * in_registers(t),
            (old or {}).get(number, -1),
        ]
        words += [*line, *known_extents(t), *[0] * (width - len(line) - t.rank)]
    content = ", ".join(f"i64 {word}" for word in words)
    module.add(name, f"@{name} = internal constant [{len(words)} x i64] [{content}]")
    return f"ptr @{name}", f"i64 {len(lines)}", f"i64 {8 * width}"


def known_function(kernels: LLVMModule) -> str:
    """Add the function that reads arrays; it returns false where one of them is not as its line says."""
    name = "dy2st.entry.known"
    if name not in kernels:
        names = ("%plate", "%arguments", "%row", "%table")
        f = LLVMFunction(
            name, [*(("ptr", n) for n in names), ("i64", "%count"), ("i64", "%width")], "i1", also="nounwind"
        )
        _Known(f, kernels).write()
        kernels.add(name, f.text())
    return name


def made_function(kernels: LLVMModule) -> str:
    """Add the function that makes arrays, and gives them to a list; it returns false where Python has set an error."""
    name = "dy2st.entry.made"
    if name not in kernels:
        names = ("%plate", "%context", "%row", "%list", "%table")
        f = LLVMFunction(
            name, [*(("ptr", n) for n in names), ("i64", "%count"), ("i64", "%width")], "i1", also="nounwind"
        )
        _Made(f, kernels).write()
        kernels.add(name, f.text())
    return name


class _Lines(ObjectConversions):
    """Writes loops over the lines of a table."""

    line = ""

    def _field(self, at: int) -> str:
        return self.f.load("i64", self.f.offset(self.line, at))

    def _extent_of(self, axis: str) -> str:
        return self.f.load("i64", self.f.offset(self.f.offset(self.line, _EXTENTS), axis, "i64"))

    def _copy_elements(self, source: str, target: str, apart: tuple[str, str], count: str) -> None:
        """Write a copy of `count` elements, which are so many bytes apart in the source, and in the target."""
        f, size = self.f, self._field(_BYTES)
        for width, kind in _WIDTHS.items():
            with f.when(compare(f, "eq", size, width), "width"), f.loop(count, hint="element") as i:
                f.store(
                    kind, f.load(kind, f.offset(source, times(f, i, apart[0]))), f.offset(target, times(f, i, apart[1]))
                )


class _Known(_Lines):
    def write(self) -> None:
        f = self.f
        with f.loop("%count", hint="array") as i:
            self.line = f.offset("%table", times(f, i, "%width"))
            value = f.load("ptr", f.offset("%arguments", self._field(_NUMBER), "ptr"))
            self._read(value, f.offset("%row", self._field(_PLACE)))
        f.ret("i1", "true")
        f.start(self.other)
        f.ret("i1", "false")

    def _read(self, value: str, place: str) -> None:
        f = self.f
        self._only(self._is(f.load("ptr", f.offset(value, api.TYPE)), "PyArray_Type"))
        descriptor = f.load("ptr", f.offset(self.table, self._field(_TYPE)))
        self._only(f.value(f"icmp eq ptr {f.load('ptr', f.offset(value, api.DESCRIPTOR))}, {descriptor}"))
        rank = self._field(_RANK)
        self._only(compare(f, "eq", f.value(f"zext i32 {f.load('i32', f.offset(value, api.RANK))} to i64"), rank))
        flags = f.value(f"and i32 {f.load('i32', f.offset(value, api.FLAGS))}, {api.BEHAVED}")
        self._only(f.value(f"icmp eq i32 {flags}, {api.BEHAVED}"))
        data, shape = f.load("ptr", f.offset(value, api.DATA)), f.load("ptr", f.offset(value, api.SHAPE))
        with f.loop(rank, hint="axis") as axis:
            self._only(compare(f, "eq", f.load("i64", f.offset(shape, axis, "i64")), self._extent_of(axis)))
        count, memory, on = self._field(_REGISTERS), f.label("memory"), f.label("on")
        self._copy_elements(data, place, (self._field(_BYTES), "8"), count)
        f.branch(compare(f, "eq", count, 0), memory, on)
        f.start(memory)
        f.store("ptr", "null", place)
        f.store("ptr", data, f.offset(place, 8))
        with f.loop(rank, hint="axis") as axis:
            f.store("i64", self._extent_of(axis), f.offset(f.offset(place, 16), axis, "i64"))
        f.start(on)


class _Made(_Lines):
    def write(self) -> None:
        f, kept = self.f, self.f.slot("ptr")
        with f.loop("%count", hint="array") as i:
            self.line = f.offset("%table", times(f, i, "%width"))
            place, rank, count = f.offset("%row", self._field(_PLACE)), self._field(_RANK), self._field(_REGISTERS)
            number = f.value(f"trunc i64 {self._field(_TYPE)} to i32")
            memory, registers, on = f.label("memory"), f.label("registers"), f.label("on")
            f.branch(compare(f, "eq", count, 0), memory, registers)
            f.start(memory)
            given = f"ptr {place}", f"i64 {rank}", f"i64 {self._field(_BYTES)}", f"i32 {number}", f"ptr {self._old()}"
            f.store(
                "ptr", f.call("ptr", f"@{array_function(self._kernels)}", "ptr %plate", "ptr %context", *given), kept
            )
            f.jump(on)
            f.start(registers)
            short = f.value(f"trunc i64 {rank} to i32")
            array = self._sure(self._new(number, short, f.offset(self.line, _EXTENTS), "null"))
            f.store("ptr", array, kept)
            self._copy_elements(place, f.load("ptr", f.offset(array, api.DATA)), ("8", self._field(_BYTES)), count)
            f.start(on)
            made = self._sure(f.load("ptr", kept))
            self._call("i32", "PyList_SetItem", "ptr %list", f"i64 {self._field(_NUMBER)}", f"ptr {made}")
        f.ret("i1", "true")
        f.start(self.failed)
        f.ret("i1", "false")

    def _old(self) -> str:
        """Write the argument that an array may be; null where there is none."""
        f, number = self.f, self._field(_OLD)
        objects = f.load("ptr", f.offset("%context", OBJECTS))
        none = any_of(f, compare(f, "slt", number, 0), f.value(f"icmp eq ptr {objects}, null"))
        old, look = f.slot("ptr"), negation(f, none)
        f.store("ptr", "null", old)
        with f.when(look, "old"):
            f.store("ptr", f.load("ptr", f.offset(objects, number, "ptr")), old)
        return f.load("ptr", old)
