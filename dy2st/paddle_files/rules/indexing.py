"""Elements by place: gather, scatter, masks, assignment to parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.paddle_files.rules.elementwise import number
from dy2st.paddle_files.runner import Node, operator
from dy2st.runtime.eager.tensor import Tensor


@operator("gather")
def _gather(node: Node, x: Any, index: Any, axis: Any = None) -> Any:
    return T.gather(x, index, (node.ints(2) or [0])[0])


@operator("gather_nd")
def _gather_nd(node: Node, x: Any, index: Any) -> Any:
    return T.gather_nd(x, index)


@operator("scatter")
def _scatter(node: Node, x: Any, index: Any, updates: Any) -> Any:
    return T.scatter(x, index, updates, bool(node.get("overwrite", default=True)))


@operator("scatter_nd_add")
def _scatter_nd_add(node: Node, x: Any, index: Any, updates: Any) -> Any:
    return T.scatter_nd_add(x, index, updates)


@operator("index_select")
def _index_select(node: Node, x: Any, index: Any) -> Any:
    return T.index_select(x, index, node.get("axis", default=0))


@operator("index_sample")
def _index_sample(node: Node, x: Any, index: Any) -> Any:
    return T.index_sample(x, index)


@operator("index_put")
def _index_put(node: Node, x: Any, indices: Any, value: Any) -> Any:
    return T.index_put(x, tuple(indices), value, bool(node.get("accumulate")))


@operator("index_add")
def _index_add(node: Node, x: Any, index: Any, value: Any) -> Any:
    return T.index_add(x, index, node.get("axis", default=0), value)


@operator("take_along_axis")
def _take_along_axis(node: Node, x: Any, index: Any) -> Any:
    return T.take_along_axis(x, index, node.get("axis", default=0), broadcast=False)


@operator("put_along_axis")
def _put_along_axis(node: Node, x: Any, index: Any, value: Any) -> Any:
    reduce, include = node.get("reduce", default="assign"), node.get("include_self", default=True)
    return T.put_along_axis(x, index, value, node.get("axis", default=0), reduce, bool(include), broadcast=False)


@operator("nonzero")
def _nonzero(node: Node, test: Any) -> Any:
    return T.nonzero(test)


@operator("masked_select")
def _masked_select(node: Node, x: Any, mask: Any) -> Any:
    return T.masked_select(x, mask)


@operator("masked_fill")
def _masked_fill(node: Node, x: Any, mask: Any, value: Any) -> Any:
    return T.masked_fill(x, mask, value)


@operator("repeat_interleave", "repeat_interleave_with_tensor_index")
def _repeat_interleave(node: Node, x: Any, repeats: Any = None) -> Any:
    """Repeat as often as a number or a tensor says; PIR has the number as an attribute."""
    said = node.get("repeats") if repeats is None else number(node.raw[1], repeats)
    return T.repeat_interleave(x, said, node.get("axis", default=0))


@operator("one_hot")
def _one_hot(node: Node, x: Any, classes: Any) -> Any:
    return F.one_hot(x, (node.ints(1) or [-1])[0])


@operator("unique")
def _unique(node: Node, x: Any) -> Any:
    """Return the elements without repetition, and what else the attributes want, in the places of PIR."""
    axis = node.get("axis", default=[])
    flags = [bool(node.get(name)) for name in ("return_index", "return_inverse", "return_counts")]
    made = T.unique(x, *flags, axis[0] if axis else None, node.dtype() or "int64")
    found = iter(made if isinstance(made, (tuple, list)) else [made])
    return (next(found), *(next(found) if flag else None for flag in flags))


@operator("bincount")
def _bincount(node: Node, x: Any, weights: Any, least: Any) -> Any:
    return T.bincount(x, weights, (node.ints(2) or [0])[0])


@operator("searchsorted")
def _searchsorted(node: Node, order: Any, values: Any) -> Any:
    return T.searchsorted(order, values, bool(node.get("out_int32")), bool(node.get("right")))


def _key(node: Node, x: Any, starts: list[Any], ends: list[Any], steps: list[Any]) -> tuple[Any, ...]:
    if node.get("none_axes"):
        raise node.fail("an assignment through new axes")
    gone = {a % x.ndim for a in node.get("decrease_axes", default=[])}
    key: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(node.get("axes"), starts, ends, steps, strict=True):
        if axis in gone:
            key[axis] = start
            continue
        far = isinstance(end, int) and (end >= 2**31 - 1 or (isinstance(step, int) and step < 0 and end < -(2**30)))
        key[axis] = slice(start, None if far else end, step)
    return tuple(key)


def _put(node: Node, x: Any, value: Any, at: int) -> Any:
    made = T.assign(x)
    made[_key(node, x, *(node.ints(at + i) or [] for i in range(3)))] = value
    return made


@operator("set_value")
def _set_value(node: Node, x: Any, starts: Any, ends: Any, steps: Any, given: Any = None) -> Any:
    """Put numbers of the file, or a tensor, at a part of x."""
    if isinstance(given, Tensor):
        return _put(node, x, given, 1)
    values = node.get("values", default=[]) if given is None else given
    shape = node.get("shape", default=[1])
    if len(values) == 1:
        return _put(node, x, values[0], 1)
    return _put(node, x, T.to_tensor(np.asarray(values).astype(x.dtype.name).reshape(shape)), 1)


@operator("set_value_with_tensor")
def _set_value_with_tensor(node: Node, x: Any, value: Any, starts: Any, ends: Any, steps: Any) -> Any:
    return _put(node, x, value, 2)
