"""Switches of Paddle's that change nothing here, and checks of shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.runtime.eager.tensor import Tensor


class LazyGuard:
    """A `with` block in which layers are made; large parameters get their values when they are first read, always.

    >>> import dy2st as paddle
    >>> with paddle.LazyGuard():
    ...     layer = paddle.nn.Linear(2, 3)
    >>> for p in layer.parameters():
    ...     p.initialize()
    """

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


def disable_signal_handler() -> None:
    """Do nothing: no signal handlers are set."""


def enable_compat(
    *, scope: Any = None, blocked_modules: Any = None, backend: str = "torch", silent: bool = False
) -> None:
    """Raise NotImplementedError: `import torch` is not answered by this package."""
    raise NotImplementedError(f"enable_compat: modules of {backend} are not answered by paddle's here; import paddle")


def disable_compat() -> None:
    """Do nothing: `enable_compat` never holds."""


@contextmanager
def use_compat_guard(*args: Any, **keywords: Any) -> Iterator[None]:
    """Raise NotImplementedError, as `enable_compat`."""
    enable_compat()
    yield


def check_shape(
    shape: Any, op_name: str = "", expected_shape_type: Any = (list, tuple, Tensor),
    expected_element_type: Any = (int, Tensor), expected_tensor_dtype: Any = ("int32", "int64"),
) -> None:  # fmt: skip
    """Raise TypeError for what is no shape: a list or tuple of ints and tensors of ints, or a tensor of them."""
    if not isinstance(shape, expected_shape_type):
        raise TypeError(f"{op_name}: a shape is a list, tuple or Tensor, not {type(shape).__name__}")
    if isinstance(shape, Tensor):
        if shape.dtype.name not in expected_tensor_dtype:
            raise TypeError(f"{op_name}: the shape is a tensor of {shape.dtype.name}, not of {expected_tensor_dtype}")
        return
    for extent in shape:
        if not isinstance(extent, expected_element_type):
            raise TypeError(f"{op_name}: the shape has a {type(extent).__name__} in it, not only ints and tensors")
        if isinstance(extent, Tensor):
            check_shape(extent, op_name, expected_shape_type, expected_element_type, expected_tensor_dtype)
