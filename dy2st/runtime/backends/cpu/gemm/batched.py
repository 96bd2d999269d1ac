"""Products of the matrices of a batch, split between threads by matrix.

    void @dy2st.batch.<axes>.<bytes>(kernel, scratch, room, a, lda, b, ldb, c, ldc, m, n, k, accumulate, after,
                                     threads, extents of the batch..., steps of a..., steps of b...)

`kernel` multiplies one pair (matmul.py); each thread has `room` bytes of scratch. Steps are in bytes. `after` says
what is done with the rows of all results (epilogue.py).
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.gemm.epilogue import cost_after
from dy2st.runtime.backends.cpu.gemm.parallel import product_cost
from dy2st.runtime.backends.cpu.gemm.tiling import Tile
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction, LLVMModule
from dy2st.runtime.backends.cpu.llvm_ir.int_math import plus, times
from dy2st.runtime.backends.cpu.thread_pool.parallel_region import PARALLEL, RANGE, forked

_PARAMETERS = (
    ("ptr", "%kernel"), ("ptr", "%scratch"), ("i64", "%room"), ("ptr", "%a"), ("i64", "%lda"), ("ptr", "%b"),
    ("i64", "%ldb"), ("ptr", "%c"), ("i64", "%ldc"), ("i64", "%m"), ("i64", "%n"), ("i64", "%k"),
    ("i1", "%accumulate"), ("ptr", "%after"), ("i64", "%threads"),
)  # fmt: skip


def batch_function(module: LLVMModule, tile: Tile, axes: int) -> str:
    """Return the name of the function that multiplies batches with so many axes."""
    name = f"dy2st.batch.{axes}.{tile.dtype}"
    if name in module:
        return name
    parameters = [*_PARAMETERS, *(("i64", f"%{what}{axis}") for what in "eab" for axis in range(axes))]
    body = _range(f"{name}.range", parameters, axes, tile)
    f = LLVMFunction(name, parameters, also="nounwind")
    units = times(f, *(f"%e{axis}" for axis in range(axes)))
    cost = plus(f, product_cost(f, tile, "%m", "%n", "%k"), times(f, "%m", "%n", cost_after(f)))
    part = forked(f, f"{name}.range", parameters, units, cost, "%threads")
    f.ret()
    module.add(PARALLEL.name, PARALLEL.text)
    return module.add(name, "\n\n".join((f.text(), body, part.text)))


def _range(name: str, parameters: list[tuple[str, str]], axes: int, tile: Tile) -> str:
    """Return the function that multiplies a range of the batch, counted in row-major order."""
    f = LLVMFunction(name, [*parameters, *RANGE], linkage="internal", also="nounwind")
    scratch = f.offset("%scratch", times(f, "%who", "%room"))
    size = times(f, "%m", "%n", tile.size)
    with f.loop("%to", start="%from", hint="matrix") as number:
        places = {"a": "%a", "b": "%b"}
        rest = number
        for axis in reversed(range(axes)):
            at = rest if axis == 0 else f.value(f"srem i64 {rest}, %e{axis}")
            rest = rest if axis == 0 else f.value(f"sdiv i64 {rest}, %e{axis}")
            for matrix, place in places.items():
                places[matrix] = f.offset(place, times(f, at, f"%{matrix}{axis}"))
        c = f.offset("%c", times(f, number, size))
        f.call("void", "%kernel", f"ptr {places['a']}", "i64 %lda", f"ptr {places['b']}", "i64 %ldb", f"ptr {c}",
               "i64 %ldc", "i64 %m", "i64 %n", "i64 %k", f"ptr {scratch}", "i1 %accumulate", "ptr %after",
               f"i64 {times(f, number, '%m')}")  # fmt: skip
    f.ret()
    return f.text()
