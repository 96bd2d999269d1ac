"""How much native code and the interpreter may differ: what docs/native-coverage.md promises, as a function.

Integers, booleans, Python numbers that come of integers, and floats of Programs that only move, draw, compare, add,
multiply and divide are equal to the bit. What elementary functions, sums of many terms or random normal numbers have
gone into may differ by the rounding of another order, in relation to the largest element of the result, or of the
inputs up to 1: what cancels leaves the rounding of its terms.

A zero has the sign that the interpreter gives it, but for two kinds: the larger or the smaller of zeros of both signs
(max, min, sort, relu), which NumPy chooses by where elements lie in memory; and sums that are zero. A product of many
floats is made in the order of the elements; over axes that are apart, or of an input that lies otherwise, the order is
another one, and so may be what overflows on the way. Eigenvectors (eigh) have the sign that each tier's LAPACK or
iteration gives them, and of equal eigenvalues any basis.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Program
from dy2st.ops.core.bundle import Bundle
from dy2st.ops.core.rounded import TANGENT

TOLERANCES = {
    "float16": 4e-3, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10, "bfloat16": 2e-2,
}  # fmt: skip
"""What results may differ by, as a share of the largest element."""
ROUNDED = re.compile(
    r"a?(sin|cos|tan)h?|atan2|exp.*|log.*|erf.*|gelu|silu|sigmoid|softplus|softmax.*|rsqrt|pow|scalar_pow|hypot|.*gamma|i[01]e"
    r"|sum|sum_to|mean|prod|(quantized_)?matmul.*|conv.*|.*avg_pool.*|attention.*|(batch|layer)_norm.*|linear_scan|linspace"
    r"|random_(normal|exponential)|cholesky|det|slogdet|inverse|solve|eigh?|svd|qr|lu|fft|matrix_exp.*|complex"
    r"|(index|take|scatter_nd)_add|put_along_axis|combine_along_axis"
)
"""Ops whose results may differ in the last digits."""


def is_exact(program: Program) -> bool:
    """Say whether no operation of a Program rounds otherwise in native code."""
    return not any(ROUNDED.fullmatch(operation.op.name) for operation in program.walk())


def difference(found: Any, wanted: Any, inputs: Sequence[Any], *, exact: bool) -> str:
    """Say in what the outcome of a run differs from that of another on the same inputs; empty where in nothing.

    An outcome is a list of results, or an error.
    """
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        return "" if _error(found) == _error(wanted) else f"{_error(found)} and {_error(wanted)}"
    if len(found) != len(wanted):
        return f"{len(found)} results and {len(wanted)}"
    largest = max(map(_largest, inputs), default=0.0) or max(map(_largest, wanted), default=0.0)
    least = None if exact else min(1.0, largest)
    faults = (_difference(x, y, least) for x, y in zip(found, wanted, strict=True))
    return next((f"result {i}: {fault}" for i, fault in enumerate(faults) if fault), "")


def _error(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else "no error"


def _largest(value: Any) -> float:
    """Return the largest magnitude among finite floats."""
    if isinstance(value, (list, tuple, Bundle)):
        return max(map(_largest, value.items if isinstance(value, Bundle) else value), default=0.0)
    if not isinstance(value, (float, np.ndarray, np.generic)):
        return 0.0
    array = np.asarray(value)
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in TANGENT else np.zeros(0)
    return float(finite.max(initial=0.0))


def _difference(found: Any, wanted: Any, least: float | None) -> str:
    """Say in what values differ; floats have to be the same where there is no least scale of rounding."""
    if isinstance(found, Bundle) and isinstance(wanted, Bundle):
        found, wanted = found.items, wanted.items
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        if len(found) != len(wanted):
            return f"{len(found)} items and {len(wanted)}"
        return next(filter(None, (_difference(x, y, least) for x, y in zip(found, wanted, strict=True))), "")
    if isinstance(found, (np.ndarray, np.generic)) and isinstance(wanted, (np.ndarray, np.generic)):
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            return f"{found.dtype}{list(found.shape)} and {wanted.dtype}{list(wanted.shape)}"
        return _of_arrays(np.asarray(found), np.asarray(wanted), least)
    if type(found) is not type(wanted):
        return f"{type(found).__name__} and {type(wanted).__name__}"
    if isinstance(found, float):
        return _of_arrays(np.asarray(found), np.asarray(wanted), least)
    return "" if found is wanted or found == wanted else f"{found!r} and {wanted!r}"


def _of_arrays(found: Any, wanted: Any, least: float | None) -> str:
    tolerance = 0.0 if least is None else TOLERANCES.get(str(wanted.dtype), 0.0)
    with np.errstate(all="ignore"):
        same = (found == wanted) | ((found != found) & (wanted != wanted))
        if tolerance and least is not None:
            wide = np.result_type(wanted.dtype, np.float64)
            scale = max(least, _largest(wanted))
            same |= np.abs(found.astype(wide) - wanted.astype(wide)) <= tolerance * scale
    if same.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{found[place]!r} and {wanted[place]!r} at {list(place)}, {int((~same).sum())} of {same.size} elements"
