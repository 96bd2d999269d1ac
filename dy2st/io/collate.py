"""Batches from samples: each field of the samples becomes one array with a new first axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.functions.core.operands import constant
from dy2st.runtime.eager.device import Place
from dy2st.runtime.eager.tensor import Tensor


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """Return samples as one batch: arrays, tensors and numbers are stacked, in dicts, lists and tuples field by field.

    Strings stay a list. Raises TypeError for anything else, ValueError for samples of different structure.
    """
    first = batch[0]
    if isinstance(first, (np.ndarray, np.generic, Tensor, int, float)):
        arrays = [x.numpy() if isinstance(x, Tensor) else np.asarray(x) for x in batch]
        try:
            return np.stack(arrays)
        except ValueError:
            shapes = " and ".join(sorted({str(list(a.shape)) for a in arrays}))
            raise ValueError(f"samples of shapes {shapes} do not make a batch: give a collate_fn that pads") from None
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        counts = {len(sample) for sample in batch}
        if len(counts) != 1:
            raise ValueError(f"samples of {' and '.join(map(str, sorted(counts)))} fields do not make a batch")
        return [default_collate_fn(field) for field in zip(*batch, strict=True)]
    raise TypeError(f"a sample holds a {type(first).__name__}: give a collate_fn that makes batches of it")


def default_convert_fn(sample: Any) -> Any:
    """Return a sample as it is: what has no batch."""
    return sample


def to_tensors(x: Any, place: Place | None = None) -> Any:
    """Return the same structure with tensors in place of arrays."""
    if isinstance(x, np.ndarray):
        return constant(x, place) if x.dtype.kind in "biufc" else x
    if isinstance(x, Mapping):
        return {key: to_tensors(value, place) for key, value in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(to_tensors(item, place) for item in x))
    if isinstance(x, (list, tuple)):
        return type(x)(to_tensors(item, place) for item in x)
    return x
