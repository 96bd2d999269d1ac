"""Measure the elementary functions of the native tier: worst error over dense sweeps, time an element.

PYTHONPATH=. python benchmarks/native_math.py > docs/native-math.md      # some minutes
PYTHONPATH=. python benchmarks/native_math.py exp tanh                   # these rows alone
"""

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.backends.cpu.compile_link.target import Target, current_target
from dy2st.runtime.backends.cpu.libm import function, load_formulas, strict_function
from dy2st.runtime.backends.cpu.libm.target_overrides import better_definitions
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from tests.runtime.backends.cpu.accuracy import BINARY, BY_MPMATH, EXACT, IN_FLOAT64, UNARY, numbers, pairs, within
from tests.runtime.backends.cpu.native import DTYPES, mapped, ulps

Make = Callable[[str, str, int], Definition]
COUNTS = {"f32": 8_000_000, "f64": 1_000_000}
BY_MPMATH_COUNT = 20_000
CHUNK = 1 << 20
TIMED = 1 << 14
HEAD = """# Elementary functions of the native tier

`dy2st/runtime/backends/cpu/libm/` computes these in vectors of any width, without a call into a library. The
polynomials are minimax fits of our own (`benchmarks/minimax.py`), the methods those that each file names. In vectors of
64 bytes `exp`, `gelu`, `gelu_tanh`, `silu`, `sigmoid`, `softplus`, `log_sigmoid`, `tanh` and `erf` of float32 are taken
by pieces (`piecewise_polynomials.py`, decision 0031), in a quarter to three quarters of the time.

Worst error in units in the last place (ULP) of the exact result, special values included, which are NumPy's. float32:
{f32:,} numbers spread evenly over all bit patterns, as many again in [-1, 1], [-10, 10], [-100, 100], [-1000, 1000] and
about 1, against long double; float64: {f64:,} random bit patterns and as many such numbers, against long double, and
`erf`, `erfinv`, `gelu`, `i0e`, `i1e`, `lgamma`, `digamma` (these two of x > 0) on {mpmath:,} against mpmath.
Functions of two operands: {two:,} pairs. 0 for exact functions.

Time: nanoseconds an element, {timed:,} numbers in [0.1, 0.9] in cache, one thread, least of many runs, with vectors of
{bytes} bytes. The table is what `PYTHONPATH=. python benchmarks/native_math.py` printed; a test,
`tests/runtime/backends/cpu/libm/test_math.py`, holds every function to 4 ULP.

{table}"""
TABLE = """| function | float32 ULP | at | ns | float64 ULP | at | ns |
|---|---|---|---|---|---|---|"""
STRICT = """
## Strict

`to_static(..., strict=True)` or `DY2ST_STRICT=1` asks for the same bits on every CPU (AVX-512, AVX2, SSE, scalar
code) and for any number of threads, and for functions right to 1 ULP. float32 is computed in float64 and rounded once;
float64 by the same formulas on sums of two numbers each (`double_double_emitter.py`). Products and sums are never
fused, vectors have 32 bytes everywhere, and sums are taken in an order that the extents alone decide. Such code is
native from the first run on and has one version for all extents. What is a call of NumPy or SciPy (linear algebra, FFT)
is as they give it. Held by `tests/runtime/backends/cpu/libm/test_strict.py`. The same numbers as above, with vectors of
32 bytes.

{table}"""
TWO_OPERANDS = 1_000_000


def main() -> None:
    target = current_target()
    names = sys.argv[1:] or sorted(load_formulas())
    print(HEAD.format(f32=COUNTS["f32"], f64=COUNTS["f64"], mpmath=BY_MPMATH_COUNT, two=4 * TWO_OPERANDS, timed=TIMED,
                      bytes=target.vector_bytes, table=TABLE))  # fmt: skip
    rows(names, function, target)
    print(STRICT.format(table=TABLE))
    rows(names, strict_function, current_target(strict=True))


def rows(names: Sequence[str], make: Make, target: Target) -> None:
    """Print a line for each function."""
    for name in names:
        cells = [name]
        for dtype, kind in DTYPES.items():
            lanes = target.lanes(np.dtype(kind).itemsize)
            definition = make(name, dtype, lanes)
            definition = better_definitions(target)(definition.name) or definition
            error, place = worst(name, definition, dtype, lanes)
            cells += [f"{error:.2f}", place, f"{nanoseconds(name, definition, dtype, lanes):.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def worst(name: str, definition: Definition, dtype: str, lanes: int) -> tuple[float, str]:
    """Return the largest error and where it is."""
    arity = 2 if name in BINARY else 1
    run = mapped(definition, dtype, lanes, arity)
    operands = _operands(name, dtype)
    found, place = 0.0, "-"
    for start in range(0, operands[0].size, CHUNK):
        part = [x[start : start + CHUNK] for x in operands]
        errors = ulps(run(*part), _exact(name, part))
        i = int(errors.argmax())
        if errors[i] > found:
            found, place = float(errors[i]), ", ".join(f"{x[i]:.9g}" for x in part)
    return found, place


def _operands(name: str, dtype: str) -> tuple[Any, ...]:
    kind = DTYPES[dtype]
    if name in BINARY:
        return pairs(kind, TWO_OPERANDS)
    if name in BY_MPMATH and dtype == "f64":
        x = numbers(kind, BY_MPMATH_COUNT)
        return (within(name, x),)
    return (numbers(kind, COUNTS[dtype]),)


def _exact(name: str, operands: list[Any]) -> Any:
    with np.errstate(all="ignore"):
        if name in EXACT:
            return BINARY[name](*operands).astype(np.longdouble)
        if name in UNARY or name in BINARY:
            return {**UNARY, **BINARY}[name](*(x.astype(np.longdouble) for x in operands))
        references = IN_FLOAT64 if operands[0].dtype == np.float32 else BY_MPMATH
        return references[name](operands[0].astype(np.float64))


def nanoseconds(name: str, definition: Definition, dtype: str, lanes: int) -> float:
    """Return the time an element."""
    arity = 2 if name in BINARY else 1
    run = mapped(definition, dtype, lanes, arity)
    rng = np.random.default_rng(0)
    operands = [rng.uniform(0.1, 0.9, TIMED).astype(DTYPES[dtype]) + (name == "acosh") for _ in range(arity)]
    run(*operands)
    code = run.code  # type: ignore[attr-defined]
    out = np.empty_like(operands[0])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(code.address("run"))
    addresses = [x.ctypes.data for x in (*operands, out)]
    least = float("inf")
    for _ in range(300):
        start = time.perf_counter()
        call(*addresses, TIMED)
        least = min(least, time.perf_counter() - start)
    return least / TIMED * 1e9


if __name__ == "__main__":
    main()
