"""Shapes, axes, parts, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.functions.math import complex_numbers
from dy2st.nn import functional as F
from dy2st.paddle_files.runner import Node, operator


def _shape(name: str, dtype: str) -> None:
    def rule(node: Node, x: Any) -> Any:
        extents = list(x.shape)
        if all(isinstance(e, int) for e in extents):
            return T.to_tensor(np.asarray(extents, dtype))
        return T.cast(T.shape(x), dtype)

    operator(name)(rule)


_shape("shape64", "int64")
_shape("shape", "int32")


@operator("numel")
def _numel(node: Node, x: Any) -> Any:
    return T.cast(T.numel(x), "int64")


@operator("reshape")
def _reshape(node: Node, x: Any, shape: Any = None) -> Any:
    wanted = (node.ints(1) if len(node.raw) > 1 else node.get("dims")) or []
    return T.reshape(x, [x.shape[i] if isinstance(e, int) and e == 0 else e for i, e in enumerate(wanted)])


@operator("transpose")
def _transpose(node: Node, x: Any) -> Any:
    return T.transpose(x, node.get("perm"))


@operator("squeeze")
def _squeeze(node: Node, x: Any, axes: Any) -> Any:
    over = node.ints(1) or [i for i, e in enumerate(x.shape) if isinstance(e, int) and e == 1]
    over = [a % x.ndim for a in over]
    over = [a for a in over if not isinstance(x.shape[a], int) or x.shape[a] == 1]
    return T.squeeze(x, over) if over else x


@operator("unsqueeze")
def _unsqueeze(node: Node, x: Any, axes: Any) -> Any:
    for axis in node.ints(1) or []:
        x = T.unsqueeze(x, axis)
    return x


@operator("flatten")
def _flatten(node: Node, x: Any) -> Any:
    return T.flatten(x, node.get("start_axis", default=1), node.get("stop_axis", default=-1))


@operator("old_flatten")
def _old_flatten(node: Node, x: Any) -> Any:
    """Return a matrix: the axes before a place taken together, and those after it."""
    axis, rows = node.get("axis", default=1), 1
    for extent in x.shape[:axis]:
        rows = rows * extent
    return T.reshape(x, [rows, -1])


@operator("builtin.combine")
def _combine(node: Node, *xs: Any) -> Any:
    return (list(xs),)


@operator("builtin.split")
def _apart(node: Node, xs: Any) -> Any:
    return tuple(xs)


@operator("concat")
def _concat(node: Node, xs: Any, axis: Any) -> Any:
    return T.concat(xs, (node.ints(1) or [0])[0])


@operator("stack")
def _stack(node: Node, xs: Any) -> Any:
    return T.stack(xs, node.get("axis", default=0))


@operator("unstack", "unbind")
def _unbind(node: Node, x: Any) -> Any:
    return (list(T.unbind(x, node.get("axis", default=0))),)


@operator("split")
def _split(node: Node, x: Any, sections: Any, axis: Any) -> Any:
    return (list(T.split(x, node.ints(1) or [], (node.ints(2) or [0])[0])),)


@operator("split_with_num")
def _split_with_num(node: Node, x: Any, axis: Any) -> Any:
    return (list(T.split(x, node.get("num"), (node.ints(1) or [0])[0])),)


@operator("old_split")
def _old_split(node: Node, x: Any, sections: Any, axis: Any) -> Any:
    parts = node.ints(1) or node.get("num")
    return (list(T.split(x, parts, (node.ints(2) or [0])[0])),)


_FAR = (1 << 31) - 1
"""An end from which on there is none."""


@operator("slice")
def _slice(node: Node, x: Any, starts: Any, ends: Any) -> Any:
    """Return a part; axes of which one element is wanted go."""
    if isinstance(x, list):
        raise node.fail("a part of a tensor array")
    gone = {a % x.ndim for a in node.get("decrease_axis", default=[])}
    key: list[Any] = [slice(None)] * x.ndim
    for axis, start, end in zip(node.get("axes"), node.ints(1) or [], node.ints(2) or [], strict=True):
        if axis in gone:
            key[axis] = start
        else:
            if isinstance(start, int) and isinstance(x.shape[axis], int):
                start = max(start, -x.shape[axis])
            key[axis] = slice(start, None if isinstance(end, int) and end >= _FAR else end)
    return x[tuple(key)]


@operator("strided_slice")
def _strided_slice(node: Node, x: Any, starts: Any, ends: Any, strides: Any) -> Any:
    """Return elements at equal distances; backward, an end of -1 is that before the first."""
    key: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(node.get("axes"), *(node.ints(i) or [] for i in (1, 2, 3)), strict=True):
        down = isinstance(step, int) and step < 0
        whole = isinstance(end, int) and (end == -1 or end < -_FAR if down else end >= _FAR)
        key[axis] = slice(start, None if whole else end, step)
    made = x[tuple(key)]
    gone = node.get("decrease", default=[])
    return T.squeeze(made, gone) if gone else made


@operator("expand")
def _expand(node: Node, x: Any, shape: Any) -> Any:
    return T.expand(x, node.ints(1) or [])


@operator("expand_as")
def _expand_as(node: Node, x: Any, y: Any = None) -> Any:
    return T.expand(x, node.get("target_shape")) if y is None else T.expand_as(x, y)


@operator("tile")
def _tile(node: Node, x: Any, repeats: Any) -> Any:
    return T.tile(x, node.ints(1) or [])


@operator("flip")
def _flip(node: Node, x: Any) -> Any:
    return T.flip(x, node.get("axis"))


@operator("roll")
def _roll(node: Node, x: Any, shifts: Any) -> Any:
    return T.roll(x, node.ints(1), node.get("axis") or None)


@operator("tril")
def _tril(node: Node, x: Any) -> Any:
    return T.tril(x, node.get("diagonal", default=0))


@operator("triu")
def _triu(node: Node, x: Any) -> Any:
    return T.triu(x, node.get("diagonal", default=0))


@operator("tril_triu")
def _tril_triu(node: Node, x: Any) -> Any:
    return (T.tril if node.get("lower", default=True) else T.triu)(x, node.get("diagonal", default=0))


@operator("pad3d")
def _pad3d(node: Node, x: Any, widths: Any) -> Any:
    mode, value = node.get("mode", default="constant"), node.get("pad_value", default=0.0)
    return F.pad(x, node.ints(1), mode, value, node.get("data_format", default="NCDHW"))


@operator("pad")
def _pad(node: Node, x: Any, value: Any = None) -> Any:
    fill = (node.get("pad_value", default=0.0)) if value is None else value.item()
    return F.pad(x, node.get("paddings"), "constant", fill)


@operator("complex")
def _complex(node: Node, x: Any, y: Any) -> Any:
    return complex_numbers.complex(x, y)


@operator("real")
def _real(node: Node, x: Any) -> Any:
    return x.real()


@operator("imag")
def _imag(node: Node, x: Any) -> Any:
    return x.imag()


@operator("conj")
def _conj(node: Node, x: Any) -> Any:
    return x.conj()
