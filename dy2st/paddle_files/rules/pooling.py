"""Pooling: in windows, adaptive, over all."""

from __future__ import annotations

from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.paddle_files.rules.layers import layout, padded, padding
from dy2st.paddle_files.runner import Node, operator


def _pool(node: Node, x: Any, kernel: list[Any], dims: int) -> Any:
    form, greatest = layout(node, dims + 2), node.get("pooling_type", default="max") == "max"
    if node.get("global_pooling"):
        over = list(range(1, dims + 1) if form.endswith("C") else range(2, dims + 2))
        return (T.max if greatest else T.mean)(x, over, keepdim=True)
    if node.get("adaptive"):
        if greatest:
            return (F.adaptive_max_pool2d if dims == 2 else F.adaptive_max_pool3d)(x, kernel)
        return (F.adaptive_avg_pool2d if dims == 2 else F.adaptive_avg_pool3d)(x, kernel, form)
    strides, ceil = node.get("strides"), bool(node.get("ceil_mode"))
    if greatest:
        pool = F.max_pool2d if dims == 2 else F.max_pool3d
        x, around = padded(node, x, kernel, form, float("-inf"))
        return pool(x, kernel, strides, around, ceil_mode=ceil, data_format=form)
    pool = F.avg_pool2d if dims == 2 else F.avg_pool3d
    exclusive = bool(node.get("exclusive", default=True))
    return pool(x, kernel, strides, padding(node), ceil, exclusive, data_format=form)


@operator("pool2d")
def _pool2d(node: Node, x: Any, kernel: Any) -> Any:
    return _pool(node, x, node.ints(1) or [], 2)


@operator("pool3d")
def _pool3d(node: Node, x: Any) -> Any:
    return _pool(node, x, node.get("kernel_size"), 3)


@operator("max_pool2d_with_index")
def _max_pool2d_with_index(node: Node, x: Any) -> Any:
    """Return the greatest of each window, and where it stands in its plane."""
    kernel = node.get("kernel_size")
    if node.get("adaptive"):
        return F.adaptive_max_pool2d(x, kernel, return_mask=True)
    if node.get("global_pooling"):
        return F.adaptive_max_pool2d(x, [1, 1], return_mask=True)
    return F.max_pool2d(x, kernel, node.get("strides"), node.get("paddings"), True, bool(node.get("ceil_mode")))
