"""Reductions, norms, running sums, order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import tensor as T
from dy2st.functions.math.histograms import mode
from dy2st.paddle_files.rules.elementwise import number
from dy2st.paddle_files.runner import Node, operator
from dy2st.runtime.eager.tensor import Tensor


def _axes(node: Node) -> list[int] | None:
    """Return the axes over which to reduce; None for all."""
    over = node.get("axis") if len(node.raw) < 2 else node.ints(1)
    over = [over] if type(over) is int else over
    return None if node.get("reduce_all") or not over else over


def _reduction(name: str, function: Callable[..., Any]) -> None:
    def rule(node: Node, x: Any, axes: Any = None) -> Any:
        return function(x, _axes(node), keepdim=bool(node.get("keepdim")))

    operator(name)(rule)


for _name, _function in (
    ("mean", T.mean), ("max", T.max), ("min", T.min), ("amax", T.amax), ("amin", T.amin), ("prod", T.prod),
    ("any", T.any), ("all", T.all), ("logsumexp", T.logsumexp),
):  # fmt: skip
    _reduction(_name, _function)


@operator("sum")
def _sum(node: Node, x: Any, axes: Any) -> Any:
    return T.sum(x, _axes(node), node.dtype("dtype", "out_dtype"), bool(node.get("keepdim")))


@operator("mean_all")
def _mean_all(node: Node, x: Any) -> Any:
    return T.mean(x)


@operator("p_norm")
def _p_norm(node: Node, x: Any) -> Any:
    """Return a norm over one axis, or over all elements."""
    p, keepdim = node.get("porder", default=2.0), bool(node.get("keepdim"))
    if node.get("asvector"):
        flat = T.norm(T.reshape(x, [-1]), p, 0)
        return T.reshape(flat, [1] * x.ndim) if keepdim else flat
    return T.norm(x, p, node.get("axis", default=-1), keepdim)


@operator("frobenius_norm")
def _frobenius_norm(node: Node, x: Any, axes: Any = None) -> Any:
    return T.sqrt(T.sum(x * x, _axes(node), keepdim=bool(node.get("keepdim"))))


@operator("norm")
def _norm(node: Node, x: Any) -> Any:
    """Divide by the length along an axis; return that too."""
    size = T.sqrt(T.sum(x * x, node.get("axis", default=-1), keepdim=True) + node.get("epsilon", default=1e-10))
    return x / size, size


@operator("cumsum")
def _cumsum(node: Node, x: Any, axis: Any) -> Any:
    over = (node.ints(1) or [-1])[0]
    if node.get("flatten"):
        x, over = T.reshape(x, [-1]), 0
    backward = bool(node.get("reverse"))
    there = T.flip(x, [over]) if backward else x
    made = T.cumsum(there, over)
    made = made - there if node.get("exclusive") else made
    return T.flip(made, [over]) if backward else made


@operator("cumprod")
def _cumprod(node: Node, x: Any) -> Any:
    return T.cumprod(x, node.get("dim", default=-1))


def _arg(name: str, function: Callable[..., Any]) -> None:
    def rule(node: Node, x: Any, axis: Any) -> Any:
        over = None if node.get("flatten") else (node.ints(1) or [-1])[0]
        made = function(x, over, bool(node.get("keepdims")), node.dtype() or "int64")
        return T.reshape(made, [1] * x.ndim) if over is None and node.get("keepdims") else made

    operator(name)(rule)


_arg("argmax", T.argmax)
_arg("argmin", T.argmin)


@operator("topk")
def _topk(node: Node, x: Any, k: Any) -> Any:
    count = number(node.raw[1], k)
    if isinstance(count, Tensor):
        count = count.item()
    axis, largest = node.get("axis", default=-1), node.get("largest", default=True)
    return T.topk(x, count, axis, bool(largest), bool(node.get("sorted", default=True)))


@operator("argsort")
def _argsort(node: Node, x: Any) -> Any:
    axis, down = node.get("axis", default=-1), bool(node.get("descending"))
    order = T.argsort(x, axis, down, bool(node.get("stable")))
    return T.take_along_axis(x, order, axis), order


@operator("kthvalue")
def _kthvalue(node: Node, x: Any) -> Any:
    return T.kthvalue(x, node.get("k", default=1), node.get("axis", default=-1), bool(node.get("keepdim")))


@operator("mode")
def _mode(node: Node, x: Any) -> Any:
    return mode(x, node.get("axis", default=-1), bool(node.get("keepdim")))


@operator("trace")
def _trace(node: Node, x: Any) -> Any:
    return T.trace(x, node.get("offset", default=0), node.get("axis1", default=0), node.get("axis2", default=1))
