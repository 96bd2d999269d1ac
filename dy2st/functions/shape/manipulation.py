"""Shapes and places: reshape, transpose, join, split, repeat, flip, pad."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import all_axes, integers, one_axis, op, tensor
from dy2st.ir.context import current
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.symbolic_scalar import split_shape

_RESHAPE, _TRANSPOSE = op("reshape"), op("transpose")
_EXPAND_DIMS, _SQUEEZE = op("expand_dims"), op("squeeze")
_FLIP, _ROLL = op("flip"), op("roll")


def cast(x: Any, dtype: Any) -> Tensor:
    """Return x in another dtype, a copy also where it is the same.

    >>> import dy2st as paddle
    >>> paddle.cast(paddle.to_tensor([1.7]), "int32").tolist()
    [1]
    """
    return apply(op("cast"), tensor(x, "cast"), dtype=as_dtype(dtype))


def reshape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the elements in row-major order under another shape; one -1 is computed, a 0 keeps that extent.

    The result shares memory where it can. Raises ValueError, naming both shapes, when the counts differ.

    >>> import dy2st as paddle
    >>> paddle.reshape(paddle.to_tensor([1, 2, 3, 4]), [2, -1]).tolist()
    [[1, 2], [3, 4]]
    """
    x = tensor(x, "reshape")
    if shape.__class__ in (list, tuple) and _is_settled(shape):
        return apply(_RESHAPE, x, shape=tuple(shape))
    template, dims = split_shape(shape)
    if 0 in template and x.size != 0 if builtins.all(isinstance(e, int) for e in x.shape) else 0 in template:
        old = x.shape
        listed = filled(template, dims)
        kept = [old[i] if e.__class__ is int and e == 0 and i < len(old) else e for i, e in enumerate(listed)]
        template, dims = split_shape(kept)
    if template.count(-1) > 1:
        raise ValueError(f"reshape: only one extent may be -1, not {list(template)}")
    if builtins.any(e is not None and e < -1 for e in template):
        raise ValueError(f"reshape: an extent cannot be negative but for one -1: {list(template)}")
    return apply(_RESHAPE, x, *dims, shape=template)


def _is_settled(shape: Sequence[Any]) -> bool:
    """Return whether all extents are Python ints that mean themselves, but for one -1."""
    open_ones = 0
    for e in shape:
        if e.__class__ is not int or e == 0 or e < -1:
            return False
        open_ones += e == -1
    return open_ones <= 1


