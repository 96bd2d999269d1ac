"""The text of the machine code that stands in the place of `StaticFunction.__call__` (static_function.py).

A later process has its code, and does not load this.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.python_abi.entry_values import ObjectConversions
from dy2st.runtime.backends.cpu.trampolines import static_function as static_calls


def static_text() -> str:
    """Return the code of static_function.py."""
    parameters = [("ptr", "%self"), ("ptr", "%given"), ("i64", "%count"), ("ptr", "%names")]
    f = LLVMFunction("dy2st.static.call", parameters, "ptr", also="nounwind")
    f.do(f"%plate = getelementptr i8, ptr @{static_calls.PLATE}, i64 0")
    _Call(f).write()
    return f"@{static_calls.PLATE} = external global i64\n\n{f.text()}\n"


class _Call(ObjectConversions):
    def __init__(self, f: LLVMFunction):
        super().__init__(f, LLVMModule())

    def _word(self, at: int, kind: str = "ptr") -> str:
        return self.f.load(kind, self.f.offset(self.table, at))

    def _slot(self, x: str, at: int) -> str:
        return self.f.offset(x, self._word(at, "i64"))

    def _held(self, x: str) -> str:
        self._call("void", "Py_IncRef", f"ptr {x}")
        return x

    def _let_go(self, x: str) -> None:
        self._call("void", "Py_DecRef", f"ptr {x}")

    def _current(self) -> str:
        """Write a read of the current context, which is held."""
        now, variable = self.f.slot("ptr"), self._word(static_calls.VARIABLE)
        status = self._call("i32", "PyContextVar_Get", f"ptr {variable}", "ptr null", f"ptr {now}")
        self._fine(self.f.value(f"icmp eq i32 {status}, 0"))
        return self.f.load("ptr", now)

    def _by_python(self) -> None:
        """Write a call of the method in Python with what this one was given, and its return."""
        f, more = self.f, self.f.slot("i64")
        f.store("i64", "0", more)
        with f.when(f.value("icmp ne ptr %names, null"), "named"):
            f.store("i64", self._call("i64", "PyTuple_Size", "ptr %names"), more)
        total = f.value(f"add i64 %count, {f.load('i64', more)}")
        row = f.value(f"alloca ptr, i64 {f.value(f'add i64 {total}, 1')}")
        f.store("ptr", "%self", row)
        with f.loop(total, hint="given") as i:
            f.store("ptr", f.load("ptr", f.offset("%given", i, "ptr")), f.offset(f.offset(row, 8), i, "ptr"))
        every, function = f.value("add i64 %count, 1"), self._word(static_calls.CALL)
        given = f"ptr {function}", f"ptr {row}", f"i64 {every}", "ptr %names"
        f.ret("ptr", self._call("ptr", "PyObject_Vectorcall", *given))

    def write(self) -> None:
        """Write the call."""
        f = self.f
        self._only(f.value("icmp eq ptr %names, null"))
        like = f.load("ptr", self._slot("%self", static_calls.LIKE))
        self._only(f.value(f"icmp ne ptr {like}, null"))
        self._only(f.value(f"icmp ne ptr {like}, {self._address('None')}"))
        *modes, number, call, program = (
            self._call("ptr", "PyTuple_GetItem", f"ptr {like}", f"i64 {i}") for i in range(len(static_calls.MODES) + 3)
        )
        now = self._current()
        self._let_go(now)  # whoever made it current holds it
        trace = f.load("ptr", self._slot(now, static_calls.TRACE))
        self._only(f.value(f"icmp eq ptr {trace}, {self._address('None')}"))
        for i, mode in enumerate(modes):
            self._only(
                f.value(f"icmp eq ptr {f.load('ptr', self._slot(now, static_calls.FIRST_MODE + 8 * i))}, {mode}")
            )
        enabled = f.load("ptr", self._slot(modes[static_calls.MODES.index("process")], static_calls.ENABLED))
        self._only(f.value(f"icmp eq ptr {enabled}, {self._address('True')}"))
        over = f.slot("i32")
        count = self._call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {number}", f"ptr {over}")
        self._only(compare(f, "eq", count, "%count"))
        self._held(like)  # while it runs, another call may put something else there
        made = self._call("ptr", "PyObject_Vectorcall", f"ptr {call}", "ptr %given", "i64 %count", "ptr null")
        other, done, ended = f.label("unseen"), f.label("done"), f.label("ended")
        f.branch(f.value(f"icmp eq ptr {made}, {self._word(static_calls.UNSEEN)}"), other, done)
        f.start(other)
        self._let_go(made)
        self._let_go(like)
        f.jump(self.other)
        f.start(done)
        place = self._slot("%self", static_calls.LAST)
        last = f.load("ptr", place)
        another = f.value(f"icmp ne ptr {last}, {program}")
        change = f.value(f"and i1 {another}, {f.value(f'icmp ne ptr {made}, null')}")
        with f.when(change, "change"):
            f.store("ptr", self._held(program), place)
            self._let_go(last)
        f.jump(ended)
        f.start(ended)
        self._let_go(like)
        f.ret("ptr", made)
        f.start(self.other)
        self._by_python()
        f.start(self.failed)
        f.ret("ptr", "null")
