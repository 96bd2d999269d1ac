"""`host_step`: a Python function on arrays as an ordered step of Programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import op
from dy2st.ir.types import TensorType
from dy2st.kinds import is_sequence
from dy2st.ops.control.host_call import Host
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_HOST_CALL = op("host_call")


def host_step(func: Callable[..., Any] | None = None, *, like: Any) -> Any:
    """Make calls of a function on NumPy arrays steps of a Program, also with `full_graph=True`; return it.

    It is called with tensors, gets their arrays each time the Program runs, in the order of its effects, and what it
    returns become tensors. No gradient flows through it, and a Program with such a step is not saved.

    Parameters
    ----------
    func
        The function; with None a decorator is returned.
    like
        What it returns: an InputSpec (of dtype and shape, None or -1 where any extent will do), or a list of them.

    Raises
    ------
    TypeError
        An argument of a call is no tensor, or `func` no function.
    ValueError
        When it runs: what was returned is not as declared.

    >>> import dy2st as paddle
    >>> @paddle.jit.host_step(like=paddle.static.InputSpec([None], "int64"))
    ... def order(x):
    ...     return x.argsort()
    >>> @paddle.jit.to_static(full_graph=True)
    ... def smallest(x):
    ...     return x[order(x)[0]]
    >>> float(smallest(paddle.to_tensor([3.0, 1.0, 2.0])))
    1.0
    """
    if func is None:
        return functools.partial(host_step, like=like)
    if not callable(func):
        raise TypeError(f"host_step takes a function, not {type(func).__name__}")
    listed: list[Any] = list(like) if is_sequence(like) else [like]
    types = tuple(TensorType(dtypes.dtype(spec.dtype), tuple(map(_extent, spec.shape))) for spec in listed)
    host = Host(func)

    @functools.wraps(func)
    def step(*tensors: Any) -> Any:
        if not all(isinstance(t, Tensor) for t in tensors):
            raise TypeError(f"{host!r}, a host step, takes tensors alone")
        made = apply(_HOST_CALL, *tensors, host=host, types=types)
        results = [t.detach() for t in (made if is_sequence(made) else (made,))]
        return results if is_sequence(like) else results[0]

    step.__dy2st_not_to_static__ = True  # type: ignore[attr-defined] (it is called as it is, also in a trace)
    return step


def _extent(extent: Any) -> Any:
    return extent if isinstance(extent, int) and extent >= 0 else None
