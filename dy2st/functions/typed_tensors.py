"""Tensors made as other libraries make them: `FloatTensor([1, 2])`, `LongTensor(2, 3)`; and shapes with `numel()`."""

from __future__ import annotations

from math import prod
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.functions.core.operands import cast_to
from dy2st.functions.shape.creation import empty
from dy2st.functions.shape.from_data import to_tensor
from dy2st.runtime.eager.tensor import Tensor


class Size(list[Any]):
    """A shape: a list that equals the tuple of its elements too.

    >>> Size([2, 3]).numel(), Size([2]) == (2,)
    (6, True)
    """

    def numel(self) -> Any:
        """Return how many elements a tensor of this shape has."""
        return prod(self)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (list, tuple)) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"paddle.Size({list(self)})"


class _OfDtype:
    """A class whose instances are tensors of one dtype: of the given extents, uninitialised, or with given elements."""

    dtype: DType

    def __new__(cls, *args: Any, device: Any = None) -> Tensor:  # type: ignore[misc]
        if len(args) == 1 and isinstance(args[0], Size):
            return empty(list(args[0]), cls.dtype)
        if len(args) == 1 and not isinstance(args[0], int):
            return cast_to(args[0], cls.dtype) if isinstance(args[0], Tensor) else to_tensor(args[0], cls.dtype)
        return empty(list(args) or [0], cls.dtype)


def _typed(name: str, dtype: DType) -> type:
    return type(name, (_OfDtype,), {"dtype": dtype, "__doc__": f"Tensors of {dtype.name}.", "__module__": __name__})


BoolTensor, ByteTensor, CharTensor = (
    _typed(f"{n}Tensor", t) for n, t in (("Bool", dtypes.bool_), ("Byte", dtypes.uint8), ("Char", dtypes.int8))
)
ShortTensor, IntTensor, LongTensor = (
    _typed(f"{n}Tensor", t) for n, t in (("Short", dtypes.int16), ("Int", dtypes.int32), ("Long", dtypes.int64))
)
HalfTensor, FloatTensor, DoubleTensor, BFloat16Tensor = (
    _typed(f"{n}Tensor", t)
    for n, t in (
        ("Half", dtypes.float16), ("Float", dtypes.float32), ("Double", dtypes.float64), ("BFloat16", dtypes.bfloat16)
    )
)  # fmt: skip
