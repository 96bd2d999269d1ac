"""The native code of a Program as one object file that needs no Python: for libraries that C calls (jit/c_library/).

    i32  @<prefix>run(ptr %context, ptr %operands, ptr %results)      the Program (lowering.py), and what it needs:
    ptr  @<prefix>allocate(ptr %context, i64 %bytes)                  a block, held once
    void @<prefix>release(ptr %context, ptr %block)                   hold it no more
    ptr  @<prefix>make(ptr %context, i64 %bytes, i64 %class)          what a context has at ALLOCATE
    @<prefix>library                                                  what a context has at LIBRARY

Everything else is internal to the object, so any number of them may be linked to one program. What it calls stands in
`OUTSIDE`; the numbers that it calls `failed` with are those of `StandaloneCode.failures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dy2st.errors import Dy2stError
from dy2st.ir.program import Program
from dy2st.records import record
from dy2st.runtime.backends.cpu import runtime_library_symbols
from dy2st.runtime.backends.cpu.allocator.budget import MAKING
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.emitter.function_emitter import EmitterContext
from dy2st.runtime.backends.cpu.emitter.host_calls import NoFormWithoutPython
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import function_name
from dy2st.runtime.backends.cpu.lowering import lower, prepared
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import HostCallback
from dy2st.runtime.backends.cpu.runtime_library import parts

OUTSIDE = {
    "dy2st.python": "failed",
    "dy2st.parallel": "parallel",
    "dy2st.share": "parallel",
    "dy2st.threads": "threads",
    "dy2st.lowest": "lowest",
    "dy2st.export.new": "new",
    "dy2st.export.old": "old",
}
"""What the code calls, by the names that it has in a process with Python, and those that C gives it, after a prefix:

    i32  failed(ptr context, i64 number, ptr operands, ptr results)     the status with which the run ends
    void parallel(ptr body, ptr row, i64 units, i64 cost, i64 most)     job_scheduling.py
    i64  threads()                                                      how many of them there may be
    i64  lowest(i64 here)                                               python_abi/stack_limit.py
    ptr  new(i64 align, i64 bytes)                                      memory, and
    void old(ptr block)                                                 back
"""
_ENTRIES = """\
declare ptr @dy2st.export.new(i64, i64)
declare void @dy2st.export.old(ptr)

define i32 @dy2st.poll(ptr %context) {{
  ret i32 0
}}

define hidden i32 @dy2st.exported.run(ptr %context, ptr %operands, ptr %results) {{
  %status = call i32 @{function}(ptr %context, ptr %operands, ptr %results)
  ret i32 %status
}}

define hidden ptr @dy2st.exported.allocate(ptr %context, i64 %bytes) {{
  %block = call ptr @dy2st.allocate(ptr %context, i64 %bytes)
  ret ptr %block
}}

define hidden void @dy2st.exported.release(ptr %context, ptr %block) {{
  call void @dy2st.release(ptr %context, ptr %block)
  ret void
}}

define hidden ptr @dy2st.exported.make(ptr %context, i64 %bytes, i64 %class) {{
  %block = call ptr @dy2st.export.make(ptr %context, i64 %bytes, i64 %class)
  ret ptr %block
}}
"""
_NAME = re.compile(r"@([\w.$-]+)")


class NotStandalone(Dy2stError, TypeError):
    """A Program with operations that only Python can run; the text names each of them with its line."""

    def __init__(self, found: Sequence[tuple[str, object]]):
        self.operations = tuple(found)
        lines = dict.fromkeys(f"  {name} at {place or 'an unknown line'}" for name, place in found)
        super().__init__("\n".join(["no native code without Python is there for:", *lines]))


@record(frozen=True)
class StandaloneCode:
    """An object file, what its failures are by their numbers, and the arrays that it reads by theirs."""

    object: bytes
    failures: tuple[str, ...]
    constants: tuple[np.ndarray[Any, Any], ...]


def standalone(program: Program, target: Target, prefix: str, outside: str) -> StandaloneCode:
    """Return the code of an optimised Program; NotStandalone where it has operations that only Python can run.

    Its names begin with `prefix`, those of `OUTSIDE` with `outside`.
    """
    made = prepared(program, target.strict)
    made.renewed = ()
    try:
        unit = lower(made, target, standalone=True)
    except NoFormWithoutPython as error:
        raise NotStandalone([(_what(error.call), error.call.location)]) from None
    text = _module(unit, target, prefix, outside)
    failures = tuple(f"{_said(call)} ({call.location or 'an unknown line'})" for call in unit.calls)
    return StandaloneCode(compile_object(text, target, passes=("GlobalDCE",)), failures, tuple(unit.constants))


def _what(call: HostCallback) -> str:
    """Return the name of what a call into Python stands for."""
    return "try" if call.catching else call.name or "the truth of a tensor"


def _said(call: HostCallback) -> str:
    """Return what there is to say without Python where native code would call it: the error, as far as it is known."""
    operation = call.operation
    if operation is None or "template" not in operation.attributes:
        return f"{_what(call)}: operands that native code does not take"
    template = operation.attributes["template"] or ()
    text = "".join(part if isinstance(part, str) else "..." for part in template)
    kind = operation.attributes.get("kind", "AssertionError")
    return f"{kind}: {text}" if text else kind


def _module(unit: EmitterContext, target: Target, prefix: str, outside: str) -> str:
    """Return all that the Program needs as one module, whose functions are internal but for those of `_ENTRIES`."""
    families = runtime_library_symbols.families(unit.library)
    gap = f"[{4 if target.is_wasm else 0} x i8]"
    addresses = [f"@dy2st.{name}" for name in unit.library] or ["null"]
    library = ", ".join(f"{{ptr, {gap}}} {{ptr {at}, {gap} zeroinitializer}}" for at in addresses)
    table = f"@dy2st.exported.library = hidden constant [{len(addresses)} x {{ptr, {gap}}}] [{library}], align 8"
    texts = [
        *unit.kernels.texts.values(),
        *unit.module.texts.values(),
        *(part.text for family in families for part in parts(family, target)),
        MAKING,
        _ENTRIES.format(function=function_name(unit.program.entry)),
        table,
    ]
    found: dict[str, str] = {}
    for name, piece in _pieces(texts):
        if found.get(name, "declare ").startswith("declare "):
            found[name] = piece
        elif not piece.startswith("declare ") and _internal(piece) != _internal(found[name]):
            raise AssertionError(f"two functions are called {name}")
    text = "\n".join(piece if ".exported." in name else _internal(piece) for name, piece in found.items())
    names = {name: outside + new for name, new in OUTSIDE.items()}
    return _NAME.sub(lambda m: f"@{_renamed(m[1], names, prefix)}", text) + "\n"


def _renamed(name: str, names: dict[str, str], prefix: str) -> str:
    if name.startswith("dy2st.exported."):
        return prefix + name.removeprefix("dy2st.exported.")
    return names.get(name, name)


def _internal(piece: str) -> str:
    return re.sub(r"^define (?!internal |private )", "define internal ", piece)


def _pieces(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield the functions, declarations and globals of modules, by their names."""
    for text in texts:
        lines: list[str] = []
        for line in text.splitlines():
            if not lines and not line.startswith(("define ", "declare ", "@")):
                continue
            lines.append(line)
            if line == "}" or not lines[0].startswith("define "):
                yield _NAME.findall(lines[0])[0], "\n".join(lines)
                lines = []
