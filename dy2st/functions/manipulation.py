"""Shapes and places: reshape, transpose, join, split, repeat, flip, pad."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.lists import list_joined, list_stacked
from dy2st.functions.operands import (
    all_axes,
    broadcast_shapes,
    cast_to,
    integers,
    number,
    one_axis,
    op,
    tensor,
    together,
    whole,
)
from dy2st.ir.context import current
from dy2st.runtime.dispatch import apply
from dy2st.runtime.scalar import Scalar, binary, split_shape
from dy2st.runtime.tensor import Tensor
from dy2st.runtime.variant import SymbolicList

_RESHAPE, _TRANSPOSE, _CONCAT, _STACK, _SPLIT = op("reshape"), op("transpose"), op("concat"), op("stack"), op("split")
_EXPAND_DIMS, _SQUEEZE, _BROADCAST, _INDEX = op("expand_dims"), op("squeeze"), op("broadcast"), op("index")
_FLIP, _ROLL, _PAD, _TRIL, _TRIU, _DIAGONAL = (op(n) for n in ("flip", "roll", "pad", "tril", "triu", "diagonal"))


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
    template, dims = split_shape(shape)
    if 0 in template and x.size != 0 if builtins.all(isinstance(e, int) for e in x.shape) else 0 in template:
        old = x.shape
        listed = _filled(template, dims)
        kept = [old[i] if e.__class__ is int and e == 0 and i < len(old) else e for i, e in enumerate(listed)]
        template, dims = split_shape(kept)
    if template.count(-1) > 1:
        raise ValueError(f"reshape: only one extent may be -1, not {list(template)}")
    if builtins.any(e is not None and e < -1 for e in template):
        raise ValueError(f"reshape: an extent cannot be negative but for one -1: {list(template)}")
    return apply(_RESHAPE, x, *dims, shape=template)


def _filled(template: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    rest = iter(dims)
    return [next(rest) if e is None else e for e in template]


def view(x: Tensor, shape_or_dtype: Any, name: str | None = None) -> Tensor:
    """Return x under another shape, sharing memory."""
    return reshape(x, shape_or_dtype)


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
    return reshape(x, [*x.shape[:axis], *_filled(template, dims), *x.shape[axis + 1 :]])


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


def swapaxes(x: Any, axis0: int, axis1: int, name: str | None = None) -> Tensor:
    """Return x with two axes exchanged."""
    x = tensor(x, "swapaxes")
    a, b = one_axis(axis0, x.ndim, "swapaxes"), one_axis(axis1, x.ndim, "swapaxes")
    perm = list(range(x.ndim))
    perm[a], perm[b] = b, a
    return apply(_TRANSPOSE, x, perm=tuple(perm))


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
    shape = x.shape
    named = range(x.ndim) if axis is None else all_axes(axis, x.ndim, "squeeze")
    axes = tuple(i for i in named if isinstance(shape[i], int) and shape[i] == 1)
    return apply(_SQUEEZE, x, axes=axes)


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


def concat(x: Any, axis: Any = 0, name: str | None = None) -> Tensor:
    """Return tensors one after the other along an axis; their other extents are equal.

    >>> import dy2st as paddle
    >>> paddle.concat([paddle.to_tensor([1, 2]), paddle.to_tensor([3])]).tolist()
    [1, 2, 3]
    """
    if isinstance(x, SymbolicList):
        return list_joined(x, axis, "concat")
    if isinstance(x, Tensor):
        x = unbind(x)
    tensors = together(list(x), "concat")
    rank = max(t.ndim for t in tensors)
    if rank == 0:
        raise ValueError("concat: 0-D tensors have no axis to be joined along; use stack")
    return apply(_CONCAT, *tensors, axis=one_axis(axis, rank, "concat"))


def stack(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Return tensors of one shape side by side along a new axis.

    >>> import dy2st as paddle
    >>> paddle.stack([paddle.to_tensor([1, 2]), paddle.to_tensor([3, 4])], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    if isinstance(x, SymbolicList):
        return list_stacked(x, axis, "stack")
    if isinstance(x, Tensor):
        x = unbind(x)
    tensors = together(list(x), "stack")
    return apply(_STACK, *tensors, axis=one_axis(axis, tensors[0].ndim + 1, "stack"))


def split(x: Any, num_or_sections: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return parts along an axis: `num_or_sections` equal ones, or ones of these extents (one may be -1).

    >>> import dy2st as paddle
    >>> [part.tolist() for part in paddle.split(paddle.to_tensor([1, 2, 3]), [1, -1])]
    [[1], [2, 3]]
    """
    x = tensor(x, "split")
    axis = one_axis(axis, x.ndim, "split")
    extent = x.shape[axis]
    if isinstance(num_or_sections, (int, Scalar)):
        sections = _equal_parts(extent, whole(num_or_sections, "split"), axis)
    else:
        sections = integers(list(num_or_sections), "split")
        unknown = [i for i, s in enumerate(sections) if isinstance(s, int) and s == -1]
        if len(unknown) > 1:
            raise ValueError(f"split: only one section may be -1, not {sections}")
        if unknown:
            rest = extent
            for s in sections:
                rest = rest if isinstance(s, int) and s == -1 else rest - s
            sections[unknown[0]] = rest
    template, dims = split_shape(sections)
    parts = apply(_SPLIT, x, *dims, sections=template, axis=axis)
    return list(parts) if isinstance(parts, tuple) else [parts]


