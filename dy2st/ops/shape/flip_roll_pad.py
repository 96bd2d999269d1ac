"""Elements in other places: `flip`, `roll`, `pad`; triangles and diagonals: `tril`, `triu`, `diagonal`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.ops.core.transpose_helpers import in_shape_of
from dy2st.shapes import Extent

Tangents = Sequence[Value | None]


class Flip(Op):
    """The elements in reverse order along `axes`."""

    name = "flip"
    is_data_movement = True
    attributes = ("axes",)
    linear_in = (0,)

    def infer(self, x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
        return x

    def eval(self, xp: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
        return xp.flip(x, axes)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, axes: tuple[int, ...]) -> Tangents:  # fmt: skip
        return [b.flip(cts[0], axes=axes)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)),), {"axes": (0, 2)})


class Roll(Op):
    """The elements moved by `shifts` along `axes`, around the end; a shift of None is a scalar operand."""

    name = "roll"
    is_data_movement = True
    attributes = ("shifts", "axes")
    linear_in = (0,)
    fresh = True

    def infer(self, x: TensorType, *dims: ScalarType, shifts: tuple[int | None, ...],
              axes: tuple[int, ...]) -> TensorType:  # fmt: skip
        if len(shifts) != len(axes):
            raise ValueError(f"roll needs as many shifts as axes, not {len(shifts)} and {len(axes)}")
        return x

    def eval(self, xp: Any, x: Any, *dims: int, shifts: tuple[int | None, ...], axes: tuple[int, ...]) -> Any:
        return xp.roll(x, fill(shifts, dims), axes)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, shifts: tuple[int | None, ...], axes: tuple[int, ...]) -> Tangents:  # fmt: skip
        back = tuple(None if s is None else -s for s in shifts)
        dims = [b.scalar_neg(d) for d in operands[1:]]
        return [b.roll(cts[0], *dims, shifts=back, axes=axes), *[None] * len(dims)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(3, 4)), -3), {"shifts": (1, None), "axes": (0, 1)})
        yield Sample((rng.normal(size=(0, 4)),), {"shifts": (2,), "axes": (0,)})


class Pad(Op):
    """The operand with a 0-D value around it: `low[i]` before and `high[i]` after axis i.

    An item of None is given by a scalar operand; those of `low` come first.
    """

    name = "pad"
    attributes = ("low", "high")
    linear_together = (0, 1)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, value: TensorType, *dims: ScalarType, low: tuple[int | None, ...],
              high: tuple[int | None, ...]) -> TensorType:  # fmt: skip
        _refuse_pad(x.rank, x.dtype.name, value.dtype.name, low, high)
        widths = fill_extents((*low, *high), dims)
        shape: list[Extent | None] = []
        for extent, a, z in zip(x.shape, widths[: x.rank], widths[x.rank :], strict=True):
            shape.append(None if a is None or z is None else extent + a + z)
        return TensorType(x.dtype, tuple(shape))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, value: Any, *dims: int, low: tuple[int | None, ...],
             high: tuple[int | None, ...]) -> Any:  # fmt: skip
        widths = fill((*low, *high), dims)
        _refuse_pad(x.ndim, x.dtype.name, value.dtype.name, widths[: x.ndim], widths[x.ndim :])
        pairs = list(zip(x.shape, widths[: x.ndim], widths[x.ndim :], strict=True))
        out = xp.empty(tuple(n + a + z for n, a, z in pairs), x.dtype)
        out[...] = value
        out[tuple(slice(a, a + n) for n, a, _ in pairs)] = x
        return out

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, low: tuple[int | None, ...], high: tuple[int | None, ...]) -> Tangents:  # fmt: skip
        (ct,), x = cts, operands[0]
        starts: list[Any] = list(fill(low, operands[2:]))  # type: ignore[arg-type]
        spec: list[tuple[Any, ...]] = []
        scalars: list[Value] = []
        extents: list[Any] = list(b.shape(x))
        for start, extent in zip(starts, extents, strict=True):
            known = isinstance(start, int) and isinstance(extent, int)
            ends: list[Any] = [start, start + extent if known else b.scalar_add(start, extent)]
            spec.append(("slice", *("?" if isinstance(e, Value) else e for e in ends), None))
            scalars += [e for e in ends if isinstance(e, Value)]
        answer: list[Value | None] = [None] * len(operands)
        if linear[0]:
            answer[0] = in_shape_of(b, b.index(ct, *scalars, spec=tuple(spec)), x)
        if linear[1]:
            zero = b.constant(0, ct.type.dtype)  # type: ignore[union-attr]
            around = b.index_set(ct, zero, *scalars, spec=tuple(spec))
            answer[1] = b.sum(around, axis=tuple(range(len(low))), keepdim=False)
        return answer

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)), np.array(0.5)), {"low": (1, 0), "high": (0, 2)})
        yield Sample((rng.normal(size=(2, 3)), np.array(0.5), 2, 1), {"low": (1, None), "high": (None, 2)})
        yield Sample((rng.normal(size=()), np.array(0.5)), {"low": (), "high": ()})


class _Triangle(Op):
    abstract = True
    attributes = ("diagonal",)
    linear_in = (0,)
    fresh = True

    def infer(self, x: TensorType, *, diagonal: int) -> TensorType:
        if x.rank < 2:
            raise ValueError(f"{self.name} needs a matrix, not a tensor of rank {x.rank}")
        return x

    def eval(self, xp: Any, x: Any, *, diagonal: int) -> Any:
        rows, columns = x.shape[-2:]
        return getattr(xp, self.name)(x, max(-rows, min(diagonal, columns)))

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.emit(self, [cts[0]], attributes)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)),), {"diagonal": 1})
        yield Sample((rng.normal(size=(3, 2)),), {"diagonal": -1})


class Tril(_Triangle):
    """The last two axes' lower triangle, up to this diagonal, zeros above."""

    name = "tril"
    of_last_axes = True


