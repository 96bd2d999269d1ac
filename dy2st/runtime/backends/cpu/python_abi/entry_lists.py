"""Lists and optionals on the way between Python and native code, as those that a forward pass keeps for its backward.

While a run reads the arrays of a list, it holds them: who made the list may change it.
"""

from __future__ import annotations

from dy2st.ir.types import ListType, Type, UnsetType, VariantType
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator.list_functions import LENGTH, STORAGE, list_function, row_bytes
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import all_of, compare, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import alternative, as_part, kinds, owners
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_kept import KeptValues
from dy2st.runtime.backends.cpu.python_abi.entry_values import is_plain
from dy2st.shapes import Dim


def is_read(t: Type) -> bool:
    """Return whether objects of a type can be read where they stand."""
    return is_plain(t) or (isinstance(t, ListType) and is_plain(t.element))


def is_made(t: Type) -> bool:
    """Return whether objects of a type can be made."""
    if isinstance(t, VariantType):
        return all(isinstance(a, UnsetType) or is_plain(a) for a in t.alternatives)
    return is_read(t)


@record
class TakenList:
    """A list of Python's that a run reads, or a kept value: its type and object, and where its components are to stand.

    Of a list, its length, and blocks of the native one and of what is held; of a kept value its components, else null.
    """

    type: Type
    value: str
    place: str
    length: str
    kept: str
    list: str = ""
    storage: str = ""
    held: str = ""


