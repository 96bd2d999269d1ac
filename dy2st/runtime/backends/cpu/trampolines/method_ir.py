"""The text of the machine code that stands in the place of methods written in Python (methods.py).

What the functions do, and what stands on their plates, is said where they are used: grad_mode.py, static_function.py. A
later process has their code, and does not load this.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import Function, Module
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api
from dy2st.runtime.backends.cpu.python_abi.entry_values import Values
from dy2st.runtime.backends.cpu.trampolines import grad_mode as grad_switch
from dy2st.runtime.backends.cpu.trampolines import methods
from dy2st.runtime.backends.cpu.trampolines import static_function as static_calls


def plate_text(symbol: str) -> str:
    """Return the line that declares a plate."""
    return f"@{symbol} = external global i64"


def method_function(name: str, parameters: list[tuple[str, str]], symbol: str) -> Function:
    """Return a function that has its plate."""
    f = Function(name, parameters, "ptr", also="nounwind")
    f.do(f"%plate = getelementptr i8, ptr @{symbol}, i64 0")
    return f


class Methods(Values):
    """Writes methods."""

    def __init__(self, f: Function):
        super().__init__(f, Module())

    def _word(self, at: int, kind: str = "ptr") -> str:
        return self.f.load(kind, self.f.offset(self.table, at))

    def _type_of(self, x: str) -> str:
        return self.f.load("ptr", self.f.offset(x, api.TYPE))

    def _slot(self, x: str, at: int) -> str:
        return self.f.offset(x, self._word(at, "i64"))

    def _held(self, x: str) -> str:
        self._call("void", "Py_IncRef", f"ptr {x}")
        return x

    def _let_go(self, x: str) -> None:
        self._call("void", "Py_DecRef", f"ptr {x}")

    def _current(self) -> str:
        """Write a read of the current context, which is held."""
        now = self.f.slot("ptr")
        status = self._call("i32", "PyContextVar_Get", f"ptr {self._word(methods.VARIABLE)}", "ptr null", f"ptr {now}")
        self._fine(self.f.value(f"icmp eq i32 {status}, 0"))
        return self.f.load("ptr", now)

    def _make_current(self, x: str) -> str:
        """Write a switch to another context; return whether it was made, else Python's error is set."""
        token = self._call("ptr", "PyContextVar_Set", f"ptr {self._word(methods.VARIABLE)}", f"ptr {x}")
        made = self.f.value(f"icmp ne ptr {token}, null")
        with self.f.when(made, "made"):
            self._let_go(token)
        return made

    def _by_python(self, function: str, first: str, count: str, names: str = "null") -> None:
        """Write a call of a function of Python with an object and those that were `given`, and its return."""
        f = self.f
        every = f.value(f"add i64 {count}, 1")
        more = f.slot("i64")
        f.store("i64", "0", more)
        if names != "null":
            with f.when(f.value(f"icmp ne ptr {names}, null"), "named"):
                f.store("i64", self._call("i64", "PyTuple_Size", f"ptr {names}"), more)
        total = f.value(f"add i64 {count}, {f.load('i64', more)}")
        row = f.value(f"alloca ptr, i64 {f.value(f'add i64 {total}, 1')}")
        f.store("ptr", first, row)
        if count != "0":
            with f.loop(total, hint="given") as i:
                f.store("ptr", f.load("ptr", f.offset("%given", i, "ptr")), f.offset(f.offset(row, 8), i, "ptr"))
        f.ret("ptr", self._call("ptr", "PyObject_Vectorcall", f"ptr {function}", f"ptr {row}", f"i64 {every}",
                                f"ptr {names}"))  # fmt: skip

    def _end(self) -> None:
        """Write what failed calls return."""
        self.f.start(self.failed)
        self.f.ret("ptr", "null")

    def _else(self, condition: str, other: str) -> None:
        """Go on where a condition holds, else to a label."""
        on = self.f.label("on")
        self.f.branch(condition, on, other)
        self.f.start(on)


_FUNCTIONS = {
    "make": [("ptr", "%kind"), ("ptr", "%given"), ("i64", "%flags"), ("ptr", "%names")],
    "enter": [("ptr", "%self"), ("ptr", "%nothing")],
    "exit": [("ptr", "%self"), ("ptr", "%given"), ("i64", "%count")],
}


def switch_text() -> str:
    """Return the code of grad_mode.py."""
    texts = [plate_text(grad_switch.PLATE)]
    for name, parameters in _FUNCTIONS.items():
        f = method_function(f"dy2st.grad.{name}", parameters, grad_switch.PLATE)
        getattr(_Switch(f), name)()
        texts.append(f.text())
    return "\n\n".join(texts) + "\n"


