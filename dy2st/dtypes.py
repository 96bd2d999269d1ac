"""Element types and the one promotion table.

`DType` is what users see as `paddle.float32`. It equals its name and NumPy's dtype, so `x.dtype == "float32"` works.
Promotion follows Paddle where Paddle has an answer; where Paddle refuses (int32 with int64, integer with float
tensors) the wider type, or the float type, is taken. Python numbers never widen a tensor.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


class DType:
    """Name an element type; one instance a type."""

    __slots__ = ("bits", "kind", "name", "numpy")

    numpy: np.dtype[Any]

    def __init__(self, name: str, kind: str, bits: int):
        self.name, self.kind, self.bits = name, kind, bits
        if name != "bfloat16":
            self.numpy = np.dtype(name)

    def __getattr__(self, name: str) -> Any:
        """Return the NumPy dtype of bfloat16, from a package that loads when it is first asked for."""
        if name != "numpy":
            raise AttributeError(name)
        from ml_dtypes import bfloat16 as element

        self.numpy = np.dtype(element)
        _BY_NUMPY[self.numpy] = self
        return self.numpy

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_differentiable(self) -> bool:
        return self.kind in "fc"

    @property
    def itemsize(self) -> int:
        return max(self.bits, 8) // 8

    def __repr__(self) -> str:
        return f"paddle.{self.name}"

    def __str__(self) -> str:
        return f"paddle.{self.name}"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if isinstance(other, str):
            return other in (self.name, f"paddle.{self.name}")
        return isinstance(other, (np.dtype, type)) and _same_numpy(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self.name,)


def _same_numpy(mine: DType, other: Any) -> bool:
    if isinstance(other, type) and not issubclass(other, np.generic):
        return other.__name__ == mine.name == "bfloat16" and np.dtype(other) == mine.numpy  # it is no np.generic
    other = np.dtype(other)
    return other.name == mine.name and other == mine.numpy


bool_ = DType("bool", "b", 1)
uint8 = DType("uint8", "u", 8)
int8 = DType("int8", "i", 8)
int16 = DType("int16", "i", 16)
int32 = DType("int32", "i", 32)
int64 = DType("int64", "i", 64)
float16 = DType("float16", "f", 16)
bfloat16 = DType("bfloat16", "f", 16)
float32 = DType("float32", "f", 32)
float64 = DType("float64", "f", 64)
complex64 = DType("complex64", "c", 64)
complex128 = DType("complex128", "c", 128)

ALL = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64,
       complex128)  # fmt: skip
_BY_NAME = {t.name: t for t in ALL}
_BY_NUMPY = {t.numpy: t for t in ALL if t is not bfloat16}
"""With bfloat16 once its package is loaded: NumPy knows of no such dtype before."""
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "int": "int64", "long": "int64",
            "bool_": "bool", "complex": "complex64", "uint16": "bfloat16"}  # fmt: skip


def dtype(spec: Any) -> DType:
    """Return the DType that `spec` names: a DType, a name, a NumPy dtype or a Python type.

    Raises TypeError for anything else.

    >>> dtype("float32")
    paddle.float32
    """
    if isinstance(spec, DType):
        return spec
    found = of_numpy(spec) if isinstance(spec, np.dtype) else None
    if found is not None:
        return found
    if isinstance(spec, str):
        name = spec.removeprefix("paddle.")
        found = _BY_NAME.get(_ALIASES.get(name, name))
    elif spec in (bool, int, float, complex):
        found = {bool: bool_, int: int64, float: float64, complex: complex128}[spec]
    elif isinstance(spec, type) and (issubclass(spec, np.generic) or spec.__name__ == "bfloat16"):
        found = of_numpy(np.dtype(spec))
    if found is None:
        raise TypeError(f"unknown dtype {spec!r}; known: {', '.join(_BY_NAME)}")
    return found


def of_numpy(found: np.dtype[Any]) -> DType | None:
    """Return the DType that a NumPy dtype is, None where there is none."""
    known = _BY_NUMPY.get(found)
    if known is None and found.name == "bfloat16" == bfloat16.numpy.name:  # another package loaded what it is from
        return _BY_NUMPY.get(found)
    return known


def of_array(array: Any) -> DType:
    """Return the DType of a NumPy or CuPy array; TypeError when dy2st has none for it."""
    found = _BY_NUMPY.get(array.dtype) or of_numpy(array.dtype)
    if found is None:
        raise TypeError(f"arrays of dtype {array.dtype} cannot become tensors; cast to one of {', '.join(_BY_NAME)}")
    return found


@cache
def promote(a: DType, b: DType) -> DType:
    """Return the type in which tensors of types `a` and `b` meet.

    >>> promote(int32, float32), promote(int32, int64)
    (paddle.float32, paddle.int64)
    """
    if a is b:
        return a
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    low, high = sorted((a, b), key=lambda t: order[t.kind])
    if order[low.kind] < order[high.kind]:
        if high.kind == "c" and low is float64:
            return complex128
        return high
    if low.kind == high.kind:
        return float32 if low.bits == high.bits else max((low, high), key=lambda t: t.bits)  # the two of 16 bits
    return _BY_NUMPY[np.promote_types(a.numpy, b.numpy)]


def promote_number(tensor: DType, number: bool | int | float | complex | str, default: DType = float32) -> DType:
    """Return the type in which a tensor and a Python number (or its kind) meet: a number never widens a tensor.

    >>> promote_number(float64, 2), promote_number(int64, 0.5), promote_number(int32, 7)
    (paddle.float64, paddle.float32, paddle.int32)
    """
    kind = number if isinstance(number, str) else kind_of_number(number)
    if kind == "complex":
        return tensor if tensor.is_complex else (complex128 if tensor is float64 else complex64)
    if kind == "float":
        return tensor if tensor.kind in "fc" else default
    if kind == "int":
        return int64 if tensor.is_bool else tensor
    return tensor


def kind_of_number(number: Any) -> str:
    """Return "bool", "int", "float" or "complex" for a Python number."""
    if isinstance(number, bool):
        return "bool"
    if isinstance(number, int):
        return "int"
    return "float" if isinstance(number, float) else "complex"


def true_divide(t: DType, default: DType = float32) -> DType:
    """Return the type of a quotient: integers and booleans divide into the default float."""
    return default if t.kind in "biu" else t
