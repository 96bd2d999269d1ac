"""Functions that Programs share and that loop over elements: written once a module, called from where they are needed.

They stand beside the loop nests, in code that is made with optimisation; what calls them may be made without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from dy2st.dtypes import DType
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import rounded_down
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import element_kind
from dy2st.runtime.backends.cpu.thread_pool.memory_layout import MOST
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import PARALLEL, RANGE, forked
from dy2st.runtime.backends.cpu.vector_ops.load_store import ElementAccess, RowPosition
from dy2st.runtime.backends.cpu.vector_ops.reductions import combined
from dy2st.runtime.backends.cpu.vector_ops.vector_type import VectorType

Parameters = Sequence[tuple[str, str]]


def routine(w: FunctionEmitter, name: str, parameters: Parameters, write: Callable[[LLVMFunction], None]) -> str:
    """Return the symbol of the function that `write` writes; what is written for a name is always the same."""
    symbol, kernels = f"dy2st.r.{name}", w.unit.kernels
    if symbol not in kernels:
        f = LLVMFunction(symbol, list(parameters), also="nounwind")
        write(f)
        f.ret()
        kernels.add(symbol, f.text())
    return f"@{symbol}"


def split_routine(
    w: FunctionEmitter, name: str, parameters: Parameters, units: Callable[[LLVMFunction], tuple[str, str]],
    write: Callable[[LLVMFunction], None], most: str | int = MOST,
) -> str:  # fmt: skip
    """Return the same for what is split between threads: `write` writes a range of units (parallel_region.py).

    `units` gives how many there are, and how many picoseconds each takes; `most`, for how many threads there is room.
    """
    symbol, kernels = f"dy2st.r.{name}", w.unit.kernels
    if symbol not in kernels:
        body = LLVMFunction(f"{symbol}.range", [*parameters, *RANGE], linkage="internal", also="alwaysinline nounwind")
        write(body)
        body.ret()
        f = LLVMFunction(symbol, list(parameters), also="nounwind")
        part = forked(f, body.name, parameters, *units(f), most)
        f.ret()
        kernels.add(PARALLEL.name, PARALLEL.text)
        kernels.add(symbol, "\n\n".join((f.text(), body.text(), part.text)))
    return f"@{symbol}"


def shared(
    w: FunctionEmitter, parameters: Parameters, write: Callable[[LLVMFunction], None], result: str = "void"
) -> str:
    """Return the symbol of the function that `write` writes, one for equal texts; it returns for itself what it has."""
    f = LLVMFunction("dy2st.shared", list(parameters), result, also="nounwind")
    write(f)
    if result == "void":
        f.ret()
    text = f.text()
    symbol = f"dy2st.r.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    w.unit.kernels.add(symbol, text.replace("@dy2st.shared(", f"@{symbol}(", 1))
    return f"@{symbol}"


def each_element(
    f: LLVMFunction, module: LLVMModule, target: Target, dtype: DType, address: str, count: str,
    element: Callable[[VectorType, str], str],
) -> None:  # fmt: skip
    """Write `count` elements to an address: `element` gives those from a number on, a vector or one at a time."""
    for start, stop, step in stretches(f, count, target.lanes(max(4, dtype.itemsize))):
        elements = ElementAccess(f, module, step)
        with f.loop(stop, step, start, hint="fill") as i:
            elements.store(RowPosition(address, i, dtype), element(VectorType(f, module, step), i))


def stretches(f: LLVMFunction, count: str, lanes: int) -> list[tuple[str, str, int]]:
    """Write where vectors end; return the stretches of a line as (start, stop, step): vectors, then one by one."""
    if lanes == 1:
        return [("0", count, 1)]
    whole = rounded_down(f, count, lanes)
    return [("0", whole, lanes), (whole, count, 1)]


def fill(w: FunctionEmitter, dtype: DType, address: str, count: str, register: str) -> None:
    """Write one element to `count` places."""
    kind, kernels = element_kind(dtype), w.unit.kernels

    def write(f: LLVMFunction) -> None:
        each_element(f, kernels, w.unit.target, dtype, "%to", "%count", lambda v, _: v.spread("%x", dtype))

    name = routine(w, f"fill.{dtype.name}", [("ptr", "%to"), ("i64", "%count"), (kind, "%x")], write)
    w.f.call("void", name, f"ptr {address}", f"i64 {count}", f"{kind} {register}")


def adding(w: FunctionEmitter, dtype: DType) -> str:
    """Return the symbol of the function `void (to, more, count)` that adds elements to others."""
    kernels = w.unit.kernels

    def total(v: VectorType, i: str) -> str:
        elements = ElementAccess(v.f, kernels, v.count)
        return combined(v, "add", dtype, *(elements.load(RowPosition(row, i, dtype)) for row in ("%to", "%more")))

    def write(f: LLVMFunction) -> None:
        each_element(f, kernels, w.unit.target, dtype, "%to", "%count", total)

    return routine(w, f"add.{dtype.name}", [("ptr", "%to"), ("ptr", "%more"), ("i64", "%count")], write)


def clear(w: FunctionEmitter, address: str, size: str) -> None:
    """Write zeros into so many bytes."""
    w.f.call("void", "@llvm.memset.p0.i64", f"ptr {address}", "i8 0", f"i64 {size}", "i1 false")


def copy(w: FunctionEmitter, to: str, source: str, size: str) -> None:
    """Write a copy of so many bytes."""
    w.f.call("void", "@llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {source}", f"i64 {size}", "i1 false")
