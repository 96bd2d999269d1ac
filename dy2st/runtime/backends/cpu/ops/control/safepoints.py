"""Long loops let Python look in: at signals (Ctrl-C ends a loop), and at other threads that wait for its lock.

Every so many turns a loop reads the CPU's clock, and where it has run for some time it does what Python does between
two lines (interrupts.py). It begins with few iterations, of loops and products with one, and doubles them until that
takes a while: an iteration may take nanoseconds or seconds. Loops of a few instructions an iteration count many from
the start.

Elsewhere it is operations on many elements that take long: after some of them the clock is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import LOOKED, OK
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.fusion.horizontal_fusion import Step
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import compare, times
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers
from dy2st.runtime.backends.cpu.loop_parallel.chunk_contexts import looking
from dy2st.runtime.backends.cpu.ops.tensors import extents

_ITERATIONS, _SHORT_ITERATIONS = 256, 65536
"""After how many turns a loop looks at the clock at most; where all of an iteration is in registers."""
_FIRST = 64
"""After how many turns a loop looks at the clock for the first time."""
_MANY, _SOME = 1 << 18, 1 << 12
"""From how many elements on an operation is followed by a look at the clock; a superlinear one."""
_STEPS = 3
"""How many steps of other kinds a look follows."""
_TICKS = {"x86": 2**27, "aarch64": 2**22}
"""How far the clock goes on before Python looks in: 30 to 60 ms on x86, 4 to 200 ms on AArch64."""
_CLOCKS = {"x86": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}


def safepoints(w: FunctionEmitter, loop: Operation) -> Callable[[], None]:
    """Start to count the iterations of a loop; the function that is returned writes the count of one iteration."""
    f, short = w.f, _is_short(loop)
    most = str(_SHORT_ITERATIONS if short else _ITERATIONS)
    first = most if short else "1" if _may_take_long(loop) else str(_FIRST)
    family = _family(w)
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
            now, before = _clock(f, w.module, family), f.load("i64", last)
            since = f.value(f"sub i64 {now}, {before}")
            some = f.value(f"icmp ne i64 {before}, 0")
            slow = f.value(f"and i1 {some}, {f.value(f'icmp ugt i64 {since}, {_TICKS[family] // 8}')}")
            double = f.value(f"shl i64 {f.load('i64', often)}, 1")
            few = f.value(f"icmp ult i64 {double}, {most}")
            more = f.value(f"select i1 {few}, i64 {double}, i64 {most}")
            iterations = f.value(f"select i1 {slow}, i64 1, i64 {more}")
            for slot, number in ((left, iterations), (often, iterations), (last, now)):
                f.store("i64", number, slot)
            looked = f.offset("%context", LOOKED)
            gone = f.value(f"sub i64 {now}, {f.load('i64', looked)}")
            with f.when(f.value(f"icmp ugt i64 {gone}, {_TICKS[family]}"), "look"):
                f.store("i64", now, looked)
                _look(w)

    return count


def look_after(w: FunctionEmitter, step: Step) -> None:
    """Write a look at Python after a step whose tensors have many elements, as the run alone may tell."""
    values = [v for v in (*step.operands, *step.results) if isinstance(v.type, TensorType) and not in_registers(v.type)]
    if not values or w.overwrites:
        return
    long = isinstance(step, Operation) and step.op.superlinear
    w.unlooked += 1
    if not long and w.unlooked < _STEPS:
        return
    widest = max(values, key=_width)
    shape, least = extents(widest, w.env[widest]), _SOME if long else _MANY
    known, unknown = math.prod(int(e) for e in shape if e.isdigit()), [e for e in shape if not e.isdigit()]
    if not unknown and known < least:
        return
    w.unlooked = 0
    if not unknown:
        w.check(w.f.call("i32", f"@{_late(w)}", "ptr %context"))
        return
    status = w.f.slot("i32")
    w.f.store("i32", str(OK), status)
    with w.f.when(compare(w.f, "sge", times(w.f, known, *unknown), least), "many"):
        w.f.store("i32", w.f.call("i32", f"@{_late(w)}", "ptr %context"), status)
    w.check(w.f.load("i32", status))


def _width(value: Value) -> tuple[int, int]:
    """Return how many extents of a tensor the run tells, and the product of the others."""
    shape = tensor_type(value).shape
    return sum(not isinstance(e, int) for e in shape), math.prod(e for e in shape if isinstance(e, int))


def _late(w: FunctionEmitter) -> str:
    """Return the name of the function that looks at Python where it has not done so for some time."""
    f, module = (
        LLVMFunction("dy2st.late", [("ptr", "%context")], "i32", linkage="internal", also="noinline nounwind"),
        w.module,
    )
    if f.name not in module:
        look = looking(module)
        family = _family(w)
        if family is not None:
            now, looked = _clock(f, module, family), f.offset("%context", LOOKED)
            gone = f.value(f"sub i64 {now}, {f.load('i64', looked)}")
            with f.when(f.value(f"icmp ule i64 {gone}, {_TICKS[family]}"), "soon"):
                f.ret("i32", str(OK))
            f.store("i64", now, looked)
        f.ret("i32", f.call("i32", f"@{look}", "ptr %context"))
        module.add(f.name, f.text())
    return f.name


def _family(w: FunctionEmitter) -> str | None:
    return next((name for name in _CLOCKS if w.unit.target.triple.startswith(name)), None)


def _clock(f: LLVMFunction, module: LLVMModule, family: str) -> str:
    module.add(_CLOCKS[family], f"declare i64 @{_CLOCKS[family]}()")
    return f.call("i64", f"@{_CLOCKS[family]}")


def _may_take_long(loop: Operation) -> bool:
    """Return whether one iteration may take as long as a loop, or a product of large matrices."""
    inside = (inner.op for body in loop.blocks for inner in body.walk())
    return any(op.is_loop or op.is_call or op.superlinear for op in inside)


def _is_short(loop: Operation) -> bool:
    """Return whether an iteration needs no memory."""
    return all(
        in_registers(v.type) and not inner.blocks
        for body in loop.blocks
        for inner in body.operations
        for v in (*inner.operands, *inner.results)
    )


def _look(w: FunctionEmitter) -> None:
    if w.alone:
        w.check(w.f.call("i32", f"@{looking(w.unit.module)}", "ptr %context"))
        return
    w.module.add("dy2st.poll", "declare i32 @dy2st.poll(ptr)")
    w.check(w.f.call("i32", "@dy2st.poll", "ptr %context"))
