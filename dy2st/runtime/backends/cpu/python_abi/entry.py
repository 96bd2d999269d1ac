"""The native function that Python calls: it reads arguments where they stand and makes arrays of the results.

    PyObject *dy2st.call(PyObject *plate, PyObject **arguments, Py_ssize_t count)

It gives a list of results; False when arguments are not as they must be for this path (the caller converts them, or
lets the interpreter run); an int, 4 * number of the run + status, when the run ended otherwise. `plate` is an array
of addresses: how many contexts are free, where they stand, and `python_api.NAMES`. All of it runs under the
interpreter's lock, but for kernels that take long: those give it away until the Program has run.

Memory of a large result goes over to the array, which gives it back when it goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from dy2st.ir.program import Program, Value
from dy2st.ir.types import ListType, TensorType, Type, VariantType
from dy2st.ops.core.constant import Detach
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import INTERRUPTED, OBJECTS, OK, PLATE, RUN, TURN
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import function_name, kinds
from dy2st.runtime.backends.cpu.python_abi.entry_lists import Lists, TakenList, is_made, is_read
from dy2st.runtime.backends.cpu.python_abi.entry_tables import Line, known_function, lines_of, made_function, table
from dy2st.runtime.backends.cpu.python_abi.kept_values import is_keepable, is_kept
from dy2st.shapes import Dim

FREE_COUNT, FREE_CONTEXTS = 0, 8
"""Where the fields of the plate stand, in bytes."""


def takes(program: Program) -> bool:
    """Return whether all arguments and results of a Program are of types that the function reads and makes."""
    block = program.block
    if not all(is_read(v.type) or is_keepable(v.type) for v in block.arguments):
        return False
    kept = {i for i, v in enumerate(block.results) if is_kept(program, i, v.type)}
    return all(i in kept or is_made(v.type) for i, v in enumerate(block.results))


class EntryPoint(Lists):
    """Writes the function that Python calls."""

    def __init__(self, module: LLVMModule, kernels: LLVMModule, program: Program, takes_long: bool):
        parameters = [("ptr", "%plate"), ("ptr", "%arguments"), ("i64", "%count")]
        super().__init__(LLVMFunction("dy2st.call", parameters, "ptr", also="nounwind"), kernels)
        self.module, self.program, self.takes_long = module, program, takes_long

    def write(self) -> None:
        """Add the function to the module."""
        f, block = self.f, self.program.block
        given = f.slot("i64", max(1, sum(len(kinds(v.type)) for v in block.arguments)))
        made = f.slot("i64", max(1, sum(len(kinds(v.type)) for v in block.results)))
        taken = self._read(given, [v.type for v in block.arguments])
        free = f.load("i64", f.offset(self.table, FREE_COUNT))
        self._only(f.value(f"icmp sgt i64 {free}, 0"))
        left = f.value(f"sub i64 {free}, 1")
        f.store("i64", left, f.offset(self.table, FREE_COUNT))
        place = f.offset(f.load("ptr", f.offset(self.table, FREE_CONTEXTS)), left, "ptr")
        context = f.load("ptr", place)
        self._take_lists(context, taken)
        self._note_objects(context)
        turn = f.offset(context, TURN)
        f.store("i64", f.value(f"add i64 {f.load('i64', turn)}, 1"), turn)
        status = f.call("i32", f"@{function_name(self.program.entry)}", f"ptr {context}", f"ptr {given}", f"ptr {made}")
        if self.takes_long:
            self.module.add("dy2st.take_lock", "declare void @dy2st.take_lock()")
            f.call("void", "@dy2st.take_lock")
        good, bad = f.label("good"), f.label("bad")
        f.branch(f.value(f"icmp eq i32 {status}, {OK}"), good, bad)
        f.start(bad)
        self._let_go(taken)
        number = f.load("i64", f.offset(context, RUN))
        status = f.call("i32", "@llvm.umin.i32", f"i32 {status}", f"i32 {INTERRUPTED}")
        shown = f.value(f"add i64 {f.value(f'shl i64 {number}, 2')}, {f.value(f'zext i32 {status} to i64')}")
        f.ret("ptr", self._call("ptr", "PyLong_FromLongLong", f"i64 {shown}"))
        f.start(good)
        results = self._results(context, made, block.results)
        self._let_go(taken)
        self._drop(context, taken)
        if not any(is_kept(self.program, i, v.type) for i, v in enumerate(block.results)):
            self._free(context)
        f.ret("ptr", results)
        f.start(self.other)
        f.ret("ptr", self._call("ptr", "PyBool_FromLong", "i64 0"))
        f.start(self.failed)
        f.ret("ptr", "null")
        self.module.add("dy2st.call", f.text())

    @property
    def _renews(self) -> bool:
        """Whether arguments may be overwritten: then an object may come behind them that nobody else holds."""
        return bool(self.program.renewed)

    def _old(self, context: str, result: int) -> str:
        """Write the argument that a result may be, or null."""
        f, number = self.f, dict(self.program.renewed).get(result)
        if number is None:
            return "null"
        none = f.value(f"icmp eq ptr {f.load('ptr', f.offset(context, OBJECTS))}, null")
        return f.value(f"select i1 {none}, ptr null, ptr {f.load('ptr', f.offset('%arguments', 8 * number))}")

    def _note_objects(self, context: str) -> None:
        """Write where the arguments stand, for `buffer_donation.py`; null where nothing is to be overwritten."""
        if self._renews:
            more = self.f.value(f"icmp ne i64 %count, {len(self.program.block.arguments)}")
            objects = self.f.value(f"select i1 {more}, ptr %arguments, ptr null")
            self.f.store("ptr", objects, self.f.offset(context, OBJECTS))
            self.f.store("ptr", "%plate", self.f.offset(context, PLATE))

    def _free(self, context: str) -> None:
        """Write that a context is free again."""
        f = self.f
        now = f.load("i64", f.offset(self.table, FREE_COUNT))  # another thread may have run during a call into Python
        f.store("ptr", context, f.offset(f.load("ptr", f.offset(self.table, FREE_CONTEXTS)), now, "ptr"))
        f.store("i64", f.value(f"add i64 {now}, 1"), f.offset(self.table, FREE_COUNT))

    # ---- arguments -------------------------------------------------------------------------------------------------
    def _take_lists(self, context: str, taken: list[TakenList]) -> None:
        """Write native lists of the arguments that are lists; without memory for them the caller finds its way."""
        if not taken:
            return
        f, full, on = self.f, self.f.label("full"), self.f.label("on")
        self._take(context, taken, full)
        f.jump(on)
        f.start(full)
        self._free(context)
        f.jump(self.other)
        f.start(on)
        self._fill(context, taken)

    def _read(self, row: str, types: Sequence[Type]) -> list[TakenList]:
        """Write a look at all arguments; return the lists among them, which are taken when all is as it must be."""
        f, bound, lists = self.f, dict[Dim, str](), list[tuple[Type, str, str]]()
        more = f.value(f"sub i64 %count, {len(types)}")
        self._only(f.value(f"icmp ule i64 {more}, {int(self._renews)}"))
        places = _places(types)
        tabled = lines_of(types, places)
        if tabled:
            where = table(self.module, "dy2st.entry.arguments", tabled, read=True)
            rows = "ptr %plate", "ptr %arguments", f"ptr {row}"
            self._only(f.call("i1", f"@{known_function(self._kernels)}", *rows, *where))
        for i in _others(len(types), tabled):
            t, value, place = types[i], f.load("ptr", f.offset("%arguments", 8 * i)), f.offset(row, places[i])
            if is_keepable(t):
                lists.append((t, value, place))  # after the arrays, which say what extents are to be
            else:
                self._plain(t, value, place, bound)
        return [self._checked(*one, bound) for one in lists]

    # ---- results ---------------------------------------------------------------------------------------------------
    def _results(self, context: str, row: str, values: Sequence[Value]) -> str:
        f, types = self.f, [v.type for v in values]
        results = self._sure(self._call("ptr", "PyList_New", f"i64 {len(values)}"))
        numbers = {v: i for i, v in enumerate(self.program.block.arguments)}
        given = {i: at for i, v in enumerate(values) if (at := _given(v, numbers)) is not None}
        places = _places(types)
        tabled = lines_of(types, places, given)
        if tabled:
            old = dict(self.program.renewed)
            where = table(self.module, "dy2st.entry.results", tabled, read=False, old=old)
            rows = "ptr %plate", f"ptr {context}", f"ptr {row}", f"ptr {results}"
            self._fine(f.call("i1", f"@{made_function(self._kernels)}", *rows, *where))
        kept = [
            (i, types[i], f.offset(row, places[i])) for i in range(len(types)) if is_kept(self.program, i, types[i])
        ]
        for i in sorted({*_others(len(types), tabled)} - {i for i, _, _ in kept}):
            t, place = types[i], f.offset(row, places[i])
            if i in given:
                made = f.load("ptr", f.offset("%arguments", 8 * given[i]))
                self._call("void", "Py_IncRef", f"ptr {made}")
            elif isinstance(t, ListType):
                made = self._list_of(t, context, place)
            elif isinstance(t, VariantType):
                made = self._optional_of(t, context, place)
            else:
                made = self._object(t, context, place, self._old(context, i))
            self._call("i32", "PyList_SetItem", f"ptr {results}", f"i64 {i}", f"ptr {self._sure(made)}")
        if kept:
            self._keep(context, results, kept)
        return results


def _places(types: Sequence[Type]) -> list[int]:
    """Return where the components of values stand in their row, in bytes."""
    ends = [*itertools.accumulate(8 * len(kinds(t)) for t in types)]
    return [0, *ends[:-1]] if ends else []


def _others(count: int, tabled: Sequence[Line]) -> list[int]:
    """Return the numbers below `count` that have no line in a table."""
    return sorted({*range(count)} - {i for i, _, _ in tabled})


def _given(value: Value, arguments: Mapping[Value, int]) -> int | None:
    """Return which argument a result is, as an array and not a copy of one, as a plan gives it; None for others."""
    while value.operation is not None and isinstance(value.operation.op, Detach):
        (value,) = value.operation.operands
    return arguments.get(value) if isinstance(value.type, TensorType) else None