class Lists(KeptValues):
    """Writes reads of lists, and makes of lists and optionals."""

    def _checked(self, t: Type, value: str, place: str, bound: dict[Dim, str]) -> TakenList:
        """Write a look at a kept value, or at a list and its elements."""
        f, length, kept = self.f, self.f.slot("i64"), self.f.slot("ptr")
        other, on, opaque = f.label("object"), f.label("on"), f.label("opaque")
        f.store("i64", "0", length)
        f.store("ptr", "null", kept)
        f.branch(self._is_kept(value), opaque, other)
        f.start(opaque)
        f.store("ptr", self._kept_row(t, value, bound), kept)
        f.jump(on)
        f.start(other)
        if is_read(t):
            assert isinstance(t, ListType)
            self._only(self._is(f.load("ptr", f.offset(value, api.TYPE)), "list"))
            f.store("i64", self._call("i64", "PyList_Size", f"ptr {value}"), length)
            seen = f.slot("i64", len(kinds(t.element)))
            with f.loop(f.load("i64", length), hint="look") as i:
                item = self._call("ptr", "PyList_GetItem", f"ptr {value}", f"i64 {i}")
                self._plain(t.element, item, seen, dict(bound))
        else:
            f.jump(self.other)
        f.start(on)
        return TakenList(t, value, place, f.load("i64", length), f.load("ptr", kept))

    def _take(self, context: str, taken: list[TakenList], full: str) -> None:
        """Write native lists of what was looked at; `full` without memory."""
        f, fine = self.f, "true"
        for one in taken:
            with f.when(f.value(f"icmp ne ptr {one.kept}, null"), "kept"):
                self._copy(one.place, one.kept, str(8 * len(kinds(one.type))))
                self._borrow(context, one.type, one.place, full)
            if not isinstance(one.type, ListType) or not is_read(one.type):
                continue
            sizes = ("24", times(f, one.length, row_bytes(one.type)), times(f, one.length, 8))
            blocks = [f.call("ptr", "@dy2st.allocate", f"ptr {context}", f"i64 {size}") for size in sizes]
            one.list, one.storage, one.held = blocks
            fine = all_of(f, fine, *(f.value(f"icmp ne ptr {block}, null") for block in blocks))
        on = f.label("on")
        f.branch(fine, on, full)
        f.start(on)

    def _fill(self, context: str, taken: list[TakenList]) -> None:
        """Write the elements of the lists, which are held from now on."""
        f = self.f
        for one in taken:
            if not isinstance(one.type, ListType) or not is_read(one.type):
                continue
            self._begin_list(one.list, one.length, one.storage)
            kept, list_, on = f.label("kept"), f.label("list"), f.label("on")
            f.branch(f.value(f"icmp ne ptr {one.kept}, null"), kept, list_)
            f.start(kept)
            self._release_list(context, one.type, one.list)
            f.jump(on)
            f.start(list_)
            f.store("ptr", one.list, one.place)
            f.start(on)
            with f.loop(one.length, hint="take") as i:
                item = self._call("ptr", "PyList_GetItem", f"ptr {one.value}", f"i64 {i}")
                self._call("void", "Py_IncRef", f"ptr {item}")
                f.store("ptr", item, f.offset(f.offset(one.held, HEAD), i, "ptr"))
                self._plain(as_part(one.type.element), item, _row(f, one.storage, i, one.type), {})

    def _let_go(self, taken: list[TakenList]) -> None:
        """Write that the elements are held no longer."""
        for one in taken:
            if not one.held:
                continue
            with self.f.loop(one.length, hint="let") as i:
                item = self.f.load("ptr", self.f.offset(self.f.offset(one.held, HEAD), i, "ptr"))
                self._call("void", "Py_DecRef", f"ptr {item}")

    def _drop(self, context: str, taken: list[TakenList]) -> None:
        """Write that the native lists are held once less."""
        for one in taken:
            for owner in owners(one.type):
                if owner.list is not None:
                    block = self.f.load("ptr", self.f.offset(one.place, 8 * owner.at))
                    self._release_list(context, owner.list, block)
            if one.held:
                self.f.call("void", "@dy2st.release", f"ptr {context}", f"ptr {one.held}")

    def _release_list(self, context: str, t: ListType, block: str) -> None:
        self.f.call("void", list_function(self._kernels, "release", t), f"ptr {context}", f"ptr {block}")

    def _list_of(self, t: ListType, context: str, place: str) -> str:
        """Write a list of objects; elements of a native list that nobody else holds give their memory away."""
        f, part, block = self.f, as_part(t.element), self.f.load("ptr", place)
        length = f.load("i64", f.offset(block, LENGTH))
        made = self._sure(self._call("ptr", "PyList_New", f"i64 {length}"))
        alone, own = f.call("i1", "@dy2st.unique", f"ptr {block}"), f.slot("i64", len(kinds(part)))
        storage = f.load("ptr", f.offset(block, STORAGE))
        with f.loop(length, hint="give") as i:
            row = _row(f, storage, i, t)
            for at, kind in enumerate(kinds(part)):
                f.store(kind, f.load(kind, f.offset(row, 8 * at)), f.offset(own, 8 * at))
            for owner in owners(part):
                held = f.load("ptr", f.offset(row, 8 * owner.at))
                f.store("ptr", f.value(f"select i1 {alone}, ptr null, ptr {held}"), f.offset(row, 8 * owner.at))
                f.call("void", "@dy2st.retain", f"ptr {f.value(f'select i1 {alone}, ptr null, ptr {held}')}")
            item = self._sure(self._object(part, context, own))
            self._call("i32", "PyList_SetItem", f"ptr {made}", f"i64 {i}", f"ptr {item}")
        self._release_list(context, t, block)
        return made

    def _optional_of(self, t: VariantType, context: str, place: str) -> str:
        """Write a pair of the tag and the object of the alternative; None for that of unset."""
        f, tag, kept = self.f, self.f.load("i64", place), self.f.slot("ptr")
        for number, chosen in enumerate(t.alternatives):
            with f.when(compare(f, "eq", tag, number), "chosen"):
                if isinstance(chosen, UnsetType):
                    f.store("ptr", self._address("None"), kept)
                    self._call("void", "Py_IncRef", f"ptr {self._address('None')}")
                    continue
                at = f.offset(place, 8 * alternative(t, number).start)
                f.store("ptr", self._sure(self._object(as_part(chosen), context, at)), kept)
        pair = self._sure(self._call("ptr", "PyTuple_New", "i64 2"))
        shown = self._sure(self._call("ptr", "PyLong_FromLongLong", f"i64 {tag}"))
        self._call("i32", "PyTuple_SetItem", f"ptr {pair}", "i64 0", f"ptr {shown}")
        self._call("i32", "PyTuple_SetItem", f"ptr {pair}", "i64 1", f"ptr {f.load('ptr', kept)}")
        return pair


def _row(f: LLVMFunction, storage: str, at: str, t: ListType) -> str:
    """Write the address of an element."""
    return f.offset(f.offset(storage, HEAD), times(f, at, row_bytes(t)))