def filled(template: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """Return the extents of a template: its ints, and for each None the next of `dims`."""
    rest = iter(dims)
    return [next(rest) if e is None else e for e in template]


def view(x: Tensor, shape_or_dtype: Any, name: str | None = None) -> Tensor:
    """Return x under another shape, sharing memory, or its bits under another dtype.

    A wider or narrower dtype makes the last axis shorter or longer.

    >>> import dy2st as paddle
    >>> paddle.ones([2]).view("int32").tolist()
    [1065353216, 1065353216]
    """
    if isinstance(shape_or_dtype, (list, tuple, Tensor)):
        return reshape(x, shape_or_dtype)
    return apply(op("bitcast"), x, dtype=as_dtype(shape_or_dtype))


def view_as(x: Tensor, other: Tensor, name: str | None = None) -> Tensor:
    """Return x under the shape of `other`, sharing memory."""
    return reshape(x, other.shape)


def flatten(x: Any, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Tensor:
    """Return x with the axes from start_axis to stop_axis made one.

    >>> import dy2st as paddle
    >>> paddle.flatten(paddle.zeros([2, 3, 4]), 1).shape
    [2, 12]
    """
    x = tensor(x, "flatten")
    if x.ndim == 0:
        return reshape(x, [1])
    start, stop = one_axis(start_axis, x.ndim, "flatten"), one_axis(stop_axis, x.ndim, "flatten")
    if start > stop:
        raise ValueError(f"flatten: start_axis {start_axis} is behind stop_axis {stop_axis}")
    shape = x.shape
    middle = _product(shape[start : stop + 1])  # not -1: an axis may be empty
    return reshape_to(x, [*shape[:start], middle, *shape[stop + 1 :]])


def reshape_to(x: Tensor, shape: Sequence[Any]) -> Tensor:
    """Reshape to extents as they are: 0 means 0."""
    template, dims = split_shape(list(shape))
    return apply(_RESHAPE, x, *dims, shape=template)


def _product(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for e in extents:
        total = total * e
    return total


def ravel(input: Any) -> Tensor:
    """Return the elements as one axis."""
    return reshape(input, [-1])


def unflatten(x: Tensor, axis: int, shape: Any, name: str | None = None) -> Tensor:
    """Return x with one axis made several, of this shape."""
    axis = one_axis(axis, x.ndim, "unflatten")
    template, dims = split_shape(shape)
    return reshape(x, [*x.shape[:axis], *filled(template, dims), *x.shape[axis + 1 :]])


def transpose(x: Any, perm: Any, name: str | None = None) -> Tensor:
    """Return x with its axes permuted: axis i of the result is axis perm[i] of x. Memory is shared.

    >>> import dy2st as paddle
    >>> paddle.transpose(paddle.zeros([2, 3, 4]), [2, 0, 1]).shape
    [4, 2, 3]
    """
    x = tensor(x, "transpose")
    axes = [one_axis(p, x.ndim, "transpose") for p in perm]
    if len(axes) != x.ndim or len(set(axes)) != x.ndim:
        raise ValueError(f"transpose: perm {list(perm)} is not a permutation of the {x.ndim} axes of the tensor")
    return apply(_TRANSPOSE, x, perm=tuple(axes))


def permute(input: Any, *dims: Any) -> Tensor:
    """Return `input` with its axes permuted."""
    return transpose(input, dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims)


def swapaxes(
    x: Any, *axes: Any, perm: Any = None, name: str | None = None, axis0: Any = None, axis1: Any = None
) -> Tensor:
    """Return x with two axes exchanged; with a permutation in their place, what `transpose` gives.

    >>> import dy2st as paddle
    >>> paddle.swapaxes(paddle.zeros([2, 3, 4]), 0, 2).shape
    [4, 3, 2]
    """
    x = tensor(x, "swapaxes")
    given = [*axes, *(a for a in (axis0, axis1) if a is not None)]
    if perm is None and len(given) == 1 and isinstance(given[0], (list, tuple)):
        perm = given[0]
    if perm is not None:
        return transpose(x, perm)
    if len(given) != 2:
        raise TypeError(f"swapaxes needs two axes, or a permutation, not {given}")
    a, b = (one_axis(axis, x.ndim, "swapaxes") for axis in given)
    exchanged = list(range(x.ndim))
    exchanged[a], exchanged[b] = b, a
    return apply(_TRANSPOSE, x, perm=tuple(exchanged))


swapdims = swapaxes


def moveaxis(x: Any, source: Any, destination: Any, name: str | None = None) -> Tensor:
    """Return x with the axes `source` at the places `destination`, the others in their order."""
    x = tensor(x, "moveaxis")
    sources = [one_axis(a, x.ndim, "moveaxis") for a in (source if isinstance(source, (list, tuple)) else [source])]
    targets = destination if isinstance(destination, (list, tuple)) else [destination]
    targets = [one_axis(a, x.ndim, "moveaxis") for a in targets]
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError(f"moveaxis: source {source} and destination {destination} do not name as many different axes")
    perm = [i for i in range(x.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        perm.insert(target, origin)
    return apply(_TRANSPOSE, x, perm=tuple(perm))


def squeeze(x: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return x without its axes of extent 1 (those of them that `axis` names). Memory is shared.

    >>> import dy2st as paddle
    >>> paddle.squeeze(paddle.zeros([1, 3, 1]), 0).shape
    [3, 1]
    """
    x = tensor(x, "squeeze")
    return _without_ones(x, tuple(range(x.ndim)) if axis is None else all_axes(axis, x.ndim, "squeeze"))


def _without_ones(x: Tensor, named: Sequence[int]) -> Tensor:
    """Return x without those of the named axes whose extent is 1; where it is known only at run time, it has either
    rank.
    """
    shape, trace = x.shape, current().trace
    unknown = [i for i in named if not isinstance(shape[i], int)]
    if trace is None or not unknown or not trace.of_function:  # a Program built by hand has one rank
        return apply(_SQUEEZE, x, axes=tuple(i for i in named if isinstance(shape[i], int) and shape[i] == 1))
    one, others = unknown[-1], [i for i in named if i != unknown[-1]]
    first = tuple(0 if i == one else slice(None) for i in range(x.ndim))
    return trace.if_exp(
        shape[one] == 1,
        lambda: _without_ones(x[first], [i - (i > one) for i in others]),
        lambda: _without_ones(x, others),
    )


def unsqueeze(x: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return x with new axes of extent 1 at these places of the result. Memory is shared.

    >>> import dy2st as paddle
    >>> paddle.unsqueeze(paddle.zeros([3]), [0, 2]).shape
    [1, 3, 1]
    """
    x = tensor(x, "unsqueeze")
    if isinstance(axis, Tensor):
        axis = axis.tolist()
    if not isinstance(axis, (list, tuple)):
        return apply(_EXPAND_DIMS, x, axes=(one_axis(axis, x.ndim + 1, "unsqueeze"),))
    rank = x.ndim + len(axis)
    axes = tuple(sorted(one_axis(a, rank, "unsqueeze") for a in axis))
    return apply(_EXPAND_DIMS, x, axes=axes)


def flip(x: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return x in reverse order along axes."""
    x = tensor(x, "flip")
    return apply(_FLIP, x, axes=all_axes(axis, x.ndim, "flip") if axis != [] else ())


reverse = flip


def rot90(x: Any, k: int = 1, axes: Any = (0, 1), name: str | None = None) -> Tensor:
    """Return x turned k times by 90 degrees in the plane of two axes."""
    x = tensor(x, "rot90")
    first, second = (one_axis(a, x.ndim, "rot90") for a in axes)
    if first == second:
        raise ValueError(f"rot90: axes {list(axes)} name one axis twice")
    k %= 4
    if k == 0:
        return apply(_FLIP, x, axes=())
    if k == 2:
        return apply(_FLIP, x, axes=tuple(sorted((first, second))))
    if k == 1:
        return swapaxes(apply(_FLIP, x, axes=(second,)), first, second)
    return apply(_FLIP, swapaxes(x, first, second), axes=(second,))


def roll(x: Any, shifts: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return x moved around the end by `shifts` along axes (along all elements in row-major order when None)."""
    x = tensor(x, "roll")
    moved = integers(shifts, "roll")
    template, dims = split_shape(moved)
    if axis is None:
        return reshape_to(apply(_ROLL, reshape_to(x, [-1]), *dims, shifts=template, axes=(0,) * len(moved)), x.shape)
    axes = [one_axis(a, x.ndim, "roll") for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    if len(axes) != len(moved):
        raise ValueError(f"roll: {len(moved)} shifts for {len(axes)} axes")
    return apply(_ROLL, x, *dims, shifts=template, axes=tuple(axes))


def in_trace() -> bool:
    """Return whether operations are being recorded into a Program."""
    return current().trace is not None
