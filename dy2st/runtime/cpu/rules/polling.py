"""Long loops let Python look in: at signals (Ctrl-C ends a loop), and at other threads that wait for its lock.

Every so many turns a loop reads the CPU's clock, and where it has run for some time it does what Python does between
two lines (signals.py). It begins with few turns, of loops and products with one, and doubles them until that takes a
while: a turn may take nanoseconds or seconds. Loops of a few instructions a turn count many from the start.
"""

from __future__ import annotations

from collections.abc import Callable

from dy2st.ir.program import Operation
from dy2st.runtime.cpu.glue.writer import Writer
from dy2st.runtime.cpu.memory.blocks import LOOKED
from dy2st.runtime.cpu.spmd.contexts import looking
from dy2st.runtime.cpu.text.representation import in_registers

_TURNS, _SHORT_TURNS = 256, 65536
"""After how many turns a loop looks at the clock at most; where all of a turn is in registers."""
_FIRST = 64
"""After how many turns a loop looks at the clock for the first time."""
_LONG = ("matmul", "bmm", "conv", "pool", "sort", "topk", "attention", "inverse", "solve", "svd", "eig", "qr", "fft")
"""Parts of names of ops of which one may take a second."""
_TICKS = {"x86": 2**27, "aarch64": 2**22}
"""How far the clock goes on before Python looks in: 30 to 60 ms on x86, 4 to 200 ms on AArch64."""
_CLOCKS = {"x86": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}


def polling(w: Writer, loop: Operation) -> Callable[[], None]:
    """Start to count the turns of a loop; the function that is returned writes the count of one turn."""
    f, short = w.f, _is_short(loop)
    most = str(_SHORT_TURNS if short else _TURNS)
    first = most if short else "1" if _may_take_long(loop) else str(_FIRST)
    family = next((name for name in _CLOCKS if w.unit.target.triple.startswith(name)), None)
    left, often, last = f.slot("i64"), f.slot("i64"), f.slot("i64")
    for slot, number in ((left, first), (often, first), (last, "0")):
        f.store("i64", number, slot)

    def count() -> None:
        less = f.value(f"sub i64 {f.load('i64', left)}, 1")
        f.store("i64", less, left)
        with f.when(f.value(f"icmp eq i64 {less}, 0"), "clock"):
            if family is None:
                f.store("i64", first, left)
                _look(w)
                return
            w.module.add(_CLOCKS[family], f"declare i64 @{_CLOCKS[family]}()")
            now, before = f.call("i64", f"@{_CLOCKS[family]}"), f.load("i64", last)
            since = f.value(f"sub i64 {now}, {before}")
            some = f.value(f"icmp ne i64 {before}, 0")
            slow = f.value(f"and i1 {some}, {f.value(f'icmp ugt i64 {since}, {_TICKS[family] // 8}')}")
            double = f.value(f"shl i64 {f.load('i64', often)}, 1")
            few = f.value(f"icmp ult i64 {double}, {most}")
            more = f.value(f"select i1 {few}, i64 {double}, i64 {most}")
            turns = f.value(f"select i1 {slow}, i64 1, i64 {more}")
            for slot, number in ((left, turns), (often, turns), (last, now)):
                f.store("i64", number, slot)
            looked = f.offset("%context", LOOKED)
            gone = f.value(f"sub i64 {now}, {f.load('i64', looked)}")
            with f.when(f.value(f"icmp ugt i64 {gone}, {_TICKS[family]}"), "look"):
                f.store("i64", now, looked)
                _look(w)

    return count


def _may_take_long(loop: Operation) -> bool:
    """Say whether one turn may take as long as a loop, or a product of large matrices."""
    names = (inner.op.name for body in loop.blocks for inner in body.walk())
    return any(name in ("while_loop", "counted_while", "call") or any(part in name for part in _LONG) for name in names)


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
