"""A draw of random numbers into memory, split between threads: an element depends on its number alone."""

from __future__ import annotations

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import rounded_down
from dy2st.runtime.backends.cpu.loop_nests.parallel_schedule import RANGE_UNIT, bounds, units
from dy2st.runtime.backends.cpu.loop_nests.schedule import vectors
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import RANGE, forked
from dy2st.runtime.backends.cpu.vector_ops.philox import random_normal, random_uniform

_COSTS = {"uniform": 20_000, "normal": 40_000}
"""Picoseconds that a vector of numbers takes."""
_PARAMETERS = (("ptr", "%out"), ("i64", "%count"), ("i64", "%seed"), ("i64", "%draw"))


def fill(what: str, dtype: str, target: Target) -> Definition:
    """Return the function `void @dy2st.random.uniform.f32.fill(out, count, seed, draw)`."""
    lanes = target.lanes(4 if dtype == "f32" else 8)
    body = _range(what, dtype, lanes)
    f = LLVMFunction(f"dy2st.random.{what}.{dtype}.fill", _PARAMETERS, also="nounwind")
    count = units(f, "%count", RANGE_UNIT)
    part = forked(f, body.name, _PARAMETERS, count, RANGE_UNIT // lanes * _COSTS[what])
    f.ret()
    return Definition(f.name, f.text(), (body, part))


def _range(what: str, dtype: str, lanes: int) -> Definition:
    """Return the function that draws a range: several vectors at once, then what is left over one by one."""
    itemsize, kind = (4, "float") if dtype == "f32" else (8, "double")
    make = random_uniform if what == "uniform" else random_normal
    counts = dict.fromkeys((lanes * vectors(lanes), lanes, 1))
    f = LLVMFunction(f"dy2st.random.{what}.{dtype}.range", (*_PARAMETERS, *RANGE), linkage="internal", also="nounwind")
    first, stop = bounds(f, "%count", RANGE_UNIT, "%from", "%to")
    for count in counts:
        row = kind if count == 1 else f"<{count} x {kind}>"
        whole = rounded_down(f, stop, count)
        with f.loop(whole, count, first) as i:
            drawn = f.call(row, f"@{make(dtype, count).name}", "i64 %seed", "i64 %draw", f"i64 {i}")
            f.do(f"store {row} {drawn}, ptr {f.offset('%out', i, kind)}, align {itemsize}")
        first = whole
    f.ret()
    return Definition(f.name, f.text(), tuple(make(dtype, count) for count in counts))
