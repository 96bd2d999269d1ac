"""Jacobians whose rows are computed when they are asked for: by index, each once.

A row is one reverse pass; rows that are asked for together are pulled back together. The matrix is [M, N] for M outputs
and N inputs, each flattened and put one after the other, or [B, M, N] where the first axis is a batch whose items do
not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.autograd.rules import dense, pull
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import eye, zeros
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.manipulation import moveaxis, reshape
from dy2st.ir.context import current
from dy2st.runtime.autograd_engine.batched_backward import NeedsRows, pull_lanes
from dy2st.runtime.eager.tensor import Tensor

TOGETHER, ELEMENTS = 256, 2**24
"""So many rows are computed in one pass at most, and no more than have so many elements."""


class LazyMatrix:
    """The Jacobian of tensors `ys` at tensors `xs`; index it to compute what the index needs.

    `dropped` says for the axes of rows and of columns whether they are left out (their one index is taken).
    """

    def __init__(
        self, ys: Sequence[Tensor], xs: Sequence[Tensor], batched: bool, dropped: tuple[bool, bool] = (False, False)
    ):
        self._xs, self._batched, self._dropped = list(xs), batched, dropped
        for t, what in ((ys, "an output"), (xs, "an input")):
            for one in t:
                _check(one, batched, what)
        self._flat = _joined(list(ys), batched)
        self._batch = self._flat.shape[0] if batched else None
        self._height = _count(self._flat, batched)
        self._width = sum(_count(x, batched) for x in xs)
        self._rows: dict[int, Tensor] = {}

    __array_priority__ = 100.0
    __hash__ = object.__hash__  # as of a tensor, though `==` compares elements

    @property
    def shape(self) -> list[Any]:
        """The extents of the whole matrix."""
        batch = [self._batch] if self._batched else []
        matrix = [e for e, drop in zip((self._height, self._width), self._dropped, strict=True) if not drop]
        return [*batch, *matrix]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> Tensor:
        """Return the part of the matrix that a NumPy index of ints and slices names."""
        batch, row, column = self._parts(index)
        axis, rest = 1 if self._batched else 0, list[Any]()
        if isinstance(row, slice) and not isinstance(self._height, int):
            every = self._pulled_together(eye(self._height, dtype=self._flat.dtype))
            rows, rest = moveaxis(every, 0, axis), [row, column]
        elif isinstance(row, slice):
            numbers = range(*row.indices(self._height))
            if not numbers:
                return self._row(0).unsqueeze(axis)[(*([slice(None)] if self._batched else []), slice(0, 0))]
            rows = stack(self._listed(numbers), axis=axis)
            rest = [slice(None), column]
        else:
            rows, rest = self._row(self._number(row)), [column]
        if self._batched:
            rest = [batch, *rest]
        return rows if all(r == slice(None) for r in rest) else rows[tuple(rest)]

    def numpy(self) -> Any:
        """Return the whole matrix as a NumPy array."""
        return self[...].numpy()

    def __len__(self) -> int:
        return len(self[...])

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        return self[...].__array__(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        """Return what the whole matrix, a tensor, has of this name."""
        if name.startswith("_"):
            raise AttributeError(f"a matrix of derivatives has no {name!r}")
        return getattr(self[...], name)

    def _parts(self, index: Any) -> tuple[Any, Any, Any]:
        """Return an index as (batch, row, column)."""
        given = list(index) if isinstance(index, tuple) else [index]
        axes = self.ndim
        if sum(one is Ellipsis for one in given) > 1:
            raise IndexError("an index can have one ellipsis only")
        if Ellipsis in [one for one in given if one is Ellipsis]:
            at = next(i for i, one in enumerate(given) if one is Ellipsis)
            given[at : at + 1] = [slice(None)] * (axes - len(given) + 1)
        if len(given) > axes:
            raise IndexError(f"too many indices: the matrix has {axes} axes, not {len(given)}")
        for one in given:
            if not isinstance(one, slice) and (isinstance(one, bool) or not hasattr(one, "__index__")):
                raise TypeError(f"a matrix of derivatives is indexed by ints and slices, not {type(one).__name__}")
        rest = iter([*given, *[slice(None)] * (axes - len(given))])
        batch = next(rest) if self._batched else slice(None)
        row = 0 if self._dropped[0] else next(rest)
        return batch, row, 0 if self._dropped[1] else next(rest)

    def _number(self, row: Any) -> int:
        number = int(row)
        if not isinstance(self._height, int):
            return number
        if not -self._height <= number < self._height:
            raise IndexError(f"row {number} is outside of a matrix with {self._height} rows")
        return number % self._height

    def _listed(self, numbers: Sequence[int]) -> list[Tensor]:
        """Return rows; those that are not there yet are pulled back together, where that can be done."""
        missing = [i for i in numbers if i not in self._rows]
        found: dict[int, Tensor] = {}
        width = self._width if isinstance(self._width, int) else 1
        together = max(1, min(TOGETHER, ELEMENTS // max(1, width, self._height)))
        for start in range(0, len(missing), together):
            part = missing[start : start + together]
            if len(part) < 2:
                break
            try:
                chosen = np.zeros((len(part), self._height), self._flat.dtype.numpy)
                chosen[range(len(part)), part] = 1
                whole = self._pulled_together(to_tensor(chosen))
            except NeedsRows:
                break
            for k, i in enumerate(part):
                found[i] = whole[k]
                self._keep(i, whole[k])
        return [found[i] if i in found else self._row(i) for i in numbers]

    def _pulled_together(self, seeds: Tensor) -> Tensor:
        """Return the rows [rows, N] or [rows, B, N] of cotangents [rows, M], from one reverse pass.

        Raises NeedsRows where that cannot be done.
        """
        count = seeds.shape[0]
        if self._batched:
            seeds = seeds.unsqueeze(1).expand([count, *self._flat.shape])
        cts = pull_lanes(self._flat, self._xs, seeds)
        parts: list[Tensor] = []
        for ct, x in zip(cts, self._xs, strict=True):
            shape = [count, *([x.shape[0]] if self._batched else []), _count(x, self._batched)]
            parts.append(zeros(shape, x.dtype) if ct is None else reshape(ct, shape))
        return parts[0] if len(parts) == 1 else concat(parts, axis=-1)

    def _keep(self, i: int, row: Tensor) -> None:
        trace = current().trace
        if trace is None or trace.builder is trace.root:  # a row made in a branch is of no use outside of it
            self._rows[i] = row

    def _row(self, i: int) -> Tensor:
        """Return one row, [N] or [B, N]."""
        found = self._rows.get(i)
        if found is None:
            out = self._flat[:, i] if self._batched else self._flat[i]
            cts = pull([out], self._xs, [None])
            found = _joined([dense(ct, x) for ct, x in zip(cts, self._xs, strict=True)], self._batched)
            self._keep(i, found)
        return found


def _operator(name: str) -> Any:
    """Make an operator that computes the whole matrix and does what the operator of a tensor does."""

    def operate(self: LazyMatrix, *others: Any) -> Any:
        whole = [other[...] if isinstance(other, LazyMatrix) else other for other in others]
        return getattr(self[...], name)(*whole)

    operate.__name__ = operate.__qualname__ = name
    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _form in (f"__{_name}__", f"__r{_name}__"):
        setattr(LazyMatrix, _form, _operator(_form))
for _name in ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(LazyMatrix, f"__{_name}__", _operator(f"__{_name}__"))


def _joined(tensors: list[Tensor], batched: bool) -> Tensor:
    """Return tensors flattened (but for the batch) and put one after the other."""
    flat = [reshape(t, [t.shape[0] if batched else -1, _count(t, True)] if batched else [-1]) for t in tensors]
    return flat[0] if len(flat) == 1 else concat(flat, axis=-1)


def _count(t: Tensor, batched: bool) -> Any:
    return math.prod(t.shape[1 if batched else 0 :])


def _check(t: Tensor, batched: bool, what: str) -> None:
    if batched and t.ndim == 0:
        raise ValueError(f"a batched Jacobian needs tensors whose first axis is the batch, but {what} is 0-D")
