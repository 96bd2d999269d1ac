"""Long loops let Python look in: at signals (Ctrl-C ends a loop), and at other threads that wait for its lock.

Every so many turns a loop reads the CPU's clock, and where it has run for some time it does what Python does between
two lines (signals.py). Loops of a few instructions a turn count more turns before they look.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.ir.program import Operation
from dy2st.runtime.cpu.memory import LOOKED
from dy2st.runtime.cpu.representation import in_registers
from dy2st.runtime.cpu.spmd.contexts import looking
from dy2st.runtime.cpu.writer import Writer

_TURNS, _SHORT_TURNS = 256, 65536
"""After how many turns a loop looks at the clock; where all of a turn is in registers."""
_TICKS = {"x86": 2**27, "aarch64": 2**22}
"""How far the clock goes on before Python looks in: 30 to 60 ms on x86, 4 to 200 ms on AArch64."""
_CLOCKS = {"x86": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}


def polling(w: Writer, loop: Operation) -> Callable[[], None]:
    """Start to count the turns of a loop; the function that is returned writes the count of one turn."""
    f, often = w.f, str(_SHORT_TURNS if _is_short(loop) else _TURNS)
    family = next((name for name in _CLOCKS if w.unit.target.triple.startswith(name)), None)
    left = f.slot("i64")
    f.store("i64", often, left)

    def count() -> None:
        less = f.value(f"sub i64 {f.load('i64', left)}, 1")
        f.store("i64", less, left)
        with f.when(f.value(f"icmp eq i64 {less}, 0"), "clock"):
            f.store("i64", often, left)
            if family is None:
                _look(w)
                return
            w.module.add(_CLOCKS[family], f"declare i64 @{_CLOCKS[family]}()")
            now, looked = f.call("i64", f"@{_CLOCKS[family]}"), f.offset("%context", LOOKED)
            gone = f.value(f"sub i64 {now}, {f.load('i64', looked)}")
            with f.when(f.value(f"icmp ugt i64 {gone}, {_TICKS[family]}"), "look"):
                f.store("i64", now, looked)
                _look(w)

    return count


def _is_short(loop: Operation) -> bool:
    """Say whether a turn needs no memory."""
    return all(
        in_registers(v.type) and not inner.blocks
        for body in loop.blocks
        for inner in body.operations
        for v in (*inner.operands, *inner.results)
    )


def _look(w: Writer) -> None:
    if w.alone:
        w.check(w.f.call("i32", f"@{looking(w.unit.module)}", "ptr %context"))
        return
    w.module.add("dy2st.poll", "declare i32 @dy2st.poll(ptr)")
    w.check(w.f.call("i32", "@dy2st.poll", "ptr %context"))
