"""Making and rearranging tensors with 1.x's arguments."""

from __future__ import annotations

import math
from typing import Any

from dy2st.functions.core.assigning import assign as modern_assign
from dy2st.functions.core.operands import tensor
from dy2st.functions.linalg import linalg
from dy2st.functions.math import search
from dy2st.functions.math.random import gaussian, uniform
from dy2st.functions.shape import broadcasting, concat_split, creation, gather_scatter, manipulation
from dy2st.nn.functional import padding
from dy2st.nn.layers.norm import activated
from dy2st.runtime.eager.tensor import Tensor


def reshape(
    x: Any, shape: Any, actual_shape: Any = None, act: str | None = None, inplace: bool = False, name: str | None = None
) -> Tensor:
    """Return x with these extents; -1 for the rest, 0 for what x has there.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> fluid.layers.reshape(np.zeros([2, 3]), shape=[1, -1]).shape
    [1, 6]
    """
    return activated(manipulation.reshape(x, shape if actual_shape is None else actual_shape), act)


def squeeze(input: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Return the tensor without these axes of 1; without all of them where none is named."""
    return manipulation.squeeze(input, list(axes) if axes else None)


def unsqueeze(input: Any, axes: Any, name: str | None = None) -> Tensor:
    """Return the tensor with new axes of 1."""
    return manipulation.unsqueeze(input, axes)


def split(input: Any, num_or_sections: Any, dim: Any = -1, name: str | None = None) -> list[Tensor]:
    """Return parts along an axis: a number of equal ones, or of these extents."""
    return concat_split.split(input, num_or_sections, dim)


def expand(x: Any, expand_times: Any, name: str | None = None) -> Tensor:
    """Return x repeated this many times along each axis (what is now called tile)."""
    return broadcasting.tile(x, expand_times)


def flatten(x: Any, axis: int = 1, name: str | None = None) -> Tensor:
    """Return x as a matrix: the axes before `axis` are its rows, the others its columns."""
    x = tensor(x, "flatten")
    if not 0 <= axis <= x.ndim:
        raise ValueError(f"flatten: axis must be from 0 to {x.ndim}, not {axis}")
    return manipulation.reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def matmul(
    x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0, name: str | None = None
) -> Tensor:
    """Return alpha * x @ y."""
    out = linalg.matmul(x, y, transpose_x, transpose_y)
    return out if alpha == 1.0 else out * alpha


def mul(x: Any, y: Any, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None) -> Tensor:
    """Return the matrix product of x and y, each flattened to a matrix at an axis, in their shape again."""
    x, y = tensor(x, "mul"), tensor(y, "mul")
    out = linalg.matmul(flatten(x, x_num_col_dims), flatten(y, y_num_col_dims))
    return manipulation.reshape(out, [*x.shape[:x_num_col_dims], *y.shape[y_num_col_dims:]])


def pad(x: Any, paddings: Any, pad_value: float = 0.0, name: str | None = None) -> Tensor:
    """Return x with `paddings` elements around: before and after axis 0, before and after axis 1, ..."""
    x = tensor(x, "pad")
    if len(paddings) != 2 * x.ndim:
        raise ValueError(f"pad: {x.ndim} axes need {2 * x.ndim} paddings, not {len(paddings)}")
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    return padding.pad_pairs(x, pairs, pad_value)


def slice(input: Any, axes: Any, starts: Any, ends: Any) -> Tensor:
    """Return the elements from `starts` to `ends` along `axes`."""
    return concat_split.slice(input, axes, starts, ends)


def gather(input: Any, index: Any, overwrite: bool = True) -> Tensor:
    """Return the rows at `index`."""
    return gather_scatter.gather(input, index)


def scatter(input: Any, index: Any, updates: Any, name: str | None = None, overwrite: bool = True) -> Tensor:
    """Return `input` with the rows at `index` replaced by `updates`, or their sums where not `overwrite`."""
    return gather_scatter.scatter(input, index, updates, overwrite)


def where(condition: Any) -> Tensor:
    """Return the places where the condition holds, one a row."""
    return search.nonzero(condition)


def fill_constant(shape: Any, dtype: Any, value: Any, force_cpu: bool = False, out: Any = None) -> Tensor:
    """Return a tensor of one number, or write it into `out`."""
    made = creation.full(shape, value, dtype)
    return made if out is None else modern_assign(made, out)


def fill_constant_batch_size_like(
    input: Any, shape: Any, dtype: Any, value: Any, input_dim_idx: int = 0, output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor of one number whose axis `output_dim_idx` is as long as axis `input_dim_idx` of `input`."""
    extents = list(shape)
    extents[output_dim_idx] = tensor(input, "fill_constant_batch_size_like").shape[input_dim_idx]
    return creation.full(extents, value, dtype)


def zeros(shape: Any, dtype: Any, force_cpu: bool = False) -> Tensor:
    """Return zeros."""
    return creation.zeros(shape, dtype)


def ones(shape: Any, dtype: Any, force_cpu: bool = False) -> Tensor:
    """Return ones."""
    return creation.ones(shape, dtype)


def zeros_like(x: Any, out: Any = None) -> Tensor:
    """Return zeros in the shape and dtype of x."""
    return creation.zeros_like(x)


def ones_like(x: Any, out: Any = None) -> Tensor:
    """Return ones in the shape and dtype of x."""
    return creation.ones_like(x)


def range(start: Any, end: Any, step: Any, dtype: Any) -> Tensor:
    """Return the numbers from `start` by `step`, below `end`."""
    return creation.arange(start, end, step, dtype)


def assign(input: Any, output: Tensor | None = None) -> Tensor:
    """Return a copy, or copy into `output`."""
    return modern_assign(input, output)


def uniform_random(
    shape: Any, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None
) -> Tensor:
    """Return uniform numbers in [min, max)."""
    return uniform(shape, dtype, min, max, seed)


def gaussian_random(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """Return normal numbers with this mean and standard deviation."""
    return gaussian(shape, mean, std, seed, dtype)
