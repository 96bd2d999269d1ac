"""`Jacobian` and `Hessian` of functions, computed by index, in eager and in static mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.autograd.lazy_matrix import LazyMatrix
from dy2st.autograd.rules import as_tensors, callable_here, fresh, outputs_of
from dy2st.ir.context import replaced
from dy2st.runtime.eager.tensor import Tensor


class Jacobian(LazyMatrix):
    """The Jacobian of a function; index it to compute rows: `J[0, :]`, `J[:, 0:3, :]`, `J[:]`.

    Parameters
    ----------
    func
        Takes as many tensors as `xs` has, returns a tensor or a sequence of them.
    xs
        A tensor or a sequence of tensors.
    is_batched
        Whether the first axis of all tensors is a batch, whose items do not depend on each other.

    The matrix is [M, N], batched [B, M, N], for outputs and inputs flattened and put one after the other.

    >>> import dy2st as paddle
    >>> J = paddle.incubate.autograd.Jacobian(lambda x: x * x, paddle.to_tensor([1.0, 2.0]))
    >>> J.shape, J[1, :].tolist()
    ([2, 2], [0.0, 4.0])
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False):
        ins = fresh(as_tensors(xs, "Jacobian: xs"))
        with replaced(grad=True):
            super().__init__(outputs_of(callable_here(func)(*ins), "Jacobian"), ins, is_batched)


class Hessian(LazyMatrix):
    """The Hessian of a function with one output; index it to compute rows.

    Parameters
    ----------
    func
        Takes as many tensors as `xs` has, returns a tensor of one element ([B, 1] or [B] where batched).
    xs
        A tensor or a sequence of tensors.
    is_batched
        Whether the first axis of all tensors is a batch, whose items do not depend on each other.

    The matrix is [N, N], batched [B, N, N].

    >>> import dy2st as paddle
    >>> H = paddle.incubate.autograd.Hessian(lambda x: (x * x * x).sum(), paddle.to_tensor([1.0, 2.0]))
    >>> H[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False):
        def gradient(*ins: Tensor) -> Tensor:
            rows = Jacobian(func, list(ins), is_batched)
            if rows._height != 1:
                which = "one output for each item" if is_batched else "one output"
                raise ValueError(f"the Hessian is of a function with {which}, not {rows._height}")
            return rows[:, 0, :] if is_batched else rows[0, :]

        ins = fresh(as_tensors(xs, "Hessian: xs"))
        with replaced(grad=True):
            super().__init__([gradient(*ins)], ins, is_batched)