def _equal_parts(extent: Any, count: Any, axis: int) -> list[Any]:
    if not isinstance(count, int) or count <= 0:
        raise ValueError(f"split: the number of parts must be a known int of at least 1, not {count}")
    if isinstance(extent, int) and extent % count:
        raise ValueError(f"split: axis {axis} of extent {extent} cannot be split into {count} equal parts")
    return [extent // count] * count


def chunk(x: Any, chunks: int, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return `chunks` equal parts along an axis."""
    return split(x, chunks, axis)


def tensor_split(x: Any, num_or_indices: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Return parts along an axis, as equal as can be, or cut at these indices."""
    x = tensor(x, "tensor_split")
    axis = one_axis(axis, x.ndim, "tensor_split")
    extent = x.shape[axis]
    if isinstance(num_or_indices, int):
        size, longer = extent // num_or_indices, extent % num_or_indices
        cuts = [size * i + (i if isinstance(longer, int) and i < longer else longer) for i in range(1, num_or_indices)]
    else:
        cuts = integers(list(num_or_indices), "tensor_split")
    lead = (slice_all(),) * axis
    bounds = [None, *cuts, None]
    return [index(x, (*lead, builtins.slice(a, b))) for a, b in pairwise(bounds)]


def slice_all() -> builtins.slice:
    """Return the slice of everything."""
    return builtins.slice(None)


def index(x: Tensor, key: Any) -> Tensor:
    """Return x[key]."""
    return x[key]


def unbind(input: Any, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis, without that axis.

    >>> import dy2st as paddle
    >>> [row.tolist() for row in paddle.unbind(paddle.to_tensor([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    input = tensor(input, "unbind")
    axis = one_axis(axis, input.ndim, "unbind")
    extent = whole(input.shape[axis], "unbind")
    if not isinstance(extent, int):
        extent = extent.__index__()  # raises what a symbolic extent raises where Python needs it
    return [index(input, (*(slice_all(),) * axis, i)) for i in range(extent)]


def unstack(x: Any, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """Return the slices along an axis, without that axis; ValueError when there are not `num`."""
    parts = unbind(x, axis)
    if num is not None and num != len(parts):
        raise ValueError(f"unstack: axis {axis} has {len(parts)} slices, not {num}")
    return parts


def expand(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return x repeated to a shape by the rules of broadcasting; -1 keeps an extent.

    >>> import dy2st as paddle
    >>> paddle.expand(paddle.to_tensor([[1], [2]]), [-1, 2]).tolist()
    [[1, 1], [2, 2]]
    """
    x = tensor(x, "expand")
    template, dims = split_shape(shape)
    old = x.shape
    lead = len(template) - len(old)
    if lead < 0:
        raise ValueError(f"expand: a tensor of shape {old} cannot be expanded to fewer axes, {list(template)}")
    wanted = _filled(template, dims)
    for i, extent in enumerate(wanted):
        if not isinstance(extent, int):
            continue
        if extent == -1 and i < lead:
            raise ValueError(f"expand: axis {i} is new, so its extent cannot be -1")
        had = old[i - lead] if i >= lead else 1
        if extent == -1:
            wanted[i] = had
        elif isinstance(had, int) and had not in (1, extent):
            raise ValueError(f"expand: a tensor of shape {old} cannot be expanded to {list(template)}")
    template, dims = split_shape(wanted)
    return apply(_BROADCAST, x, *dims, shape=template)


broadcast_to = expand


def expand_as(x: Any, y: Tensor, name: str | None = None) -> Tensor:
    """Return x repeated to the shape of y."""
    return expand(x, y.shape)


def common_shape(shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the shape to which shapes of ints and symbolic ints broadcast."""
    if builtins.all(isinstance(e, int) for s in shapes for e in s):
        return broadcast_shapes(*shapes)
    rank = max(len(s) for s in shapes)
    result: list[Any] = []
    for axis in range(-rank, 0):
        met: Any = 1
        for s in shapes:
            if len(s) >= -axis:
                met = _common_extent(met, s[axis])
        result.append(met)
    return result


def _common_extent(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if a != b and 1 not in (a, b):
            raise ValueError(f"operands could not be broadcast together: extents {a} and {b} differ")
        return b if a == 1 else a
    if isinstance(a, int) and a == 1:
        return b
    if isinstance(b, int) and b == 1:
        return a
    return binary("broadcast_extent", a, b)


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """Return the shape to which two shapes broadcast."""
    return broadcast_shapes(x_shape, y_shape)


def broadcast_tensors(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Return tensors broadcast to one shape."""
    tensors = [tensor(t, "broadcast_tensors") for t in input]
    shape = common_shape([t.shape for t in tensors])
    return [expand(t, shape) for t in tensors]


def tile(x: Any, repeat_times: Any, name: str | None = None) -> Tensor:
    """Return x repeated so many times along each axis.

    >>> import dy2st as paddle
    >>> paddle.tile(paddle.to_tensor([1, 2]), [2, 2]).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = tensor(x, "tile")
    times = integers(repeat_times, "tile")
    shape = x.shape
    times = [1] * (len(shape) - len(times)) + times
    shape = [1] * (len(times) - len(shape)) + shape
    wide = reshape_to(x, [e for extent in shape for e in (1, extent)])
    full = expand(wide, [e for t, extent in zip(times, shape, strict=True) for e in (t, extent)])
    return reshape_to(full, [t * e for t, e in zip(times, shape, strict=True)])


def repeat_interleave(
    x: Any, repeats: Any, axis: Any = None, name: str | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return x with each slice along an axis (each element when None) repeated; `repeats` is an int or one a slice."""
    x = tensor(x, "repeat_interleave")
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    axis = one_axis(axis, x.ndim, "repeat_interleave")
    if isinstance(repeats, Tensor) and (repeats.ndim == 0 or repeats.shape == [1]):
        repeats = repeats.item()
    if isinstance(repeats, (int, Scalar)):
        shape = x.shape
        wide = apply(_EXPAND_DIMS, x, axes=(axis + 1,))
        full = expand(wide, [*shape[: axis + 1], repeats, *shape[axis + 1 :]])
        return reshape_to(full, [*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])
    counts = tensor(repeats, "repeat_interleave") if isinstance(repeats, Tensor) else None
    listed = counts.tolist() if counts is not None else [int(r) for r in repeats]
    if len(listed) != x.shape[axis]:
        raise ValueError(f"repeat_interleave: {len(listed)} counts for an axis of extent {x.shape[axis]}")
    places = [i for i, count in enumerate(listed) for _ in range(count)]
    return take_slices(x, places, axis)


def take_slices(x: Tensor, places: Sequence[int], axis: int) -> Tensor:
    """Return the slices at known places along an axis."""
    return apply(op("take"), x, tensor(np.asarray(places, np.int64), "take"), axis=axis)


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


def pad_constant(x: Tensor, low: Sequence[Any], high: Sequence[Any], value: Any = 0) -> Tensor:
    """Return x with `low[i]` elements of this value before axis i and `high[i]` after it."""
    template, dims = split_shape([*low, *high])
    rank = x.ndim
    filling = value if isinstance(value, Tensor) else number(value, x.dtype, x)
    return apply(_PAD, x, cast_to(filling, x.dtype), *dims, low=template[:rank], high=template[rank:])


def tril(x: Any, diagonal: int = 0, name: str | None = None) -> Tensor:
    """Return the lower triangle of the last two axes, up to this diagonal, zeros above."""
    return apply(_TRIL, tensor(x, "tril"), diagonal=int(diagonal))


def triu(x: Any, diagonal: int = 0, name: str | None = None) -> Tensor:
    """Return the upper triangle of the last two axes, from this diagonal, zeros below."""
    return apply(_TRIU, tensor(x, "triu"), diagonal=int(diagonal))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Tensor:
    """Return a diagonal of the planes of two axes, as the last axis."""
    x = tensor(x, "diagonal")
    axes = one_axis(axis1, x.ndim, "diagonal"), one_axis(axis2, x.ndim, "diagonal")
    return apply(_DIAGONAL, x, offset=int(offset), axes=axes)


def diag(x: Any, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Tensor:
    """Return the diagonal of a matrix, or the matrix whose diagonal is a vector and whose rest is padding_value."""
    x = tensor(x, "diag")
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise ValueError(f"diag needs a vector or a matrix, not {x.shape}")
    made = diag_embed(x, offset, 0, 1)
    if padding_value == 0:
        return made
    on_it = diag_embed(apply(op("ones_like"), x), offset, 0, 1)
    return apply(op("where"), on_it != 0, made, number(padding_value, x.dtype, x))


def diagflat(x: Any, offset: int = 0, name: str | None = None) -> Tensor:
    """Return the matrix whose diagonal has the elements of x."""
    return diag_embed(reshape(tensor(x, "diagflat"), [-1]), offset, 0, 1)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return planes, in two new axes, whose diagonal is the last axis of `input`, zeros elsewhere."""
    input = tensor(input, "diag_embed")
    rank = input.ndim + 1
    axes = one_axis(dim1, rank, "diag_embed"), one_axis(dim2, rank, "diag_embed")
    if axes[0] == axes[1]:
        raise ValueError(f"diag_embed: dim1 and dim2 are both {dim1}")
    extent = input.shape[-1] + builtins.abs(offset)
    rest = iter(input.shape[:-1])
    shape = [extent if i in axes else next(rest) for i in range(rank)]
    template, dims = split_shape(shape)
    return apply(op("diagonal_embed"), input, *dims, shape=template, offset=int(offset), axes=axes)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return, for vectors, the grids of their elements: axis i runs along vector i.

    >>> import dy2st as paddle
    >>> [g.tolist() for g in paddle.meshgrid(paddle.to_tensor([1, 2]), paddle.to_tensor([3]))]
    [[[1], [2]], [[3], [3]]]
    """
    vectors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    vectors = [reshape(tensor(v, "meshgrid"), [-1]) for v in vectors]
    shape = [v.shape[0] for v in vectors]
    rank = len(shape)
    return [
        expand(apply(_EXPAND_DIMS, v, axes=tuple(a for a in range(rank) if a != i)) if rank > 1 else v, shape)
        for i, v in enumerate(vectors)
    ]


def in_trace() -> bool:
    """Say whether operations are being recorded into a Program."""
    return current().trace is not None
