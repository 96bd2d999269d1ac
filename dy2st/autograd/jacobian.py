"""`jacobian` and `hessian` of tensors that were computed already."""

from __future__ import annotations

from typing import Any

from dy2st.autograd.lazy_matrix import LazyMatrix
from dy2st.autograd.rules import as_tensors
from dy2st.runtime.eager.tensor import Tensor


def jacobian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """Return the Jacobian of `ys` at `xs`, computed where it is indexed.

    Parameters
    ----------
    ys, xs
        0-D or 1-D tensors, with `batch_axis=0` 1-D or 2-D ones; or sequences of them.
    batch_axis
        0 where the first axis is a batch whose items do not depend on each other.

    Returns
    -------
    A matrix [M, N], batched [B, M, N]; the axes of 0-D tensors are left out. For sequences a tuple of matrices, for two
    sequences a tuple (one item for each of `ys`) of tuples.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.jacobian(x * x, x)[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    batched = _batched(batch_axis)
    outs = [ys[...]] if isinstance(ys, LazyMatrix) else as_tensors(ys, "jacobian: ys")
    ins = as_tensors(xs, "jacobian: xs")
    for t in (*outs, *ins):
        if t.ndim not in ((1, 2) if batched else (0, 1)):
            raise ValueError(
                f"jacobian: tensors must have {'1 or 2' if batched else '0 or 1'} axes, not {t.ndim}; reshape them"
            )
    drop = 2 if batched else 1
    rows = tuple(tuple(LazyMatrix([y], [x], batched, (y.ndim < drop, x.ndim < drop)) for x in ins) for y in outs)
    single_x = isinstance(xs, Tensor)
    found = tuple(row[0] if single_x else row for row in rows)
    return found[0] if isinstance(ys, (Tensor, LazyMatrix)) else found


def hessian(ys: Tensor, xs: Any, batch_axis: int | None = None) -> Any:
    """Return the Hessian of `ys` (one element, or one for each item of the batch) at `xs`, computed where indexed.

    Returns
    -------
    A matrix [N, N], batched [B, N, N]; for a sequence `xs` a tuple of tuples of matrices.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.autograd.hessian((x * x * x).sum(), x)[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    if not isinstance(ys, Tensor):
        raise TypeError(f"hessian: ys must be a Tensor, not {type(ys).__name__}")
    batched = _batched(batch_axis)
    width = ys.shape[1:] if batched else ys.shape
    if any(e != 1 for e in width):
        raise ValueError(f"hessian: ys must have one element{' for each item' if batched else ''}, not {ys.shape}")
    flat = ys.reshape([ys.shape[0]] if batched else [])
    first = jacobian(flat, xs, batch_axis)
    if isinstance(xs, Tensor):
        return jacobian(first, xs, batch_axis)
    return tuple(jacobian(row, list(xs), batch_axis) for row in first)


def _batched(batch_axis: int | None) -> bool:
    if batch_axis not in (None, 0):
        raise ValueError(f"batch_axis must be None or 0, not {batch_axis!r}")
    return batch_axis == 0
