"""`static.data`, and variables that the scope keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import default_dtype
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.input_spec import InputSpec as InputSpec
from dy2st.static.gradients import recorder_now
from dy2st.static.variable import Variable


def data(name: str, shape: Sequence[int | None], dtype: Any = None, lod_level: int = 0) -> Variable:
    """Declare an input of the Program, to be fed by name; extents of None or -1 are whatever is fed.

    Parameters
    ----------
    name
        The name for `feed`. Declaring it again in the same way gives the same variable.
    shape
        Extents.
    dtype
        Default: the default dtype, float32.

    Raises
    ------
    RuntimeError
        Outside of static mode.
    ValueError
        Where the Program has something else under this name.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"data needs a name, a string, not {name!r}")
    if lod_level:
        raise ValueError(f"data {name!r}: lod_level={lod_level}: there are no tensors of sequences here, pad them")
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"data {name!r}: shape must be a list or tuple of extents, not {type(shape).__name__}")
    kind = default_dtype() if dtype is None else dtypes.dtype(dtype)
    return recorder_now("paddle.static.data").feed(name, shape, kind)


def create_global_var(
    shape: Sequence[int], value: float, dtype: Any, persistable: bool = False, force_cpu: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Add a variable that the startup program fills with `value` and that the scope keeps between runs."""
    recorder = recorder_now("paddle.static.create_global_var")
    return recorder.create_state(name or unique_name.generate("global_var"), shape, dtypes.dtype(dtype), value)
