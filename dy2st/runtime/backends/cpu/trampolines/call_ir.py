"""The text of the machine code between a call that hit the inline cache and the native code of its Program.

What the functions do, and what stands on their plates, is said where they are used: call.py, watched_words.py,
write_back.py. A later process has their code, and does not load this.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_values import ObjectConversions
from dy2st.runtime.backends.cpu.trampolines import call, watched_words
from dy2st.runtime.backends.cpu.trampolines import write_back as known_writes


def known_text() -> str:
    """Return the code of call.py and watched_words.py."""
    parameters = [("ptr", "%plate"), ("ptr", "%given"), ("i64", "%count")]
    known = LLVMFunction("dy2st.known", parameters, "ptr", also="nounwind")
    _Known(known, LLVMModule()).write()
    made = LLVMFunction(
        "dy2st.tensor", [("ptr", "%plate"), ("ptr", "%array")], "ptr", linkage="internal", also="nounwind"
    )
    _Tensors(made, LLVMModule()).write()
    same = LLVMFunction("dy2st.unchanged", parameters, "ptr", also="nounwind")
    _Unchanged(same, LLVMModule()).write()
    return f"{made.text()}\n\n{known.text()}\n\n{same.text()}\n"


class _Tensors(ObjectConversions):
    """Writes the function that makes a tensor of an array; null where Python has set an error, as for no array."""

    def write(self) -> None:
        f = self.f
        self._sure("%array")
        maker = f.load("ptr", f.offset(self.table, call.MAKER))
        new, *given = (f.load("ptr", f.offset(maker, at)) for at in (call.NEW, call.TYPE, call.NOTHING))
        made = self._sure(f.call("ptr", new, *(f"ptr {x}" for x in given), "ptr null"))
        with f.loop(f.load("i64", f.offset(maker, call.SLOTS)), hint="slot") as i:
            line = f.offset(f.offset(maker, call.FILLED), i, "[2 x i64]")
            self._put(made, f.load("i64", line), f.load("ptr", f.offset(line, 8)))
        self._put(made, f.load("i64", f.offset(self.table, call.ARRAY)), "%array")
        f.ret("ptr", made)
        f.start(self.failed)
        f.ret("ptr", "null")

    def _put(self, made: str, at: str, value: str) -> None:
        self._call("void", "Py_IncRef", f"ptr {value}")
        self.f.store("ptr", value, self.f.offset(made, at))


class _Known(ObjectConversions):
    """Writes the function that Python calls."""

    def write(self) -> None:
        f, count = self.f, self._field(call.INPUTS)
        self._only(compare(f, "eq", "%count", f.value(f"add i64 {count}, 1")))
        row, inputs = f.value(f"alloca ptr, i64 {count}"), f.offset("%given", 8)
        with f.loop(count, hint="input") as i:
            self._look(i, f.load("ptr", f.offset(inputs, i, "ptr")), f.offset(row, i, "ptr"))
        with f.loop(self._field(call.DISTINCT), hint="one") as i, f.loop(i, hint="other") as j:
            one, other = (f.load("ptr", f.offset(inputs, k, "ptr")) for k in (i, j))
            self._only(f.value(f"icmp ne ptr {one}, {other}"))
        self._each(row, count, "Py_IncRef")
        rows = f"ptr {f.load('ptr', '%given')}", f"ptr {row}", f"i64 {count}", "ptr null"
        made = self._call("ptr", "PyObject_Vectorcall", *rows)
        self._each(row, count, "Py_DecRef")
        self._sure(made)
        listed, no = f.label("list"), f.label("no")
        f.branch(self._is(f.load("ptr", f.offset(made, api.TYPE)), "list"), listed, no)
        f.start(no)
        with f.when(self._is(made, "False"), "refused"):
            self._call("void", "Py_DecRef", f"ptr {made}")
            f.jump(self.other)
        f.ret("ptr", made)
        f.start(listed)
        self._wrap(made)
        f.start(self.other)
        unseen = f.load("ptr", f.offset(self.table, call.UNSEEN))
        self._call("void", "Py_IncRef", f"ptr {unseen}")
        f.ret("ptr", unseen)
        f.start(self.failed)
        f.ret("ptr", "null")

    def _field(self, at: int) -> str:
        return self.f.load("i64", self.f.offset(self.table, at))

    def _look(self, i: str, given: str, place: str) -> None:
        """Write a look at one input; what goes on stands at `place` then."""
        f = self.f
        line = f.offset(f.offset(self.table, call.LINES), i, "[2 x i64]")
        kind = f.load("i64", line)
        f.store("ptr", given, place)
        with f.when(compare(f, "eq", kind, 1), "held"):
            f.store("ptr", self._sure(self._call("ptr", "PyTuple_GetItem", f"ptr {given}", "i64 0")), place)
        with f.when(compare(f, "ugt", kind, 1), "tensor"):
            self._only(compare(f, "eq", f.load("i64", f.offset(given, api.TYPE)), kind))
            stop, wanted = f.load("ptr", f.offset(given, self._field(call.STOP))), f.load("ptr", f.offset(line, 8))
            any_stop, same = (f.value(f"icmp eq ptr {wanted}, {x}") for x in ("null", stop))
            self._only(f.value(f"or i1 {any_stop}, {same}"))
            array = f.load("ptr", f.offset(given, self._field(call.ARRAY)))
            self._only(f.value(f"icmp ne ptr {array}, null"))
            f.store("ptr", array, place)

    def _each(self, row: str, count: str, function: str) -> None:
        with self.f.loop(count, hint="each") as i:
            self._call("void", function, f"ptr {self.f.load('ptr', self.f.offset(row, i, 'ptr'))}")

    def _wrap(self, made: str) -> None:
        """Write what makes tensors of results, and the return."""
        f, count = self.f, self._field(call.RESULTS)
        alone, some, bad = f.label("alone"), f.label("some"), f.label("bad")
        f.branch(compare(f, "eq", count, call.ALONE), alone, some)
        f.start(alone)
        only = self._tensor(made, "0")
        self._call("void", "Py_DecRef", f"ptr {made}")
        f.ret("ptr", only)
        f.start(some)
        numbers = f.load("ptr", f.offset(self.table, call.NUMBERS))
        with f.loop(count, hint="result") as i:
            number = f.load("i64", f.offset(numbers, i, "i64"))
            tensor, fine = self._tensor(made, number), f.label("fine")
            f.branch(f.value(f"icmp ne ptr {tensor}, null"), fine, bad)
            f.start(fine)
            self._call("i32", "PyList_SetItem", f"ptr {made}", f"i64 {number}", f"ptr {tensor}")
        f.ret("ptr", made)
        f.start(bad)
        self._call("void", "Py_DecRef", f"ptr {made}")
        f.jump(self.failed)

    def _tensor(self, results: str, number: str) -> str:
        array = self._call("ptr", "PyList_GetItem", f"ptr {results}", f"i64 {number}")
        return self.f.call("ptr", "@dy2st.tensor", "ptr %plate", f"ptr {array}")


class _Unchanged(ObjectConversions):
    """Writes the function that compares words, versions of classes and entries of dicts with what they were."""

    def write(self) -> None:
        f, lines = self.f, self.f.offset(self.table, watched_words.LINES)
        for kind, count in (
            ("i64", watched_words.WORDS),
            ("i32", watched_words.VERSIONS),
            ("entry", watched_words.ENTRIES),
        ):
            number = f.load("i64", f.offset(self.table, count))
            with f.loop(number, hint="line") as i:
                line = f.offset(lines, i, "[3 x i64]")
                first, wanted = f.load("ptr", line), f.offset(line, 16)
                if kind == "entry":
                    key = f.load("ptr", f.offset(line, 8))
                    found = self._call("ptr", "PyDict_GetItemWithError", f"ptr {first}", f"ptr {key}")
                    self._only(f.value(f"icmp eq ptr {found}, {f.load('ptr', wanted)}"))
                else:
                    self._only(f.value(f"icmp eq {kind} {f.load(kind, first)}, {f.load(kind, wanted)}"))
            lines = f.offset(lines, number, "[3 x i64]")
        self._truth("True")
        f.start(self.other)
        self._truth("False")

    def _truth(self, name: str) -> None:
        self._call("void", "Py_IncRef", f"ptr {self._address(name)}")
        self.f.ret("ptr", self._address(name))


def written_text() -> str:
    """Return the code of write_back.py."""
    f = LLVMFunction("dy2st.written", [("ptr", "%plate"), ("ptr", "%given"), ("i64", "%count")], "ptr", also="nounwind")
    _Written(f, LLVMModule()).write()
    return f"{f.text()}\n"


class _Written(ObjectConversions):
    def write(self) -> None:
        """Write the function."""
        f, results, row = self.f, self.f.load("ptr", "%given"), self.f.slot("ptr", 2)
        with f.loop(self._field(known_writes.COUNT, "i64"), hint="write") as i:
            line = f.offset(f.offset(self.table, known_writes.LINES), i, "[2 x i64]")
            tensor, number = f.load("ptr", line), f.load("i64", f.offset(line, 8))
            data, alone, shared, none, on = (f.label(hint) for hint in ("data", "alone", "shared", "none", "on"))
            f.branch(compare(f, "eq", number, known_writes.NO_GRADIENT), none, data)
            f.start(none)
            self._put(tensor, known_writes.GRADIENT, self._address("None"))
            f.jump(on)
            f.start(data)
            value = self._sure(self._call("ptr", "PyList_GetItem", f"ptr {results}", f"i64 {number}"))
            version = f.load("ptr", f.offset(tensor, self._field(known_writes.VERSION, "i64")))
            f.branch(self._is(version, "None"), alone, shared)
            f.start(alone)
            self._put(tensor, known_writes.ARRAY, value)
            f.jump(on)
            f.start(shared)
            f.store("ptr", tensor, row)
            f.store("ptr", value, f.offset(row, 8))
            given = f"ptr {self._field(known_writes.SHARED, 'ptr')}", f"ptr {row}", "i64 2", "ptr null"
            made = self._sure(self._call("ptr", "PyObject_Vectorcall", *given))
            self._call("void", "Py_DecRef", f"ptr {made}")
            f.start(on)
        self._call("void", "Py_IncRef", f"ptr {self._address('None')}")
        f.ret("ptr", self._address("None"))
        f.start(self.failed)
        f.ret("ptr", "null")

    def _field(self, at: int, kind: str) -> str:
        return self.f.load(kind, self.f.offset(self.table, at))

    def _put(self, tensor: str, at: int, value: str) -> None:
        """Write that a slot has another object."""
        f = self.f
        place = f.offset(tensor, self._field(at, "i64"))
        before = f.load("ptr", place)
        self._call("void", "Py_IncRef", f"ptr {value}")
        f.store("ptr", value, place)
        self._call("void", "Py_DecRef", f"ptr {before}")
