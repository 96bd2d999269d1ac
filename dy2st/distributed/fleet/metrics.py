"""`fleet.metrics`: metrics of all processes together, from what each has counted.

>>> from dy2st.distributed.fleet import metrics
>>> float(metrics.acc([3.0], [4.0])), float(metrics.rmse([8.0], [2.0]))
(0.75, 2.0)
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dy2st.distributed.collective import ReduceOp, all_reduce
from dy2st.functions.core.operands import constant
from dy2st.missing import missing_in
from dy2st.runtime.eager.tensor import Tensor

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)

__all__ = ["acc", "auc", "mae", "max", "min", "mse", "rmse", "sum"]


def _reduced(input: Any, op: int) -> np.ndarray:
    array = input.numpy() if isinstance(input, Tensor) else np.asarray(input)
    found = constant(np.array(array, "float64" if array.dtype.kind == "f" else "int64"), None)
    all_reduce(found, op)
    return found.numpy()


def sum(input: Any, scope: Any = None, util: Any = None) -> np.ndarray:
    """Return the sum over all processes, element by element."""
    return _reduced(input, ReduceOp.SUM)


def max(input: Any, scope: Any = None, util: Any = None) -> np.ndarray:
    """Return the largest over all processes, element by element."""
    return _reduced(input, ReduceOp.MAX)


def min(input: Any, scope: Any = None, util: Any = None) -> np.ndarray:
    """Return the smallest over all processes, element by element."""
    return _reduced(input, ReduceOp.MIN)


def acc(correct: Any, total: Any, scope: Any = None, util: Any = None) -> float:
    """Return how many of all samples are right: counts of each process."""
    return _ratio(correct, total)


def mae(abserr: Any, total_ins_num: Any, scope: Any = None, util: Any = None) -> float:
    """Return the mean absolute error: sums of absolute errors, and numbers of samples."""
    return _ratio(abserr, total_ins_num)


def mse(sqrerr: Any, total_ins_num: Any, scope: Any = None, util: Any = None) -> float:
    """Return the mean squared error: sums of squared errors, and numbers of samples."""
    return _ratio(sqrerr, total_ins_num)


def rmse(sqrerr: Any, total_ins_num: Any, scope: Any = None, util: Any = None) -> float:
    """Return the root of the mean squared error."""
    return _ratio(sqrerr, total_ins_num) ** 0.5


def auc(stat_pos: Any, stat_neg: Any, scope: Any = None, util: Any = None) -> float:
    """Return the area under the ROC curve of all samples: numbers of right and wrong ones by threshold, ascending.

    0.5 where all samples are of one kind.
    """
    right, wrong = (sum(stat).reshape(-1).astype("float64") for stat in (stat_pos, stat_neg))
    rights, wrongs = (np.concatenate([[0.0], np.cumsum(x[::-1])]) for x in (right, wrong))
    if not rights[-1] or not wrongs[-1]:
        return 0.5
    area = ((wrongs[1:] - wrongs[:-1]) * (rights[1:] + rights[:-1]) / 2).sum()
    return float(area / (rights[-1] * wrongs[-1]))


def _ratio(part: Any, whole: Any) -> float:
    total = builtins.float(sum(whole).sum())
    if not total:
        raise ValueError("a metric of no samples")
    return builtins.float(sum(part).sum()) / total
