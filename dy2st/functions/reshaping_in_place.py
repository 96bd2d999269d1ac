"""What changes a tensor's shape and memory in place, and attributes that projects read of Paddle's tensors."""

from __future__ import annotations

from math import prod
from typing import Any

from dy2st.functions.core.operands import op, whole
from dy2st.functions.inplace import _become, refuse
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import empty, zeros
from dy2st.functions.shape.manipulation import reshape
from dy2st.functions.shape.stacking import as_strided
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor, needs_value


def set_(
    x: Tensor, source: Tensor | None = None, shape: Any = None, stride: Any = None, offset: int = 0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Let x have the memory of another tensor, as it is or by shape, steps and an offset in bytes; return x.

    >>> import dy2st as paddle
    >>> paddle.zeros([3]).set_(paddle.arange(6.0), [2, 2], [1, 2], 4).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    refuse(x)
    _refuse_trace("set")
    source = empty([0], x.dtype) if source is None else source
    if shape is not None or stride is not None or offset:
        shape = list(source.shape if shape is None else shape)
        steps = _steps(shape) if stride is None else list(stride)
        source = as_strided(source, shape, steps, offset // source.element_size())
    _become(x, apply(op("detach"), source))
    return x


def resize_(x: Tensor, shape: Any, fill_zero: bool = False, name: str | None = None) -> Tensor:
    """Give x another shape, its elements in their order as far as they go; return it.

    Where x has too few, zeros follow with `fill_zero`; else ValueError.
    """
    refuse(x)
    _refuse_trace("resize")
    shape = [whole(e, "resize_") for e in shape]
    wanted, flat = prod(shape), reshape(x.detach(), [-1])
    if wanted > flat.shape[0]:
        if not fill_zero:
            raise ValueError(f"resize_: {x.shape} has {flat.shape[0]} elements, {shape} needs {wanted}; give fill_zero")
        flat = concat([flat, zeros([wanted - flat.shape[0]], x.dtype)])
    _become(x, reshape(flat[:wanted], shape))
    return x


def _refuse_trace(name: str) -> None:
    if current().trace is not None:
        raise needs_value(f"{name}_ changes shape or memory in place, which a Program cannot; use another name for it")


def _steps(shape: list[int]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def type_of(x: Tensor) -> str:
    """What kind of variable it is: dense."""
    return "dense_tensor"


def layout(x: Tensor) -> str:
    """How axes lie: always as for "NCHW"."""
    return "NCHW"


def offset(x: Tensor) -> int:
    """Where the elements begin in their memory, which is taken to begin there."""
    return 0


def grad_fn(x: Tensor) -> Any:
    """What has noted how the tensor was made, or None; also whether it is None is all that can be said of it."""
    return x.tape_node


def grad_of(x: Tensor) -> Tensor | None:
    """The gradient, or None."""
    return x.grad
