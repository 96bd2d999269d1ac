"""Modes of 1.x: `guard` and its relatives run operations at once; `to_variable` makes tensors of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from dy2st.functions.core.defaults import in_dynamic_mode
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import current, replaced
from dy2st.runtime.eager.device import Place, set_device
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.program import disable_static, enable_static


def enabled() -> bool:
    """Return whether operations run at once."""
    return in_dynamic_mode()


in_dygraph_mode = enabled


def enable_dygraph(place: Place | None = None) -> None:
    """Run operations at once from now on, new tensors on `place`."""
    disable_static()
    if place is not None:
        set_device(place)


def disable_dygraph() -> None:
    """Build Programs by hand from now on."""
    enable_static()


enable_imperative, disable_imperative = enable_dygraph, disable_dygraph


@contextmanager
def guard(place: Place | None = None) -> Iterator[None]:
    """Run operations at once for the length of a `with`, new tensors on `place`.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> with fluid.dygraph.guard():
    ...     fluid.layers.elementwise_add(np.array([1, 2]), np.array([3, 4])).tolist()
    [4, 6]
    """
    process = current().process
    before = process.place
    if place is not None:
        set_device(place)
    try:
        # inside of a to_static trace, which is eager mode to the user, the trace goes on
        with nullcontext() if current().static is None else replaced(static=None, trace=None):
            yield
    finally:
        process.place = before


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None, dtype: Any = None) -> Tensor:
    """Return the tensor of an array, of the array's dtype; a tensor is returned as it is.

    >>> import numpy as np, dy2st.fluid as fluid
    >>> fluid.dygraph.to_variable(np.array([1.5], "float32")).numpy()
    array([1.5], dtype=float32)
    """
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (np.ndarray, list, tuple, int, float, bool, np.generic)):
        raise TypeError(f"to_variable takes an array, a list or a number, not {type(value).__name__}")
    made = to_tensor(value, dtype)
    if name is not None:
        made.name = name
    return made


__all__ = [
    "disable_dygraph",
    "disable_imperative",
    "enable_dygraph",
    "enable_imperative",
    "enabled",
    "guard",
    "in_dygraph_mode",
    "no_grad",
    "to_variable",
]
