"""Pooling with 1.x's arguments."""

from __future__ import annotations

from typing import Any

from dy2st.functions.math import reduction
from dy2st.nn.functional import adaptive_pooling, pooling
from dy2st.runtime.eager.tensor import Tensor


def pool2d(
    input: Any, pool_size: Any = -1, pool_type: str = "max", pool_stride: Any = 1, pool_padding: Any = 0,
    global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, name: str | None = None,
    exclusive: bool = True, data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Return the maximum ("max") or mean ("avg") of each window of images; of whole images with `global_pooling`.

    >>> import dy2st as paddle, dy2st.fluid as fluid
    >>> fluid.layers.pool2d(paddle.arange(4, dtype="float32").reshape([1, 1, 2, 2]), 2, "avg").tolist()
    [[[[1.5]]]]
    """
    how = (pool_size, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive, data_format)
    return _pool(input, pool_type, *how, 2)


def pool3d(
    input: Any, pool_size: Any = -1, pool_type: str = "max", pool_stride: Any = 1, pool_padding: Any = 0,
    global_pooling: bool = False, use_cudnn: bool = True, ceil_mode: bool = False, name: str | None = None,
    exclusive: bool = True, data_format: str = "NCDHW",
) -> Tensor:  # fmt: skip
    """Return the maximum ("max") or mean ("avg") of each window of volumes."""
    how = (pool_size, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive, data_format)
    return _pool(input, pool_type, *how, 3)


def _pool(
    x: Any, kind: str, size: Any, stride: Any, padding: Any, whole: bool, ceil_mode: bool, exclusive: bool,
    data_format: str, rank: int,
) -> Tensor:  # fmt: skip
    if kind not in ("max", "avg"):
        raise ValueError(f"pool{rank}d: pool_type must be 'max' or 'avg', not {kind!r}")
    if whole and kind == "avg":
        return getattr(adaptive_pooling, f"adaptive_avg_pool{rank}d")(x, 1, data_format=data_format)
    if whole:
        axes = list(range(1, rank + 1) if data_format.endswith("C") else range(2, rank + 2))
        return reduction.max(x, axes, keepdim=True)
    if size == -1:
        raise ValueError(f"pool{rank}d: pool_size must be given where global_pooling is False")
    how: dict[str, Any] = {"ceil_mode": ceil_mode, "data_format": data_format}
    if kind == "avg":
        return getattr(pooling, f"avg_pool{rank}d")(x, size, stride, padding, exclusive=exclusive, **how)
    return getattr(pooling, f"max_pool{rank}d")(x, size, stride, padding, **how)
