"""Settings and questions that belong to no tensor: default dtype, printing, modes, limits of dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import formatting
from dy2st.dtypes import DType, bfloat16
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import default_dtype
from dy2st.ir.context import current
from dy2st.runtime import memory_budget


def set_default_dtype(d: Any) -> None:
    """Make `d` (float16, float32 or float64) the dtype of floats for which none is given.

    >>> import dy2st as paddle
    >>> paddle.set_default_dtype("float64")
    >>> paddle.zeros([1]).dtype
    paddle.float64
    >>> paddle.set_default_dtype("float32")
    """
    wanted = as_dtype(d)
    if not wanted.is_floating:
        raise TypeError(f"the default dtype must be a float dtype, not {wanted.name}")
    context = current()
    if context.trace is not None and context.trace.of_function:
        context.trace.write_attribute(context.process, "default_dtype", wanted)
    else:
        context.process.default_dtype = wanted


def get_default_dtype() -> str:
    """Return the name of the dtype of floats for which none is given."""
    return default_dtype().name


def in_dynamic_mode() -> bool:
    """Return whether operations run at once (also inside a trace of to_static); False under `enable_static`."""
    return current().static is None


def in_dynamic_or_pir_mode() -> bool:
    """Say the same as `in_dynamic_mode`, or that a Program is being built: always true here."""
    return True


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
    sci_mode: bool | None = None, linewidth: int | None = None,
) -> None:  # fmt: skip
    """Set how tensors print: digits, how many elements are shown whole, how many at the edges, width of a line.

    `sci_mode` True writes every float with an exponent, False none; without it the numbers decide.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth,
             "sci_mode": sci_mode}  # fmt: skip
    formatting.OPTIONS.update({k: v for k, v in given.items() if v is not None})


def iinfo(dtype: Any) -> np.iinfo[Any]:
    """Return the limits of an integer dtype: bits, min, max."""
    return np.iinfo(_checked(dtype, "iinfo", "iu").numpy)


def finfo(dtype: Any) -> np.finfo[Any]:
    """Return the limits of a float dtype: bits, eps, min, max, tiny."""
    found = _checked(dtype, "finfo", "fc")
    if found is bfloat16:
        from ml_dtypes import finfo as limits

        return limits(found.numpy)  # type: ignore[return-value]
    return np.finfo(found.numpy)


def _checked(dtype: Any, name: str, kinds: str) -> DType:
    found = as_dtype(dtype)
    if found.kind not in kinds:
        raise TypeError(f"{name} does not know the dtype {found.name}")
    return found


def set_flags(flags: dict[str, Any]) -> None:
    """Remember flags by name; none of them changes what is computed.

    `FLAGS_cpu_memory_limit_mb` is how many MiB a run of a Program holds at most, beside its inputs: MemoryError then.
    """
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags() needs a dict, not {type(flags).__name__}")
    if memory_budget.FLAG in flags:
        memory_budget.set_mebibytes(flags[memory_budget.FLAG])
    process = current().process
    process.flags = {**(process.flags or {}), **flags}


def get_flags(flags: Any) -> dict[str, Any]:
    """Return remembered flags, by one name or a list of names; ValueError for one that was never set."""
    known = current().process.flags or {}
    names = [flags] if isinstance(flags, str) else list(flags)
    for name in names:
        if name not in known:
            raise ValueError(f"the flag {name!r} was never set")
    return {name: known[name] for name in names}