class Triu(_Triangle):
    """The last two axes' upper triangle, from this diagonal, zeros below."""

    name = "triu"
    of_last_axes = True


class Diagonal(Op):
    """The diagonal number `offset` of the planes of two `axes`; it is the result's last axis."""

    name = "diagonal"
    is_data_movement = True
    attributes = ("offset", "axes")
    linear_in = (0,)

    def infer(self, x: TensorType, *, offset: int, axes: tuple[int, int]) -> TensorType:
        _refuse_axes(axes, x.rank)
        rows, columns = x.shape[axes[0]], x.shape[axes[1]]
        length: Extent | None = None
        if isinstance(rows, int) and isinstance(columns, int):
            length = _diagonal_length(rows, columns, offset)
        elif rows == columns and not offset:
            length = rows
        rest = tuple(e for i, e in enumerate(x.shape) if i not in axes)
        return TensorType(x.dtype, (*rest, length))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *, offset: int, axes: tuple[int, int]) -> Any:
        rows, columns = x.shape[axes[0]], x.shape[axes[1]]
        return xp.diagonal(x, max(-rows, min(offset, columns)), *axes)  # NumPy reads elsewhere from -(2 ** 31) on

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [b.shaped("diagonal_embed", [cts[0]], b.shape(operands[0]), **attributes)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)),), {"offset": 1, "axes": (0, 2)})
        yield Sample((rng.normal(size=(3, 3)),), {"offset": 0, "axes": (0, 1)})


class DiagonalEmbed(Op):
    """Zeros of `shape` (a template) whose diagonal number `offset` in the planes of two `axes` is the operand."""

    name = "diagonal_embed"
    attributes = ("shape", "offset", "axes")
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *dims: ScalarType, shape: tuple[int | None, ...], offset: int,
              axes: tuple[int, int]) -> TensorType:  # fmt: skip
        _refuse_axes(axes, len(shape))
        return TensorType(x.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *dims: int, shape: tuple[int | None, ...], offset: int,
             axes: tuple[int, int]) -> Any:  # fmt: skip
        target = fill(shape, dims)
        length = _diagonal_length(target[axes[0]], target[axes[1]], offset)
        if x.shape[-1] != length:
            raise ValueError(
                f"diagonal {offset} of a tensor of shape {list(target)} has {length} elements, not {x.shape[-1]}"
            )
        out = xp.zeros(target, x.dtype)
        at = xp.arange(length)
        moved = xp.moveaxis(out, axes, (-2, -1))
        moved[..., at + max(-offset, 0), at + max(offset, 0)] = x
        return out

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, offset: int, axes: tuple[int, int], **attributes: Any) -> Tangents:  # fmt: skip
        return [b.diagonal(cts[0], offset=offset, axes=axes), *[None] * (len(operands) - 1)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 2)), 3), {"shape": (2, 2, None), "offset": -1, "axes": (2, 0)})
        yield Sample((rng.normal(size=(3,)), 3), {"shape": (None, 3), "offset": 0, "axes": (0, 1)})


def _refuse_axes(axes: tuple[int, int], rank: int) -> None:
    if axes[0] == axes[1] or not all(0 <= axis < rank for axis in axes):
        raise ValueError(f"a diagonal needs two axes of a tensor of {rank}, not {axes[0]} and {axes[1]}")


def _diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def _refuse_pad(rank: int, dtype: str, value: str, low: Sequence[int | None], high: Sequence[int | None]) -> None:
    if dtype != value:
        raise TypeError(f"pad needs a value of the tensor's dtype, not {value} for {dtype}")
    if len(low) != rank or len(high) != rank:
        raise ValueError(f"pad needs {rank} widths before and after, not {len(low)} and {len(high)}")
    if any(w is not None and w < 0 for w in (*low, *high)):
        raise ValueError(f"pad widths must not be negative, not {list(low)} and {list(high)}")
