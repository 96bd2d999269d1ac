"""InputSpec: the declared dtype and shape of an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import DType, dtype
from dy2st.runtime.eager.tensor import Tensor


class InputSpec:
    """Declare an input: `shape` with None or -1 for extents that vary, a dtype, and a name.

    >>> InputSpec([None, 4], "float32", "x")
    InputSpec(shape=(-1, 4), dtype=paddle.float32, name=x, stop_gradient=False)
    """

    def __init__(
        self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None, stop_gradient: bool = False
    ):
        self.shape = tuple(-1 if e is None else int(e) for e in shape)
        self.dtype: DType = _dtype(dtype)
        self.name, self.stop_gradient = name, stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> InputSpec:
        """Return the declaration that a tensor fits."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> InputSpec:
        """Return the declaration that a NumPy array fits."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """Put an axis of `batch_size` in front; return the declaration itself."""
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Take the first axis away; return the declaration itself."""
        if not self.shape:
            raise ValueError("unbatch() of a declaration without axes")
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name}, stop_gradient={self.stop_gradient})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and (self.shape, self.dtype, self.name) == (
            other.shape,
            other.dtype,
            other.name,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))


_dtype = dtype
