"""Reductions, running sums, sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import tensor as T
from dy2st.nn import functional as F
from dy2st.onnx.reading.rules.elementwise import like
from dy2st.onnx.reading.runner import Node, operator


def _reduction(name: str, function: Callable[..., Any]) -> None:
    def rule(node: Node, x: Any, axes: Any = None) -> Any:
        over = node.ints(1, "axes")
        if not over and node.get("noop_with_empty_axes", 0):
            return like(function(T.unsqueeze(x, 0), [0], False), x)
        over = [a % x.ndim for a in over] if over else list(range(x.ndim))
        if not x.ndim:
            return like(function(T.unsqueeze(x, 0), [0], False), x)
        return like(function(x, over, bool(node.get("keepdims", 1))), x)

    operator(name)(rule)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(x: Any, axes: list[int], keepdim: bool) -> Any:
        if x.dtype.is_bool:
            return T.cast(function(T.cast(x, "int32"), axis=axes, keepdim=keepdim), "bool")
        return function(x, axis=axes, keepdim=keepdim)

    return reduce


def _log_sum_exp(x: Any, axes: list[int], keepdim: bool) -> Any:
    return T.logsumexp(x if x.dtype.is_floating else T.cast(x, "float64"), axis=axes, keepdim=keepdim)


def _total(x: Any, axes: list[int], keepdim: bool) -> Any:
    return T.sum(x, axis=axes, keepdim=keepdim)


_reduction("ReduceSum", _total)
_reduction("ReduceMean", lambda x, a, k: T.mean(x if x.dtype.is_floating else T.cast(x, "float64"), axis=a, keepdim=k))
_reduction("ReduceProd", lambda x, a, k: T.prod(x, axis=a, keepdim=k))
_reduction("ReduceMax", _extreme(T.max))
_reduction("ReduceMin", _extreme(T.min))
_reduction("ReduceL1", lambda x, a, k: _total(T.abs(x), a, k))
_reduction("ReduceL2", lambda x, a, k: T.sqrt(_total(x * x, a, k)))
_reduction("ReduceSumSquare", lambda x, a, k: _total(x * x, a, k))
_reduction("ReduceLogSum", lambda x, a, k: T.log(_total(x, a, k)))
_reduction("ReduceLogSumExp", _log_sum_exp)


@operator("ArgMax", "ArgMin")
def _place(node: Node, x: Any) -> Any:
    axis, keep = node.get("axis", 0) % x.ndim, bool(node.get("keepdims", 1))
    find = T.argmax if node.proto.op_type == "ArgMax" else T.argmin
    if not node.get("select_last_index", 0):
        return find(x, axis=axis, keepdim=keep)
    return x.shape[axis] - 1 - find(T.flip(x, [axis]), axis=axis, keepdim=keep)


@operator("CumSum", "CumProd")
def _running(node: Node, x: Any, axis: Any) -> Any:
    (at,) = node.ints(1) or [0]
    at %= x.ndim
    backward, before = node.get("reverse", 0), node.get("exclusive", 0)
    x = T.flip(x, [at]) if backward else x
    sums = node.proto.op_type == "CumSum"
    made = like(T.cumsum(x, at) if sums else T.cumprod(x, at), x)
    if before:
        first = T.full_like(T.slice(made, [at], [0], [1]), 0 if sums else 1)
        made = T.concat([first, T.slice(made, [at], [0], [x.shape[at] - 1])], at)
    return T.flip(made, [at]) if backward else made


@operator("TopK")
def _top_k(node: Node, x: Any, k: Any = None) -> Any:
    (count,) = node.ints(1) or [node.get("k")]
    axis, largest = node.get("axis", -1) % x.ndim, bool(node.get("largest", 1))
    return tuple(T.topk(x, int(count), axis=axis, largest=largest))


@operator("Hardmax")
def _hardmax(node: Node, x: Any) -> Any:
    axis = node.get("axis", -1 if node.opset >= 13 else 1) % x.ndim
    at = T.argmax(x, axis=axis)
    made = T.cast(F.one_hot(at, x.shape[axis]), x.dtype)
    return T.transpose(made, [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)])


@operator("Unique")
def _unique(node: Node, x: Any) -> Any:
    axis = node.get("axis")
    made = T.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    if not node.get("sorted", 1):
        order = T.argsort(made[1])
        rank = T.argsort(order)
        values = T.index_select(made[0], order, axis or 0)
        return values, T.gather(made[1], order), T.gather(rank, made[2]), T.gather(made[3], order)
    return tuple(made)
