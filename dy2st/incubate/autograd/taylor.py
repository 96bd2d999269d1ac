"""`jet`: derivatives of high order along a direction, all at once, in eager and in static mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.autograd.rules import as_tensors, callable_here, check_like, fresh, outputs_of
from dy2st.functions.shape.creation import ones_like, zeros_like
from dy2st.ir.context import replaced
from dy2st.runtime.autograd_engine import forward_mode
from dy2st.runtime.eager.tensor import Tensor


def jet(
    func: Callable[..., Any], xs: Any, v: Any = None, order: int = 2, bends: Sequence[Any] = ()
) -> tuple[Any, list[Any]]:
    """Return func(xs) and its first `order` derivatives along a direction: d^k/dt^k func(xs + t v) at t = 0.

    Order k costs a number of operations that grows as k**2 or k**3, where that of nested first-order derivatives grows
    exponentially: the coefficients of Taylor series are pushed through all operations, branches and loops included
    (Griewank and Walther 2008, "Evaluating Derivatives", chapter 13).

    Parameters
    ----------
    func
        Takes as many tensors as `xs` has, returns a tensor or a sequence of them.
    xs
        A tensor or a sequence of tensors, of a float dtype.
    v
        The direction: a tensor of the shape and dtype of each of `xs`; ones where None.
    order
        The highest derivative, 1 or more.
    bends
        For a curve x(t) in place of a straight line: x''(0), x'''(0) and so on, each in the form of `v`; those that are
        left out are zero.

    Returns
    -------
    What `func` returns, and a list of `order` derivatives, each a tensor or a list as `func` returns.

    Raises
    ------
    ValueError
        Where `order` is not positive, or a direction has another shape or dtype than its tensor.
    AutodiffError
        Where an operation has no derivative, as a host callback has not; the text names it.

    >>> import dy2st as paddle
    >>> y, slopes = paddle.incubate.autograd.jet(lambda x: x**3, paddle.to_tensor(2.0), order=4)
    >>> [float(d) for d in slopes]
    [12.0, 12.0, 6.0, 0.0]
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise TypeError(f"jet: order must be an int, not {type(order).__name__}")
    if order < 1:
        raise ValueError(f"jet: order must be 1 or more, not {order}")
    if len(bends) > order - 1:
        raise ValueError(f"jet: bends has {len(bends)} entries, but order {order} uses {order - 1} at most")
    ins = fresh(as_tensors(xs, "jet: xs"))
    with replaced(grad=True):
        out = callable_here(func)(*ins)
    outs = outputs_of(out, "jet")
    given: list[forward_mode.Coefficients] = [[None] * order for _ in ins]
    lines = [[ones_like(x) for x in ins] if v is None else _directions(v, ins, "jet: v")]
    lines += [_directions(one, ins, f"jet: bends[{i}]") for i, one in enumerate(bends)]
    for k, line in enumerate(lines):
        for coefficients, direction in zip(given, line, strict=True):
            coefficients[k] = direction if k == 0 else direction / math.factorial(k + 1)
    found = forward_mode.push_series(outs, ins, given, order)
    derivatives: list[Any] = []
    for k in range(1, order + 1):
        row = [_derivative(c[k - 1], k, y) for c, y in zip(found, outs, strict=True)]
        derivatives.append(row[0] if isinstance(out, Tensor) else row)
    return out, derivatives


def _derivative(coefficient: Tensor | None, k: int, like: Tensor) -> Tensor:
    if coefficient is None:
        return zeros_like(like)
    return coefficient if k == 1 else coefficient * float(math.factorial(k))


def _directions(given: Any, likes: Sequence[Tensor], what: str) -> list[Tensor]:
    listed = as_tensors(given, what)
    if len(listed) != len(likes):
        raise ValueError(f"{what} has {len(listed)} tensors, but {len(likes)} are needed")
    for one, like in zip(listed, likes, strict=True):
        check_like(one, like, what)
    return listed
