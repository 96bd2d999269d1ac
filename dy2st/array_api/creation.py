"""New tensors, with the arguments of the array API standard, which say the device and whether to copy."""

from __future__ import annotations

from typing import Any

from dy2st.functions.aliases import asarray as _asarray
from dy2st.functions.core.assigning import clone
from dy2st.functions.device_transfer import to
from dy2st.functions.shape import creation, diagonals, from_data
from dy2st.functions.shape.broadcasting import meshgrid as _meshgrid
from dy2st.runtime.eager.shape_list import as_tuples
from dy2st.runtime.eager.tensor import Tensor

as_tuples()  # the standard has shapes that are tuples


def _on(device: Any, made: Tensor) -> Tensor:
    return made if device is None else to(made, device=device)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return numbers, nested lists of them, or an array as a tensor."""
    if isinstance(obj, Tensor) and copy:
        obj = clone(obj)
    return _on(device, _asarray(obj, dtype=dtype, copy=copy))


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:  # fmt: skip
    """Return start, start + step, ... up to `stop`, which is left out."""
    return _on(device, creation.arange(start, stop, step, dtype))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Return `num` numbers at equal distances, with `stop` or without it."""
    if endpoint:
        return _on(device, creation.linspace(start, stop, num, dtype))
    return _on(device, creation.linspace(start, stop, num + 1, dtype)[:num])


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:  # fmt: skip
    """Return a matrix with ones on its k-th diagonal."""
    columns = n_rows if n_cols is None else n_cols
    k = max(-n_rows, min(k, columns))
    ones = creation.ones([n_rows, columns], dtype)
    return _on(device, diagonals.tril(diagonals.triu(ones, k), k))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor of one value; without a dtype, of that of the value."""
    made = creation.full(_extents(shape), fill_value, dtype or _asarray(fill_value).dtype)
    return _on(device, made)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones."""
    return _on(device, creation.ones(_extents(shape), dtype))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros."""
    return _on(device, creation.zeros(_extents(shape), dtype))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor whose values are not said."""
    return _on(device, creation.empty(_extents(shape), dtype))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return one value in the shape of x."""
    return _on(device, creation.full_like(x, fill_value, dtype))


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ones in the shape of x."""
    return _on(device, creation.ones_like(x, dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return zeros in the shape of x."""
    return _on(device, creation.zeros_like(x, dtype))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor in the shape of x whose values are not said."""
    return _on(device, creation.empty_like(x, dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return what another library shares by DLPack."""
    return _on(device, from_data.from_dlpack(x, copy))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of the points of a grid; "xy" has the first along the second axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    if indexing == "ij" or len(arrays) < 2:
        return _meshgrid(*arrays)
    second, first, *rest = _meshgrid(arrays[1], arrays[0], *arrays[2:])
    return [first, second, *rest]


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Return x with zeros above the k-th diagonal."""
    return diagonals.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Return x with zeros below the k-th diagonal."""
    return diagonals.triu(x, k)


def _extents(shape: Any) -> list[int]:
    return [shape] if isinstance(shape, int) else list(shape)
