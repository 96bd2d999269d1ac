"""Objects as plain data that can be compared: by path, with the kind and the value of each thing."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from dy2st.ir.literals import is_array
from dy2st.jit.static_function import StaticFunction
from dy2st.jit.verifying.reachable import reachable
from dy2st.kinds import is_dict, is_sequence, is_set
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor

_CALLABLE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, StaticFunction)
_TOLERANCE = {"float16": 2e-2, "bfloat16": 4e-2, "float32": 1e-4, "complex64": 1e-4}
"""How far apart two results of the same arithmetic may be, beside the largest element."""


@record(frozen=True)
class ObjectDescription:
    """One object: its kind in words, and its value where that is compared: an array, or plain data."""

    kind: str
    value: Any = None

    def __str__(self) -> str:
        if is_array(self.value):
            shown = np.array2string(self.value, precision=5, threshold=6, edgeitems=2, separator=", ")
            return f"{self.kind} {' '.join(shown.split())}"
        return self.kind if self.value is None else f"{self.kind} {self.value!r:.160}"


def described(roots: Mapping[str, Any]) -> dict[str, ObjectDescription]:
    """Describe everything that `roots` lead to."""
    return {path: thing(x) for path, x in reachable(roots) if not isinstance(x, _CALLABLE)}


def thing(x: Any) -> ObjectDescription:
    """Describe one object, without what it holds."""
    if isinstance(x, Tensor):
        array = np.asarray(x.numpy())
        return ObjectDescription(f"{x.dtype.name}{list(array.shape)}", array)
    if is_array(x):
        return ObjectDescription(f"array of {x.dtype}{list(x.shape)}", x.copy())
    if isinstance(x, (bool, int, float, complex, str, bytes)):
        return ObjectDescription(type(x).__name__, x)
    if is_set(x):
        return ObjectDescription(type(x).__name__, sorted(map(repr, x)))
    if is_dict(x):
        return ObjectDescription(type(x).__name__, list(x))
    return ObjectDescription(f"{type(x).__name__} of {len(x)}" if is_sequence(x) else type(x).__name__)


def alike(a: ObjectDescription, b: ObjectDescription, rtol: float | None = None, atol: float | None = None) -> bool:
    """Return whether two things are the same, numbers to rounding (or the given tolerances)."""
    if a.kind != b.kind:
        return False
    if is_array(a.value):
        return close(a.value, b.value, rtol, atol)
    if isinstance(a.value, (float, complex)):
        return close(np.asarray(a.value), np.asarray(b.value), rtol, atol)
    return type(a.value) is type(b.value) and a.value == b.value


def close(a: np.ndarray, b: np.ndarray, rtol: float | None = None, atol: float | None = None) -> bool:
    """Return whether two arrays of one dtype and shape are the same to rounding; NaN is like NaN."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fcV" and a.dtype.name not in _TOLERANCE:
        return bool(np.array_equal(a, b))
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    rtol = _TOLERANCE.get(a.dtype.name, 1e-9) if rtol is None else rtol
    finite = np.abs(x[np.isfinite(x)])
    if atol is None:
        atol = rtol * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True))


def apart(a: ObjectDescription, b: ObjectDescription) -> float:
    """Return the largest difference between two numbers, or arrays of one shape; 0 where they cannot be compared."""
    if a.kind != b.kind or not isinstance(a.value, (np.ndarray, float, complex)):
        return 0.0
    x, y = (np.asarray(t.value) for t in (a, b))
    if x.shape != y.shape or x.dtype.kind in "biu":
        return 0.0
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        off = np.abs(x.astype(wide) - y.astype(wide))
    return float(off.max(where=np.isfinite(off), initial=0.0))


def first_difference(a: ObjectDescription, b: ObjectDescription) -> str:
    """Say where two arrays of one shape are furthest apart."""
    if not is_array(a.value) or a.kind != b.kind or a.value.size < 2:
        return ""
    wide = np.complex128 if a.value.dtype.kind == "c" else np.float64
    apart = np.nan_to_num(np.abs(a.value.astype(wide) - b.value.astype(wide)), nan=np.inf)
    at = tuple(map(int, np.unravel_index(int(apart.argmax()), apart.shape)))
    return f" (at {list(at)}: {a.value[at]!s} and {b.value[at]!s})"
