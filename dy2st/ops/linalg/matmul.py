"""Products of matrices, over batches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.shapes import Extent


class MatMul(Op):
    """x @ y over the last two axes, each operand transposed first where its attribute says so.

    Both have a rank of 2 or more; in a Program their batch extents are equal. float16 is accumulated in float32.
    """

    name = "matmul"
    amp = "low"
    computes_in = ("float16", "float32")
    is_contraction = True
    superlinear = True
    attributes = ("transpose_x", "transpose_y")
    linear_in = (0, 1)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, y: TensorType, *, transpose_x: bool, transpose_y: bool) -> TensorType:
        return _product_type(x, y, transpose_x, transpose_y)

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        x, y = types
        return x.shape[-2 if attributes["transpose_x"] else -1] != y.shape[-1 if attributes["transpose_y"] else -2]

    def eval(self, xp: Any, x: Any, y: Any, *, transpose_x: bool, transpose_y: bool) -> Any:
        return _product(xp, x, y, transpose_x, transpose_y)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, transpose_x: bool, transpose_y: bool) -> Tangents:  # fmt: skip
        (x, y), (ct,) = operands, cts
        if linear[0] and transpose_x:
            return [b.matmul(y, ct, transpose_x=transpose_y, transpose_y=True), None]
        if linear[0]:
            return [b.matmul(ct, y, transpose_x=False, transpose_y=not transpose_y), None]
        if transpose_y:
            return [None, b.matmul(ct, x, transpose_x=True, transpose_y=transpose_x)]
        return [None, b.matmul(x, ct, transpose_x=not transpose_x, transpose_y=False)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for transpose_x in (False, True):
            for transpose_y in (False, True):
                x = rng.normal(size=(5, 3, 2) if transpose_x else (5, 2, 3))
                y = rng.normal(size=(5, 4, 3) if transpose_y else (5, 3, 4))
                yield Sample((x, y), {"transpose_x": transpose_x, "transpose_y": transpose_y})
        plain = {"transpose_x": False, "transpose_y": False}
        yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(3, 4))), plain)
        yield Sample((np.ones((2, 0)), np.ones((0, 4))), plain)
        yield Sample((np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)), plain)


class MatMulAdd(Op):
    """x @ y + z, each factor transposed first where its attribute says so; z has the shape of the product.

    Native code adds the product to the memory of z. A pass makes it (matmul_accumulate.py), no function of the user's.
    """

    name = "matmul_add"
    of_last_axes = True
    is_contraction = True
    superlinear = True
    attributes = ("transpose_x", "transpose_y")
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, y: TensorType, z: TensorType, *, transpose_x: bool,
              transpose_y: bool) -> TensorType:  # fmt: skip
        made = _product_type(x, y, transpose_x, transpose_y)
        if z.dtype is not made.dtype or _are_apart(z.shape, made.shape):
            raise TypeError(f"matmul_add: the product is {made}, what is added to it {z}")
        return z

    def eval(self, xp: Any, x: Any, y: Any, z: Any, *, transpose_x: bool, transpose_y: bool) -> Any:
        product = _product(xp, x, y, transpose_x, transpose_y)
        if product.shape != z.shape:
            raise ValueError(f"matmul_add: the product is {_listed(product.shape)}, what is added {_listed(z.shape)}")
        return product + z

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Sequence[Value | None], outs: Sequence[Value],
            *, transpose_x: bool, transpose_y: bool) -> Value | None:  # fmt: skip
        (x, y, _), (dx, dy, total) = primals, tangents
        for factors in ((dx, y), (x, dy)):
            if None not in factors:
                term = b.matmul(*factors, transpose_x=transpose_x, transpose_y=transpose_y)
                total = term if total is None else b.add(total, term)
        return total

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for transpose_x in (False, True):
            for transpose_y in (False, True):
                x = rng.normal(size=(3, 2) if transpose_x else (2, 3))
                y = rng.normal(size=(4, 3) if transpose_y else (3, 4))
                transposes = {"transpose_x": transpose_x, "transpose_y": transpose_y}
                yield Sample((x, y, rng.normal(size=(2, 4))), transposes)
        plain = {"transpose_x": False, "transpose_y": False}
        yield Sample((rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 3, 4)), np.ones((5, 2, 4))), plain)
        yield Sample((np.ones((2, 0)), np.ones((0, 4)), np.ones((2, 4))), plain)
        yield Sample(tuple(rng.normal(size=(3, 3, 3))), plain)


def _product_type(x: TensorType, y: TensorType, transpose_x: bool, transpose_y: bool) -> TensorType:
    rows, columns = _checked(x.shape, y.shape, transpose_x, transpose_y)
    if x.dtype is not y.dtype:
        raise TypeError(f"matmul needs operands of one dtype, not {x.dtype.name} and {y.dtype.name}")
    if x.shape[:-2] != y.shape[:-2]:
        raise ValueError(f"matmul: the batch extents differ: {_listed(x.shape)} and {_listed(y.shape)}")
    return TensorType(x.dtype, (*x.shape[:-2], rows, columns))


def _product(xp: Any, x: Any, y: Any, transpose_x: bool, transpose_y: bool) -> Any:
    plain = x.ndim == y.ndim == 2 and not transpose_x and not transpose_y and x.shape[1] == y.shape[0]
    if plain and x.dtype.kind == "f" and x.dtype.itemsize >= 4:
        return xp.matmul(x, y)
    _checked(x.shape, y.shape, transpose_x, transpose_y)
    if any(p != q and p != 1 and q != 1 for p, q in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False)):
        raise ValueError(f"matmul: the batch extents cannot be broadcast: {_listed(x.shape)} and {_listed(y.shape)}")
    x = x.swapaxes(-1, -2) if transpose_x else x
    y = y.swapaxes(-1, -2) if transpose_y else y
    if x.dtype == np.float16:
        return xp.matmul(x.astype(np.float32), y.astype(np.float32)).astype(np.float16)
    return xp.matmul(x, y)


def _checked(x: Sequence[Extent], y: Sequence[Extent], transpose_x: bool, transpose_y: bool) -> tuple[Extent, Extent]:
    """Return rows and columns of the product; ValueError for vectors and for inner extents that are known to differ."""
    if len(x) < 2 or len(y) < 2:
        raise ValueError(f"matmul needs operands of rank 2 or more, not {_listed(x)} and {_listed(y)}")
    rows, left = (x[-1], x[-2]) if transpose_x else (x[-2], x[-1])
    right, columns = (y[-1], y[-2]) if transpose_y else (y[-2], y[-1])
    if isinstance(left, int) and isinstance(right, int) and left != right:
        raise ValueError(f"matmul: the inner extents differ: {_listed(x)} and {_listed(y)} ({left} against {right})")
    return rows, columns


def _are_apart(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Return whether two shapes are known to differ."""
    return len(a) != len(b) or any(isinstance(p, int) and isinstance(q, int) and p != q
                                   for p, q in zip(a, b, strict=True))  # fmt: skip


def _listed(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(str, shape))}]"
