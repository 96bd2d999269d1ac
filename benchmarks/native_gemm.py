"""Measure the native tier's products of matrices beside NumPy's (OpenBLAS), on one thread.

PYTHONPATH=. python benchmarks/native_gemm.py > docs/native-gemm.md
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["DY2ST_NUM_THREADS"] = "1"  # before NumPy is loaded

import ctypes
import time
from collections.abc import Callable

import numpy as np

from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object, compile_text
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.gemm import matmul_kernel, packed_kernel, packing_kernel, scratch_kernel
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, gathered

KINDS = {"f32": np.float32, "f64": np.float64}
SQUARE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROWS = (
    *(("f32", "nn", n, n, n) for n in SQUARE),
    *(("f32", form, n, n, n) for form in ("nt", "tn", "tt") for n in (64, 512)),
    *(("f64", "nn", n, n, n) for n in (4, 16, 64, 256, 512)),
    ("f32", "np", 1, 256, 64), ("f32", "np", 1, 1024, 256), ("f32", "np", 32, 256, 64), ("f32", "np", 32, 1024, 256),
    ("f32", "np", 64, 256, 256), ("f32", "nn", 64, 256, 256), ("f32", "nt", 64, 256, 256), ("f32", "nn", 256, 8, 64),
    ("f32", "nn", 1, 256, 64), ("f32", "nn", 1, 1024, 256), ("f32", "nt", 1, 1024, 256), ("f32", "nn", 256, 1, 256),
    ("f32", "nn", 4, 256, 256), ("f32", "nn", 32, 1024, 256), ("f32", "nt", 32, 1024, 256),
    ("f32", "tn", 256, 1024, 32), ("f32", "nn", 64, 256, 128), ("f32", "nn", 64, 10, 256), ("f32", "nn", 2, 900, 27),
)  # fmt: skip
HEAD = """# Products of matrices in the native tier

`dy2st/runtime/backends/cpu/gemm/` beside NumPy's `matmul` (OpenBLAS), one thread each, vectors of {bytes} bytes; least
processor time of many runs, taken by turns. C is m x n, the sum runs over k; `t` marks a transposed operand, `p` a
right one that was packed before. Ours is called from machine code, as a Program calls it; NumPy from Python, with
`out=`, so small sizes measure the call. The table is what `PYTHONPATH=. python benchmarks/native_gemm.py` printed.

Nothing goes to OpenBLAS: where ours was slower, it was by a few parts in a hundred, and a call into a library that has
threads of its own would take the CPUs from the pool.

- **A right operand that lies in rows** is read as it lies up to a megabyte, and for up to 128 rows of A beyond; else it
  is packed in blocks. One that is transposed is packed from 9 rows on; below, and for a vector, dot products read it.
- **Matrices that a loop multiplies by** are packed once, by all threads, at the first turn that needs them
  (`prepacked_weights.py`).
- **`x[i] @ w` in a loop that counts i up** is made for many turns together, up to 128 rows
  (`input_projection_batching.py`); where that is all turns, w is read as it lies.
- **`dw + x.T @ dy`**, as gradients of weights are in a loop, adds to the memory of `dw`
  (`passes/lowering/matmul_accumulate.py`).
- **One matrix for a batch** is not repeated: the rows of all matrices are one product.
- **Threads** take whole kernels' rows, or, where there are few rows, whole panels of columns: the same bits for any
  number of threads.
- **What follows a product** (bias, activation) is done with parts of 128 rows and 384 columns as they are finished,
  while they are in cache ([decision 0033](decisions/0033-parts-of-products.md)).

Loops, on one thread, least processor time before and after all this: an LSTM in a `while`, 100 steps, in milliseconds.

| rows x units | before | now | with gradients, before | now |
|---|---|---|---|---|
| 1 x 64 | 0.236 | 0.120 | 0.806 | 0.304 |
| 1 x 256 | 3.58 | 1.76 | 13.7 | 4.14 |
| 32 x 64 | 2.62 | 2.25 | 6.23 | 5.72 |
| 32 x 256 | 37.0 | 31.9 | 95.6 | 86.4 |

At 32 rows the arithmetic alone takes 1.8 and 28 ms, and 4.5 and 71 ms with gradients, at the 118 GFLOP/s of one core.

