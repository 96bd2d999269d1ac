"""Text of LLVM functions, written line by line.

>>> f = LLVMFunction("twice", [("i64", "%x")], "i64")
>>> f.ret("i64", f.value("add i64 %x, %x"))
>>> print(f.text())
define i64 @twice(i64 %x) {
entry:
  %v0 = add i64 %x, %x
  ret i64 %v0
}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition

_LONG_BLOCK = 200
"""How many instructions a block has when it is cut."""


MOST_WRITTEN_OUT = 32_000
"""How many letters of others a function has in it; it calls what is beyond. LLVM takes 2 us and more for each letter, a
call takes 5% of a short function of the math library, and nothing beside a long one."""


class LLVMFunction:
    """One LLVM function that is being written; registers are named, slots on the stack stand in its first block."""

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str = "void",
        *,
        linkage: str = "",
        also: str = "",
    ):
        self.name, self.result = name, result
        shown = ", ".join(f"{kind} {register}" for kind, register in parameters)
        words = (word for word in ("define", linkage, result, f"@{name}({shown})", also, "{") if word)
        self._head = " ".join(words)
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self.here = "entry"
        """The label of the block that is being written."""
        self._ended = False
        self._began = 0
        self._written_out = 0

    def value(self, text: str) -> str:
        """Write an instruction and return the register of its result."""
        register = f"%v{self._count}"
        self._count += 1
        self.do(f"{register} = {text}")
        return register

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        if not self._ended:
            self._lines.append(f"  {text}")

    def slot(self, kind: str, count: int = 1) -> str:
        """Return the address of a place on the stack for `count` values of a type."""
        register = f"%s{self._count}"
        self._count += 1
        many = f", i64 {count}" if count != 1 else ""
        self._slots.append(
            f"  {register} = alloca {kind}{many}, align 64" if count != 1 else f"  {register} = alloca {kind}"
        )
        return register

    def load(self, kind: str, address: str) -> str:
        """Write a load."""
        return self.value(f"load {kind}, ptr {address}")

    def store(self, kind: str, value: str, address: str) -> None:
        """Write a store."""
        self.do(f"store {kind} {value}, ptr {address}")

    def offset(self, address: str, count: str | int, kind: str = "i8") -> str:
        """Write the address `count` values of a type behind another."""
        return (
            address if str(count) == "0" else self.value(f"getelementptr inbounds {kind}, ptr {address}, i64 {count}")
        )

    def call(self, result: str, function: str, *arguments: str) -> str:
        """Write a call; the arguments come with their types. A call of a `void` function has no register."""
        text = f"call {result} {function}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.value(text)

    def has_room(self, letters: int) -> bool:
        """Return whether a function of so many letters is to be written out where it is called, and note that it is."""
        if self._written_out + letters > MOST_WRITTEN_OUT:
            return False
        self._written_out += letters
        return True

    # ---- blocks ----------------------------------------------------------------------------------------------------
    def label(self, hint: str) -> str:
        """Return a new label."""
        self._count += 1
        return f"{hint}{self._count}"

    def start(self, label: str) -> None:
        """Begin the block of this label; the one before falls through to it where it has no end yet."""
        self.jump(label)
        self._lines.append(f"{label}:")
        self.here, self._ended = label, False
        self._began = len(self._lines)

    def cut(self) -> None:
        """Begin another block where this one is long: LLVM takes time by the square of a block's length."""
        if len(self._lines) - self._began > _LONG_BLOCK:
            self.start(self.label("on"))

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.do(f"br label %{label}")
        self._ended = True

    def branch(self, condition: str, then: str, other: str) -> None:
        """End the block with a choice."""
        self.do(f"br i1 {condition}, label %{then}, label %{other}")
        self._ended = True

    def ret(self, kind: str = "void", value: str = "") -> None:
        """End the block with a return."""
        self.do(f"ret {kind} {value}".rstrip())
        self._ended = True

    @contextmanager
    def when(self, condition: str, hint: str = "if") -> Iterator[None]:
        """Write what runs only where the condition holds."""
        inside, after = self.label(hint), self.label("then")
        self.branch(condition, inside, after)
        self.start(inside)
        yield
        self.start(after)

    @contextmanager
    def loop(self, stop: str, step: str | int = 1, start: str | int = 0, hint: str = "loop") -> Iterator[str]:
        """Write a loop whose counter runs from `start` while it is below `stop`; gives the counter's register."""
        head, body, done = self.label(hint), self.label("turn"), self.label("done")
        before = self.here
        counter, following = f"%i{self._count}", f"%n{self._count}"
        self.jump(head)
        self._lines.append(f"{head}:")
        self.here, self._ended = head, False
        place = len(self._lines)
        self.branch(self.value(f"icmp slt i64 {counter}, {stop}"), body, done)
        self.start(body)
        yield counter
        self.do(f"{following} = add nsw i64 {counter}, {step}")
        back = self.here
        self.jump(head)
        self._lines.insert(place, f"  {counter} = phi i64 [ {start}, %{before} ], [ {following}, %{back} ]")
        self._lines.append(f"{done}:")
        self.here, self._ended = done, False

    def text(self) -> str:
        """Return the function as LLVM reads it."""
        return "\n".join([self._head, "entry:", *self._slots, *self._lines, "}"])


class LLVMModule:
    """Definitions of a module, each name once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self.names: dict[Hashable, str] = {}
        """The names of functions by what they do, where that is known before they are written."""
        self.strict = False
        """Whether functions of floats are to be right to one unit in the last place."""
        self.better: Callable[[str], Definition | None] = lambda name: None
        """What the target has better definitions of, by name."""

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    @property
    def texts(self) -> Mapping[str, str]:
        """The definitions and declarations by name."""
        return self._texts

    def add(self, name: str, text: str) -> str:
        """Add the text of a definition or declaration; a name that is there already keeps its first text."""
        self._texts.setdefault(name, text)
        return name

    def replace(self, name: str, text: str) -> None:
        """Give a definition that is there another text; a function that calls itself is named before it is written."""
        self._texts[name] = text

    def text(self, beside: LLVMModule | None = None) -> str:
        """Return the module as LLVM reads it; it may call what the module `beside` defines."""
        own = "\n\n".join(self._texts.values()) + "\n"
        if beside is None:
            return own
        called = {name.rstrip(".") for name in re.findall(r"@(dy2st[\w.]*)", own)}
        return "\n".join([*(beside.declaration(n) for n in sorted(called) if n in beside and n not in self), own])

    def declaration(self, name: str) -> str:
        """Return the line by which another module knows a function of this one."""
        head = self._texts[name].partition("\n")[0]
        result, _, rest = head.removeprefix("define ").partition(f" @{name}(")
        kinds = ", ".join(p.rpartition(" ")[0] for p in rest.partition(")")[0].split(", ") if p)
        return f"declare {result} @{name}({kinds})"