class _Switch(Methods):
    """Writes the three functions."""

    def _nothing(self) -> None:
        self.f.ret("ptr", self._held(self._address("None")))

    def make(self) -> None:
        """Write what makes a `no_grad` or `enable_grad`."""
        f = self.f
        count = f.value(f"and i64 %flags, {2**63 - 1}")
        self._only(compare(f, "eq", count, 0))
        self._only(f.value("icmp eq ptr %names, null"))
        empty = self._word(grad_switch.NOTHING)
        made = self._sure(f.call("ptr", self._word(grad_switch.NEW), "ptr %kind", f"ptr {empty}", "ptr null"))
        f.store("ptr", self._held(empty), self._slot(made, grad_switch.CHANGES))
        f.ret("ptr", made)
        f.start(self.other)
        off = f.value(f"icmp eq ptr %kind, {self._word(grad_switch.OFF)}")
        function = f.value(
            f"select i1 {off}, ptr {self._word(grad_switch.NEW_OFF)}, ptr {self._word(grad_switch.NEW_ON)}"
        )
        self._by_python(function, "%kind", count, "%names")
        self._end()

    def enter(self) -> None:
        """Write the beginning of a `with`."""
        f, kind, leave = self.f, self._type_of("%self"), self.f.label("leave")
        off, on = (f.value(f"icmp eq ptr {kind}, {self._word(at)}") for at in (grad_switch.OFF, grad_switch.ON))
        self._only(f.value(f"or i1 {off}, {on}"))
        place = self._slot("%self", grad_switch.CHANGES)
        changes = f.load("ptr", place)
        self._only(f.value(f"icmp ne ptr {changes}, null"))
        before = self._current()
        self._else(f.value(f"icmp eq ptr {self._type_of(before)}, {self._word(grad_switch.CONTEXT)}"), leave)
        after = f.load("ptr", self._slot(before, grad_switch.SWITCHED))
        self._else(f.value(f"icmp ne ptr {after}, null"), leave)
        self._else(f.value(f"icmp eq ptr {self._type_of(after)}, {self._word(grad_switch.CONTEXT)}"), leave)
        mode = f.value(f"select i1 {off}, ptr {self._address('False')}, ptr {self._address('True')}")
        self._else(f.value(f"icmp eq ptr {f.load('ptr', self._slot(after, grad_switch.GRAD))}, {mode}"), leave)
        row = self._call("ptr", "PyTuple_New", "i64 3")
        self._else(f.value(f"icmp ne ptr {row}, null"), bad := f.label("bad"))
        for i, x in enumerate((before, after, changes)):
            self._call("i32", "PyTuple_SetItem", f"ptr {row}", f"i64 {i}", f"ptr {self._held(x)}")
        self._let_go(before)  # as this function held it
        made, good, lost = self._make_current(after), f.label("good"), f.label("lost")
        f.branch(made, good, lost)
        f.start(good)
        f.store("ptr", row, place)
        self._let_go(changes)
        self._nothing()
        f.start(lost)
        self._let_go(row)
        f.jump(self.failed)
        f.start(bad)
        self._let_go(before)
        f.jump(self.failed)
        f.start(leave)
        self._let_go(before)
        f.jump(self.other)
        f.start(self.other)
        self._by_python(self._word(grad_switch.BY_ENTER), "%self", "0")
        self._end()

    def exit(self) -> None:
        """Write the end of a `with`."""
        f, place = self.f, self._slot("%self", grad_switch.CHANGES)
        changes = f.load("ptr", place)
        self._only(f.value(f"icmp ne ptr {changes}, null"))
        self._only(compare(f, "eq", self._call("i64", "PyTuple_Size", f"ptr {changes}"), 3))
        before, after, rest = (self._call("ptr", "PyTuple_GetItem", f"ptr {changes}", f"i64 {i}") for i in range(3))
        now = self._current()
        self._let_go(now)
        self._only(f.value(f"icmp eq ptr {now}, {after}"))
        self._fine(self._make_current(before))
        f.store("ptr", self._held(rest), place)
        self._let_go(changes)
        self._nothing()
        f.start(self.other)
        self._by_python(self._word(grad_switch.BY_EXIT), "%self", "%count")
        self._end()


def static_text() -> str:
    """Return the code of static_function.py."""
    parameters = [("ptr", "%self"), ("ptr", "%given"), ("i64", "%count"), ("ptr", "%names")]
    f = method_function("dy2st.static.call", parameters, static_calls.PLATE)
    _Call(f).write()
    return f"{plate_text(static_calls.PLATE)}\n\n{f.text()}\n"


class _Call(Methods):
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
        self._by_python(self._word(static_calls.CALL), "%self", "%count", "%names")
        self._end()