| dtype | form | m | n | k | ours, us | NumPy, us | ours, GFLOP/s | NumPy, GFLOP/s | NumPy's time / ours |
|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    print(HEAD.format(bytes=current_target().vector_bytes))
    for dtype, form, m, n, k in ROWS:
        ours, theirs = measured(dtype, form, m, n, k)
        rates = [f"{2e-3 * m * n * k / t:.1f}" for t in (ours, theirs)]
        print(f"| {dtype} | {form} | {m} | {n} | {k} | {ours:.3g} | {theirs:.3g} | {' | '.join(rates)} | "
              f"{theirs / ours:.2f} |", flush=True)  # fmt: skip
    print("\nCompile time of one product with all it needs, milliseconds of CPU:", end=" ")
    times = (f"{dtype} {form} {compile_time(dtype, form):.0f}" for dtype in KINDS for form in ("nn", "nt", "np"))
    print(f"{', '.join(times)}.")


def measured(dtype: str, form: str, m: int, n: int, k: int) -> tuple[float, float]:
    """Return microseconds a product, ours and NumPy's."""
    swap_a, swap_b = form[0] == "t", form[1] == "t"
    a = np.ones((k, m) if swap_a else (m, k), KINDS[dtype])
    b = np.ones((n, k) if swap_b else (k, n), KINDS[dtype])
    c, out = np.empty((m, n), KINDS[dtype]), np.empty((m, n), KINDS[dtype])
    repeat, size, pack = _repeated(dtype, form)
    packed = np.empty(k * (n + 16) + 16, KINDS[dtype])
    right = b.ctypes.data if pack is None else -(-packed.ctypes.data // 64) * 64
    if pack is not None:
        pack(b.ctypes.data, n, n, k, right)
    scratch = np.empty(size(m, n, k) + 64, np.uint8)
    aligned = -(-scratch.ctypes.data // 64) * 64
    x, y = a.T if swap_a else a, b.T if swap_b else b
    turns = max(1, min(30_000, int(1e8 / (2 * m * n * k))))  # a call through ctypes must not count
    their_turns = max(1, turns // 100)

    def ours() -> None:
        repeat(turns, a.ctypes.data, a.shape[1], right, b.shape[1], c.ctypes.data, n, m, n, k, aligned)

    def theirs() -> None:
        for _ in range(their_turns):
            np.matmul(x, y, out=out)

    best = [float("inf")] * 2
    for _ in range(max(7, min(60, int(2e9 / (2 * m * n * k))))):
        best = [min(t, _seconds(job)) for t, job in zip(best, (ours, theirs), strict=True)]
    return best[0] / turns * 1e6, best[1] / their_turns * 1e6


def compile_time(dtype: str, form: str) -> float:
    """Return the least milliseconds of CPU that compiling takes."""
    target = current_target()
    text = gathered(_kernels(dtype, form)).replace("define internal", "define")
    times: list[float] = []
    for _ in range(5):
        start = time.process_time()
        compile_object(text, target)
        times.append(time.process_time() - start)
    return min(times) * 1e3


_CODE: dict[tuple[str, str], tuple[object, Callable[..., None], Callable[..., int], Callable[..., None] | None]] = {}


def _repeated(dtype: str, form: str) -> tuple[Callable[..., None], Callable[..., int], Callable[..., None] | None]:
    """Return a function that multiplies so many times, what tells its scratch memory, and what packs B before."""
    if (dtype, form) not in _CODE:
        kernels = _kernels(dtype, form)
        matrices = "ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, i64 %m, i64 %n, i64 %k, ptr %scratch"
        given = matrices if form[1] != "p" else "ptr %a, i64 %lda, ptr %b, ptr %c, i64 %ldc, i64 %m, i64 %n, i64 %k"
        loop = f"""define void @repeat(i64 %turns, {matrices}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %odd = and i64 %i, 1
  call void @{kernels[0].name}({given}, i1 false{", i64 %odd" if form[1] == "p" else ""}, ptr null, i64 0)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
        text = gathered([*kernels, Definition("repeat", loop)]).replace("define internal", "define")
        code = compile_text(text, current_target())
        p, i = ctypes.c_void_p, ctypes.c_int64
        repeat = ctypes.CFUNCTYPE(None, i, p, i, p, i, p, i, i, i, i, p)(code.address("repeat"))
        size = ctypes.CFUNCTYPE(i, i, i, i)(code.address(kernels[1].name))
        pack = ctypes.CFUNCTYPE(None, p, i, i, i, p)(code.address(kernels[2].name)) if len(kernels) > 2 else None
        _CODE[dtype, form] = code, repeat, size, pack
    return _CODE[dtype, form][1:]


def _kernels(dtype: str, form: str) -> list[Definition]:
    swaps, target = (form[0] == "t", form[1] == "t"), current_target()
    scratch = scratch_kernel(dtype, *swaps, target)
    if form[1] == "p":
        return [packed_kernel(dtype, swaps[0], target), scratch, packing_kernel(dtype, False, target)]
    return [matmul_kernel(dtype, *swaps, target), scratch]


def _seconds(job: Callable[[], None]) -> float:
    start = time.thread_time()
    job()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
