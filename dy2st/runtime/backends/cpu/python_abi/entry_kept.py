"""Kept values (kept_values.py) on their way out of the run that makes them, and into the one that takes them over.

Out: elements that stand in somebody else's memory (of an argument, of a constant) are copied, for that may change.
In: lists are made anew, because a run may change its own in place; their elements stay where they are, and count as
somebody else's memory, which is never written into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.types import ListType, TensorType, Type
from dy2st.runtime.backends.cpu.allocator.list_functions import CAPACITY, LENGTH, STORAGE, row_bytes
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import HEAD
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import kinds, parts
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_values import API, ObjectConversions
from dy2st.runtime.backends.cpu.python_abi.kept_values import COMPONENTS, LAYOUT, layout
from dy2st.shapes import Dim

GONE, NAME, OWNER, TRIM = range(API + 8 * len(api.NAMES) + 8, API + 8 * len(api.NAMES) + 40, 8)
"""Where the plate has the destructor of capsules, their name, what owns contexts, and what empties their free lists."""
_RUN_WORDS = 4


class KeptValues(ObjectConversions):
    """Writes kept values, made and taken."""

    # ---- in --------------------------------------------------------------------------------------------------------
    def _is_kept(self, value: str) -> str:
        return self._is(self.f.load("ptr", self.f.offset(value, api.TYPE)), "capsule")

    def _kept_row(self, t: Type, value: str, bound: dict[Dim, str]) -> str:
        """Write a look at a kept value; return where its components stand."""
        f, name = self.f, self.f.load("ptr", self.f.offset(self.table, NAME))
        self._only(compare(f, "ne", f.value(f"sext i32 {self._valid(value, name)} to i64"), 0))
        row = self._call("ptr", "PyCapsule_GetPointer", f"ptr {value}", f"ptr {name}")
        self._only(compare(f, "eq", f.load("i64", f.offset(row, LAYOUT)), layout(t)))
        components = f.offset(row, COMPONENTS)
        self._look(t, components, bound)
        return components

    def _valid(self, value: str, name: str) -> str:
        return self._call("i32", "PyCapsule_IsValid", f"ptr {value}", f"ptr {name}")

    def _look(self, t: Type, row: str, bound: dict[Dim, str]) -> None:
        """Write a check that extents are what the types say."""
        f = self.f
        for at, part in parts(t):
            if isinstance(part, ListType):
                self._each(part, f.load("ptr", f.offset(row, 8 * at)), lambda t, row: self._look(t, row, bound))
                continue
            known = [(i, e) for i, e in enumerate(part.shape) if isinstance(e, int) or e in bound]
            there = f.load("ptr", f.offset(row, 8 * at + 8))
            with f.when(f.value(f"icmp ne ptr {there}, null"), "there"):
                for axis, extent in known:
                    self._extent(extent, f.load("i64", f.offset(row, 8 * (at + 2 + axis))), bound)

    def _borrow(self, context: str, t: Type, row: str, full: str) -> None:
        """Write lists of this run in the place of those of a row; it owns no element of them. `full` without memory."""
        f = self.f
        for at, part in parts(t):
            place = f.offset(row, 8 * at)
            if isinstance(part, TensorType):
                f.store("ptr", "null", place)
                continue
            old = f.load("ptr", place)
            with f.when(f.value(f"icmp ne ptr {old}, null"), "list"):
                length = f.load("i64", f.offset(old, LENGTH))
                size = times(f, length, row_bytes(part))
                new = self._room(context, "24", full)
                storage = self._room(context, size, full)
                source = f.offset(f.load("ptr", f.offset(old, STORAGE)), HEAD)
                self._copy(f.offset(storage, HEAD), source, size)
                self._begin_list(new, length, storage)
                f.store("ptr", new, place)
                self._each(part, new, lambda t, row: self._borrow(context, t, row, full))

    # ---- out -------------------------------------------------------------------------------------------------------
    def _own(self, context: str, t: Type, row: str, full: str) -> None:
        """Write copies of the elements that stand in memory of others; `full` without memory for them."""
        f = self.f
        for at, part in parts(t):
            place = f.offset(row, 8 * at)
            if isinstance(part, ListType):
                self._each(part, f.load("ptr", place), lambda t, row: self._own(context, t, row, full))
                continue
            data = f.load("ptr", f.offset(place, 8))
            foreign = f.value(f"icmp eq ptr {f.load('ptr', place)}, null")
            there = f.value(f"icmp ne ptr {data}, null")
            with f.when(f.value(f"and i1 {foreign}, {there}"), "foreign"):
                extents = [f.load("i64", f.offset(place, 16 + 8 * axis)) for axis in range(part.rank)]
                size = times(f, part.dtype.itemsize, *extents)
                own = self._room(context, size, full)
                self._copy(f.offset(own, HEAD), data, size)
                f.store("ptr", own, place)
                f.store("ptr", f.offset(own, HEAD), f.offset(place, 8))

    def _keep(self, context: str, results: str, kept: Sequence[tuple[int, Type, str]]) -> None:
        """Write capsules of results, given by number, type and place; the context goes with them."""
        f, full, on = self.f, self.f.label("full"), self.f.label("on")
        rows = [_RUN_WORDS * 8]
        for _, t, place in kept:
            self._own(context, t, place, full)
            rows.append(rows[-1] + COMPONENTS + 8 * len(kinds(t)))
        run = f.offset(self._room(context, str(rows[-1]), full), HEAD)
        owner = f.load("ptr", f.offset(self.table, OWNER))
        self._call("void", "Py_IncRef", f"ptr {owner}")
        for at, word in enumerate((context, self.table, owner)):
            f.store("ptr", word, f.offset(run, 8 * at))
        f.store("i64", str(len(kept)), f.offset(run, 24))
        gone, name = (f.load("ptr", f.offset(self.table, word)) for word in (GONE, NAME))
        for (i, t, place), at in zip(kept, rows, strict=False):
            row = f.offset(run, at)
            f.store("ptr", run, row)
            f.store("i64", str(layout(t)), f.offset(row, LAYOUT))
            self._copy(f.offset(row, COMPONENTS), place, str(8 * len(kinds(t))))
            made = self._sure(self._call("ptr", "PyCapsule_New", f"ptr {row}", f"ptr {name}", f"ptr {gone}"))
            self._call("i32", "PyList_SetItem", f"ptr {results}", f"i64 {i}", f"ptr {made}")
        with f.when(compare(f, "eq", f.load("i64", self.table), 0), "last"):  # other graphs of this Program are alive
            f.call("void", f.load("ptr", f.offset(self.table, TRIM)), f"ptr {context}")
        f.jump(on)
        f.start(full)
        self._call("ptr", "PyErr_NoMemory")
        f.jump(self.failed)
        f.start(on)

    # ---- both ------------------------------------------------------------------------------------------------------
    def _each(self, t: ListType, block: str, write: Callable[[Type, str], None]) -> None:
        """Write something for each row of a list, where there is one and elements have parts."""
        f = self.f
        if not any(True for _ in parts(t.element)):
            return
        with f.when(f.value(f"icmp ne ptr {block}, null"), "list"):
            rows = f.offset(f.load("ptr", f.offset(block, STORAGE)), HEAD)
            with f.loop(f.load("i64", f.offset(block, LENGTH)), hint="element") as i:
                write(t.element, f.offset(rows, times(f, i, row_bytes(t))))

    def _room(self, context: str, size: str, full: str) -> str:
        f, on = self.f, self.f.label("on")
        block = f.call("ptr", "@dy2st.allocate", f"ptr {context}", f"i64 {size}")
        f.branch(f.value(f"icmp ne ptr {block}, null"), on, full)
        f.start(on)
        return block

    def _begin_list(self, block: str, length: str, storage: str) -> None:
        for field in (LENGTH, CAPACITY):
            self.f.store("i64", length, self.f.offset(block, field))
        self.f.store("ptr", storage, self.f.offset(block, STORAGE))

    def _copy(self, target: str, source: str, size: str) -> None:
        self.f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {size}", "i1 false")
