"""What this machine can do at most: multiply-adds a second, and bytes a second for arrays of each size.

The multiply-adds are native code of our own, twelve chains of vectors in registers; the bytes are NumPy's copies, which
are the C library's. Both with one thread and with all. A row's physical limit is its work over these.
"""

import ctypes
import importlib
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.suite.workload import Work

CHAINS, TURNS = 12, 1 << 20
COPIED = tuple(1 << power for power in (15, 18, 20, 22, 24, 25, 26, 27))  # bytes that all threads copy
SECONDS, LEAST_RUNS = 0.4, 5


def measured() -> dict[str, Any]:
    """Measure one thread and all threads; flops and bytes a second, the latter by bytes in all."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = {}
    for count in sorted({1, threads}):
        rates = {str(size): _copied(size, count) for size in COPIED}
        found[str(count)] = {"flops": _multiplied(count), "bytes": rates}
    return found


def limit(work: Work, ceilings: dict[str, Any]) -> float | None:
    """Return the seconds that the work takes at least with all threads; None where it is not counted."""
    every = ceilings[max(ceilings, key=int)]
    rates = {int(size): rate for size, rate in every["bytes"].items()}
    near = min((size for size in rates if size >= work.bytes), default=max(rates))
    seconds = max(work.flops / every["flops"], work.bytes / rates[near])
    return seconds or None


def _best_rate(amount: float, job: Callable[[], object], threads: int) -> float:
    """Return the largest amount a second over some runs of `threads` jobs at once."""
    best, runs, end = 0.0, 0, time.perf_counter() + SECONDS
    with ThreadPoolExecutor(threads) as pool:
        while runs < LEAST_RUNS or time.perf_counter() < end:
            runs += 1
            start = time.perf_counter()
            for done in [pool.submit(job) for _ in range(threads)]:
                done.result()
            best = max(best, amount * threads / (time.perf_counter() - start))
    return best


def _copied(size: int, threads: int) -> float:
    """Copy arrays that take `size` bytes together, each thread its own ones."""
    count = max(1, size // (2 * 8 * threads))
    turns = max(1, (1 << 24) // size)

    def copies() -> Callable[[], None]:
        source, target = np.ones(count), np.zeros(count)

        def job() -> None:
            for _ in range(turns):
                np.copyto(target, source)

        return job

    jobs = itertools.cycle([copies() for _ in range(threads)])
    return _best_rate(16.0 * count * turns, lambda: next(jobs)(), threads)


def _multiplied(threads: int) -> float:
    function, lanes = _multiply_adds()
    return _best_rate(2.0 * lanes * CHAINS * TURNS, lambda: function(TURNS), threads)


def _multiply_adds() -> tuple[Any, int]:
    """Compile a loop of independent multiply-adds; return it with the number of lanes of its vectors."""
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8 if features.get("avx2") else 4
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_loop(lanes)), machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)  # releases the interpreter's lock
    function = prototype(engine.get_function_address("spin"))
    function.engine = engine  # pyright: ignore[reportAttributeAccessIssue] (it lives as long as its code is called)
    return function, lanes


def _loop(lanes: int) -> str:
    """Write the loop: x = x * y + y in each of the chains."""
    vector = f"<{lanes} x float>"
    half = f"<{', '.join(['float 0.5'] * lanes)}>"
    phis = "".join(f"  %x{i} = phi {vector} [{half}, %entry], [%y{i}, %loop]\n" for i in range(CHAINS))
    steps = "".join(
        f"  %y{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %x{i}, {vector} {half}, {vector} {half})\n"
        for i in range(CHAINS)
    )
    sums = "".join(f"  %s{i + 1} = fadd {vector} %{f's{i}' if i else 'y0'}, %y{i + 1}\n" for i in range(CHAINS - 1))
    return (
        f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})\n"
        "define float @spin(i64 %turns) {\nentry:\n  br label %loop\nloop:\n"
        f"  %t = phi i64 [%turns, %entry], [%left, %loop]\n{phis}{steps}"
        "  %left = sub i64 %t, 1\n  %go = icmp ne i64 %left, 0\n  br i1 %go, label %loop, label %done\n"
        f"done:\n{sums}  %r = extractelement {vector} %s{CHAINS - 1}, i32 0\n  ret float %r\n}}\n"
    )
