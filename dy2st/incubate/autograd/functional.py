"""`jvp` and `vjp`: derivatives of functions along a direction, in eager and in static mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.autograd.rules import (
    as_tensors,
    callable_here,
    check_like,
    dense,
    fresh,
    outputs_of,
    pull,
    tangents_or_zeros,
)
from dy2st.ir.context import replaced
from dy2st.runtime.eager.tensor import Tensor


def vjp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """Return func(xs) and the product of `v` with the Jacobian of `func` at `xs`: reverse mode.

    Parameters
    ----------
    func
        Takes as many tensors as `xs` has, returns a tensor or a sequence of them.
    xs
        A tensor or a sequence of tensors.
    v
        Cotangents of the outputs' shapes; ones where None.

    Returns
    -------
    What `func` returns, and a cotangent for each of `xs` (zeros where nothing depends on it), as a tensor or a list.

    >>> import dy2st as paddle
    >>> y, ct = paddle.incubate.autograd.vjp(lambda x: x * x, paddle.to_tensor([1.0, 3.0]))
    >>> ct.tolist()
    [2.0, 6.0]
    """
    ins, out, outs = _called(func, xs, "vjp")
    seeds = _directions(v, outs, "vjp: v")
    found = [dense(ct, x) for ct, x in zip(pull(outs, ins, seeds), ins, strict=True)]
    return out, found[0] if isinstance(xs, Tensor) else found


def jvp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """Return func(xs) and the product of the Jacobian of `func` at `xs` with `v`: forward mode.

    Parameters
    ----------
    func
        Takes as many tensors as `xs` has, returns a tensor or a sequence of them.
    xs
        A tensor or a sequence of tensors.
    v
        Tangents of the shapes of `xs`; ones where None.

    Returns
    -------
    What `func` returns, and a tangent for each output, as a tensor or a list.

    >>> import dy2st as paddle
    >>> y, t = paddle.incubate.autograd.jvp(lambda x: x * x, paddle.to_tensor([1.0, 3.0]), paddle.to_tensor([1.0, 0.0]))
    >>> t.tolist()
    [2.0, 0.0]
    """
    ins, out, outs = _called(func, xs, "jvp")
    found = tangents_or_zeros(outs, ins, _directions(v, ins, "jvp: v"))
    return out, found[0] if isinstance(out, Tensor) else found


def _called(func: Callable[..., Any], xs: Any, what: str) -> tuple[list[Tensor], Any, list[Tensor]]:
    """Call a function on tensors of its own; return these, what it returned, and that as a list."""
    ins = fresh(as_tensors(xs, f"{what}: xs"))
    with replaced(grad=True):
        out = callable_here(func)(*ins)
    return ins, out, outputs_of(out, what)


def _directions(v: Any, likes: list[Tensor], what: str) -> list[Tensor | None]:
    if v is None:
        return [None] * len(likes)
    listed = as_tensors(v, what)
    if len(listed) != len(likes):
        raise ValueError(f"{what} has {len(listed)} tensors, but {len(likes)} are needed")
    for one, like in zip(listed, likes, strict=True):
        check_like(one, like, what)
    return list(listed)
