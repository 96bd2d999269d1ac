"""Tensors that the file says, or that follow from a shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.paddle_files.rules.elementwise import number
from dy2st.paddle_files.runner import MOST_KNOWN, Node, operator
from dy2st.runtime.eager.tensor import Tensor


@operator("data")
def _data(node: Node) -> Any:
    return node.known[("fed",)][node.get("name")]


def _full(node: Node, shape: list[Any], value: Any, dtype: str | None) -> Any:
    """Fill a shape; one of many elements is left to the Program."""
    if isinstance(value, str):
        value = float(value) if dtype is None or dtype.startswith(("float", "bfloat")) else int(float(value))
    if isinstance(value, (int, float)) and dtype is not None and not dtype.startswith(("float", "bfloat", "complex")):
        value = bool(value) if dtype == "bool" else int(value)
    known = all(isinstance(e, int) for e in shape) and math.prod(shape) > MOST_KNOWN
    if known and math.prod(shape) > 1 << 24:
        raise node.fail(f"{shape} is more than is made of one number")
    return T.full(shape, value, dtype or "float32")


@operator("full")
def _plain_full(node: Node) -> Any:
    return _full(node, node.get("shape", default=[]), node.get("value", default=0.0), node.dtype())


@operator("full_int_array")
def _full_int_array(node: Node) -> Any:
    return T.to_tensor(np.asarray(node.get("value", default=[]), node.dtype() or "int64"))


@operator("full_with_tensor")
def _full_with_tensor(node: Node, value: Any, shape: Any) -> Any:
    return _full(node, node.ints(1) or [], number(node.raw[0], value), node.dtype())


@operator("full_like")
def _full_like(node: Node, x: Any, value: Any) -> Any:
    said = number(node.raw[1], value)
    return T.full_like(x, 0.0 if said is None else said, node.dtype() or x.dtype)


@operator("full_batch_size_like")
def _full_batch_size_like(node: Node, x: Any) -> Any:
    shape = list(node.get("shape"))
    shape[node.get("output_dim_idx", default=0)] = x.shape[node.get("input_dim_idx", default=0)]
    value = node.get("str_value") or node.get("value", default=0.0)
    return _full(node, shape, value, node.dtype())


@operator("assign_value")
def _assign_value(node: Node, output: Any = None) -> Any:
    """Return numbers of the file; a ProgramDesc has them in a list for each dtype."""
    dtype = node.dtype() or "float32"
    kinds = ("values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values", "int8_values")
    values = next((found for name in kinds if (found := node.get(name))), [])
    return T.to_tensor(np.asarray(values).astype(dtype).reshape(node.get("shape")))


def _item(node: Node, at: int, x: Any) -> Any:
    found = number(node.raw[at], x)
    return found.reshape([]).item() if isinstance(found, Tensor) else found


@operator("arange")
def _arange(node: Node, start: Any, end: Any, step: Any) -> Any:
    dtype = node.dtype() or next((x.dtype for x in (start, end, step) if isinstance(x, Tensor)), "int64")
    return T.arange(*(_item(node, i, x) for i, x in enumerate((start, end, step))), dtype=dtype)


@operator("linspace")
def _linspace(node: Node, start: Any, stop: Any, count: Any) -> Any:
    return T.linspace(_item(node, 0, start), _item(node, 1, stop), _item(node, 2, count), node.dtype())


@operator("eye")
def _eye(node: Node, rows: Any, columns: Any) -> Any:
    counts = [int(_item(node, i, x)) for i, x in enumerate((rows, columns))]
    return T.eye(counts[0], counts[1] if counts[1] >= 0 else None, dtype=node.dtype() or "float32")


@operator("meshgrid")
def _meshgrid(node: Node, xs: Any) -> Any:
    return (list(T.meshgrid(*xs)),)


@operator("diag")
def _diag(node: Node, x: Any) -> Any:
    return T.diag(x, node.get("offset", default=0), node.get("padding_value", default=0.0))


@operator("diagonal")
def _diagonal(node: Node, x: Any) -> Any:
    return T.diagonal(x, node.get("offset", default=0), node.get("axis1", default=0), node.get("axis2", default=1))


@operator("bernoulli")
def _bernoulli(node: Node, x: Any) -> Any:
    return T.bernoulli(x)


@operator("gaussian")
def _gaussian(node: Node, shape: Any) -> Any:
    drawn = T.randn(node.ints(0) or [], node.dtype() or "float32")
    return drawn * node.get("std", default=1.0) + node.get("mean", default=0.0)


@operator("uniform")
def _uniform(node: Node, shape: Any, low: Any, high: Any) -> Any:
    return T.uniform(node.ints(0) or [], node.dtype() or "float32", _item(node, 1, low), _item(node, 2, high))
