"""Measure the native tier's products of matrices beside NumPy's (OpenBLAS), on one thread.

PYTHONPATH=. python benchmarks/native_gemm.py > docs/native-gemm.md
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import ctypes
import time
from collections.abc import Callable

import numpy as np

from dy2st.runtime.cpu.definition import Definition, gathered
from dy2st.runtime.cpu.engine import compile_object, compile_text
from dy2st.runtime.cpu.gemm import matmul_kernel, scratch_kernel
from dy2st.runtime.cpu.target import current_target

KINDS = {"f32": np.float32, "f64": np.float64}
SQUARE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROWS = (
    *(("f32", "nn", n, n, n) for n in SQUARE),
    *(("f32", form, n, n, n) for form in ("nt", "tn", "tt") for n in (64, 512)),
    *(("f64", "nn", n, n, n) for n in (4, 16, 64, 256, 512)),
    ("f32", "nn", 1, 256, 64), ("f32", "nn", 1, 1024, 256), ("f32", "nt", 1, 1024, 256), ("f32", "nn", 256, 1, 256),
    ("f32", "nn", 4, 256, 256), ("f32", "nn", 32, 1024, 256), ("f32", "nt", 32, 1024, 256),
    ("f32", "tn", 256, 1024, 32), ("f32", "nn", 64, 256, 128), ("f32", "nn", 64, 10, 256), ("f32", "nn", 2, 900, 27),
)  # fmt: skip
HEAD = """# Products of matrices in the native tier

`dy2st/runtime/cpu/gemm/` beside NumPy's `matmul` (OpenBLAS), one thread each, vectors of {bytes} bytes; least of many
runs, taken by turns. C is m x n, the sum runs over k; `t` marks a transposed operand. Ours is called from machine code,
as a Program calls it; NumPy from Python, with `out=`, so small sizes measure the call. The table is what
`PYTHONPATH=. python benchmarks/native_gemm.py` printed.

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
    times = (f"{dtype} {form} {compile_time(dtype, form):.0f}" for dtype in KINDS for form in ("nn", "nt"))
    print(f"{', '.join(times)}.")


def measured(dtype: str, form: str, m: int, n: int, k: int) -> tuple[float, float]:
    """Return microseconds a product, ours and NumPy's."""
    swap_a, swap_b = form[0] == "t", form[1] == "t"
    a = np.ones((k, m) if swap_a else (m, k), KINDS[dtype])
    b = np.ones((n, k) if swap_b else (k, n), KINDS[dtype])
    c, out = np.empty((m, n), KINDS[dtype]), np.empty((m, n), KINDS[dtype])
    repeat, size = _repeated(dtype, form)
    scratch = np.empty(size(m, n, k) + 64, np.uint8)
    aligned = -(-scratch.ctypes.data // 64) * 64
    x, y = a.T if swap_a else a, b.T if swap_b else b
    turns = max(1, int(1e7 / (2 * m * n * k)))  # a call through ctypes must not count
    their_turns = max(1, turns // 100)

    def ours() -> None:
        repeat(turns, a.ctypes.data, a.shape[1], b.ctypes.data, b.shape[1], c.ctypes.data, n, m, n, k, aligned)

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


_CODE: dict[tuple[str, str], tuple[object, Callable[..., None], Callable[..., int]]] = {}


def _repeated(dtype: str, form: str) -> tuple[Callable[..., None], Callable[..., int]]:
    """Return a function that multiplies so many times, and the one that tells its scratch memory."""
    if (dtype, form) not in _CODE:
        kernels = _kernels(dtype, form)
        matrices = "ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc, i64 %m, i64 %n, i64 %k, ptr %scratch"
        loop = f"""define void @repeat(i64 %turns, {matrices}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @{kernels[0].name}({matrices}, i1 false)
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
        _CODE[dtype, form] = code, repeat, size
    return _CODE[dtype, form][1:]


def _kernels(dtype: str, form: str) -> list[Definition]:
    swaps = form[0] == "t", form[1] == "t"
    return [make(dtype, *swaps, current_target()) for make in (matmul_kernel, scratch_kernel)]


def _seconds(job: Callable[[], None]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
