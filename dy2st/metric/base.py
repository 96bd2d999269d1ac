"""What a metric is: counts that batches are added to, and a number made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.eager.tracked_settings import Settable


class Metric(Settable):
    """Base of the metrics: `reset`, `update` with a batch, `accumulate` to the value so far.

    `compute(predictions, labels)` is what may run beside the model; `update` takes what it returns.
    """

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it starts anew: define `reset`")

    def update(self, *args: Any, **keywords: Any) -> Any:
        """Add a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it takes a batch: define `update`")

    def accumulate(self) -> Any:
        """Return the value over all batches since `reset`."""
        raise NotImplementedError(f"{type(self).__name__} does not say its value: define `accumulate`")

    def name(self) -> Any:
        """Return the name of the metric, or the names of its values."""
        raise NotImplementedError(f"{type(self).__name__} has no name: define `name`")

    def compute(self, *args: Any, **keywords: Any) -> Any:
        """Return what `update` takes, by default the arguments themselves."""
        return args


def as_array(x: Any, what: str) -> np.ndarray:
    """Return a tensor, array or list as an array; TypeError for anything else."""
    if isinstance(x, Tensor):
        return x.numpy()
    if isinstance(x, (np.ndarray, np.generic, list, tuple, int, float)):
        return np.asarray(x)
    raise TypeError(f"{what} must be a Tensor or an array, not {type(x).__name__}")
