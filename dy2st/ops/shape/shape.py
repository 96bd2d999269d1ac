"""Extents and shapes: `dim`, `broadcast_extent`; `broadcast` and its transpose `sum_to`; `reshape`, `transpose`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op, Sample, fill, fill_extents
from dy2st.shapes import Dim, Extent, broadcast, divide, product


class DimOf(Op):
    """The extent of one axis of a tensor, as an int."""

    name = "dim"
    rematerializes = True
    attributes = ("axis",)
    differentiable = False

    def infer(self, x: TensorType, *, axis: int) -> ScalarType:
        return ScalarType("int", x.shape[axis])

    def eval(self, xp: Any, x: Any, *, axis: int) -> int:
        return x.shape[axis]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)),), {"axis": 1})


class BroadcastExtent(Op):
    """The extent to which two extents broadcast; ValueError when they are different and neither is 1."""

    name = "broadcast_extent"
    raises = (ValueError,)
    differentiable = False
    may_raise = True

    def infer(self, a: ScalarType, b: ScalarType) -> ScalarType:
        if a.extent is None or b.extent is None:
            known = b.extent if a.extent is None else a.extent
            return ScalarType("int", known if isinstance(known, int) and known != 1 else None)
        return ScalarType("int", broadcast(a.extent, b.extent))

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        a, b = (t.extent for t in types)
        if 1 in (a, b):
            return False
        if isinstance(a, Dim) and isinstance(b, Dim):
            return broadcast(a, b) not in (a, b)
        return a is None or a != b

    def eval(self, xp: Any, a: int, b: int) -> int:
        if a != b and a != 1 and b != 1:
            raise ValueError(f"operands could not be broadcast together: extents {a} and {b} differ")
        return b if a == 1 else a

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((1, 3))
        yield Sample((3, 3))


class Broadcast(Op):
    """Repeat a tensor to `shape` (a template), by NumPy's rules; no element is copied."""

    name = "broadcast"
    rematerializes = True
    is_data_movement = True
    attributes = ("shape",)
    linear_in = (0,)

    def infer(self, x: TensorType, *dims: ScalarType, shape: tuple[int | None, ...]) -> TensorType:
        return TensorType(x.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *dims: int, shape: tuple[int | None, ...]) -> Any:
        return xp.broadcast_to(x, fill(shape, dims))

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.shaped("sum_to", [cts[0]], b.shape(operands[0])), *[None] * (len(operands) - 1)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(1, 3)), 4), {"shape": (2, None, 3)})
        yield Sample((rng.normal(size=()),), {"shape": (2, 2)})


class SumTo(Op):
    """Sum over the axes along which `shape` (a template) would be broadcast to the operand's shape."""

    name = "sum_to"
    monoid = "add"
    defined_on = "iufc"
    attributes = ("shape",)
    linear_in = (0,)

    def infer(self, x: TensorType, *dims: ScalarType, shape: tuple[int | None, ...]) -> TensorType:
        return TensorType(x.dtype, fill_extents(shape, dims))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *dims: int, shape: tuple[int | None, ...]) -> Any:
        target = fill(shape, dims)
        if x.shape == target:
            return x
        lead = x.ndim - len(target)
        axes = (*range(lead), *(lead + i for i, e in enumerate(target) if e == 1 and x.shape[lead + i] != 1))
        wide = np.float32 if x.dtype == np.float16 else x.dtype
        return xp.asarray(x.sum(axis=axes, dtype=wide)).astype(x.dtype, copy=False).reshape(target)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.shaped("broadcast", [cts[0]], b.shape(operands[0])), *[None] * (len(operands) - 1)]  # type: ignore[list-item]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 4, 3)), 1), {"shape": (None, 3)})
        yield Sample((rng.normal(size=(2, 3)),), {"shape": ()})


class Reshape(Op):
    """The elements in row-major order under another `shape` (a template); one -1 is computed from the rest."""

    name = "reshape"
    raises = (ValueError,)
    is_data_movement = True
    is_reshape = True
    attributes = ("shape",)
    linear_in = (0,)
    is_view = True
    may_raise = True

    def infer(self, x: TensorType, *dims: ScalarType, shape: tuple[int | None, ...]) -> TensorType:
        target = list(fill_extents(shape, dims))
        if -1 in target:
            rest = [e for e in target if e != -1]
            free: Extent | None = None
            if None not in rest:
                total, known = product(x.shape), product(tuple(rest))  # type: ignore[arg-type]
                free = divide(total, known)
                if free is None and isinstance(total, int) and isinstance(known, int):
                    raise ValueError(f"cannot reshape a tensor of shape {_listed(x.shape)} into {_listed(target)}")
            target[target.index(-1)] = free
        elif None not in target:
            total, wanted = product(x.shape), product(tuple(target))  # type: ignore[arg-type]
            if isinstance(total, int) and isinstance(wanted, int) and total != wanted:
                raise ValueError(f"cannot reshape a tensor of shape {_listed(x.shape)} into {_listed(target)}")
        return TensorType(x.dtype, tuple(target))  # type: ignore[arg-type]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        x, *dims = types
        target = fill_extents(attributes["shape"], dims)
        if None in target:
            return True
        total = product(x.shape)
        if -1 not in target:
            return product(target) != total  # type: ignore[arg-type]
        rest = product(tuple(e for e in target if e != -1))  # type: ignore[misc]
        return not isinstance(rest, int) or rest == 0 or divide(total, rest) is None

    def eval(self, xp: Any, x: Any, *dims: int, shape: tuple[int | None, ...]) -> Any:
        target = fill(shape, dims) if dims else shape
        try:
            if min(target, default=0) < -1:  # type: ignore[type-var]  NumPy takes any for -1
                raise ValueError
            return x.reshape(target)
        except ValueError:
            raise ValueError(f"cannot reshape a tensor of shape {list(x.shape)} into {list(target)}") from None

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.shaped("reshape", [cts[0]], b.shape(operands[0])), *[None] * (len(operands) - 1)]  # type: ignore[list-item]

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], **attributes: Any) -> Value:
        return b.shaped("reshape", [new], b.shape(base))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 6)), 4), {"shape": (3, None)})
        yield Sample((rng.normal(size=(2, 6)),), {"shape": (-1, 4)})
        yield Sample((rng.normal(size=(1,)),), {"shape": ()})


class Transpose(Op):
    """Permute the axes: axis i of the result is axis `perm[i]` of the operand."""

    name = "transpose"
    rematerializes = True
    is_data_movement = True
    attributes = ("perm",)
    linear_in = (0,)
    is_view = True

    def infer(self, x: TensorType, *, perm: tuple[int, ...]) -> TensorType:
        if sorted(perm) != list(range(x.rank)):
            raise ValueError(f"perm {list(perm)} is not a permutation of the {x.rank} axes of the tensor")
        return TensorType(x.dtype, tuple(x.shape[p] for p in perm))

    def eval(self, xp: Any, x: Any, *, perm: tuple[int, ...]) -> Any:
        return x.transpose(perm)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, perm: tuple[int, ...]) -> Sequence[Value | None]:  # fmt: skip
        return [b.transpose(cts[0], perm=tuple(perm.index(i) for i in range(len(perm))))]

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], *, perm: tuple[int, ...]) -> Value:
        return b.transpose(new, perm=tuple(perm.index(i) for i in range(len(perm))))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3, 4)),), {"perm": (2, 0, 1)})


def _listed(shape: Sequence[Extent | None]) -> str:
    return "[" + ", ".join("?" if e is None else str(e) for e in shape) + "]"
