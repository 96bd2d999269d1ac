"""`py_func`: a Python function on arrays as part of a hand-built Program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import op
from dy2st.ir.types import TensorType
from dy2st.ops.control.host_call import Host
from dy2st.runtime.eager import inplace
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.static.gradients import recorder_now


def py_func(
    func: Callable[..., Any], x: Any, out: Any, backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:  # fmt: skip
    """Call func(*x) on NumPy arrays each time the Program runs; return its results as tensors like `out`.

    Parameters
    ----------
    x
        A tensor or a list of them.
    out
        What the function returns: a variable or InputSpec for each array, of its dtype and shape (None or -1 where any
        extent will do). Variables get the results and are returned.
    backward_func
        Takes all of `x`, all results, and their cotangents, as arrays; returns a cotangent for each of `x`. Without it
        no gradient flows.
    skip_vars_in_backward_input
        Those of `x` and `out` that backward_func does not get.

    Raises
    ------
    RuntimeError
        Outside of static mode.
    """
    trace = recorder_now("paddle.static.py_func")
    for what, given in (("func", func), ("backward_func", backward_func)):
        if not callable(given) and (given is not None or what == "func"):
            raise TypeError(f"py_func: {what} must be a function, not {type(given).__name__}")
    inputs, outs = _listed(x), _listed(out)
    if not all(isinstance(t, Tensor) for t in inputs) or not all(isinstance(t, (Tensor, InputSpec)) for t in outs):
        raise TypeError("py_func: x must be tensors, and out variables or InputSpecs")
    types = tuple(TensorType(dtypes.dtype(t.dtype), tuple(_extent(e) for e in t.shape)) for t in outs)
    skipped = {id(t) for t in _listed(skip_vars_in_backward_input)}
    kept = tuple(i for i, t in enumerate((*inputs, *outs)) if id(t) not in skipped)
    host = Host(func, backward_func, kept)
    made = trace.apply(op("host_call"), inputs, {"host": host, "types": types})
    results = list(made) if isinstance(made, tuple) else [made]
    if backward_func is None:
        results = [t.detach() for t in results]
    found = [inplace.write(o, t) if isinstance(o, Tensor) else t for o, t in zip(outs, results, strict=True)]
    return found if isinstance(out, (list, tuple)) else found[0] if found else None


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [] if x is None else [x]


def _extent(extent: Any) -> Any:
    return extent if isinstance(extent, int) and extent >= 0 else None
