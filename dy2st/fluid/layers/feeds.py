"""`fluid.layers.data`: an input of a hand-built Program whose first axis, the batch, need not be written."""

from __future__ import annotations

from typing import Any

from dy2st.runtime.eager.tensor import Tensor
from dy2st.static import data as static_data


def data(
    name: str, shape: Any, append_batch_size: bool = True, dtype: Any = "float32", lod_level: int = 0,
    type: Any = None, stop_gradient: bool = True,
) -> Tensor:  # fmt: skip
    """Return the input `name` of the Program that is being built.

    A batch axis of any extent is put first, unless `append_batch_size` is False or an extent is -1 or None already.
    """
    if lod_level:
        raise NotImplementedError("fluid.layers.data: lod_level above 0 is not supported; pad sequences to one length")
    extents = [-1 if extent is None else extent for extent in shape]
    if append_batch_size and -1 not in extents:
        extents = [-1, *extents]
    made = static_data(name, extents, dtype)
    made.stop_gradient = stop_gradient
    return made
