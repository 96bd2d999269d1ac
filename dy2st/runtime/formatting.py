"""How a tensor prints: as Paddle prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dy2st.ir.program import Value

if TYPE_CHECKING:
    from dy2st.runtime.tensor import Tensor

OPTIONS: dict[str, int] = {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 80}


def format_tensor(tensor: Tensor) -> str:
    """Return `Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True, [1., 2.])` over several lines."""
    payload = tensor._payload
    if isinstance(payload, Value):
        return f"Tensor(symbolic, {payload.type}, stop_gradient={tensor.stop_gradient})"
    head = (
        f"{type(tensor).__name__}(shape={tensor.shape}, dtype={tensor.dtype.name}, place={tensor.place}, "
        f"stop_gradient={tensor.stop_gradient},"
    )
    return f"{head}\n       {format_elements(tensor.numpy())})"


def format_elements(array: np.ndarray) -> str:
    """Return the elements as Paddle aligns them: seven spaces before every further row."""
    text = np.array2string(
        array,
        separator=", ",
        precision=OPTIONS["precision"],
        threshold=OPTIONS["threshold"],
        edgeitems=OPTIONS["edgeitems"],
        max_line_width=OPTIONS["linewidth"],
        floatmode="maxprec_equal" if array.size > 1 and not _whole(array) else "maxprec",
    )
    return text.replace("\n", "\n       ")


def _whole(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.all(np.isfinite(array)) and np.all(array == np.trunc(array)))
