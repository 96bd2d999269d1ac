"""Square matrices, in batches: inverse, solution of linear equations, determinant, factors, eigenvalues.

Derivatives as in M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008). What LAPACK cannot do (a singular matrix, one that is not positive definite) raises NumPy's
LinAlgError, a ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from dy2st.dtypes import complex64, complex128, float64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents, as_array


class _Square(Op):
    """An op on square matrices that is the function of `numpy.linalg` of the same name; float16 is refused by it."""

    abstract = True
    defined_on = "fc"
    may_raise = True
    fresh = True
    function: ClassVar[str]

    def infer(self, a: TensorType, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        return a

    def eval(self, xp: Any, a: Any, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        return as_array(xp, getattr(xp.linalg, self.function)(a))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2)):
            yield Sample((rng.normal(size=shape) + 3 * np.eye(shape[-1]),))


class Inverse(_Square):
    """The inverses of square matrices."""

    name = "inverse"
    of_last_axes = True
    computes_in = ("float32", "float64")
    superlinear = True
    function = "inv"

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        out = outs[0]
        return b.neg(product(b, product(b, out, tangents[0]), out))


class Determinant(_Square):
    """The determinants of square matrices; the derivative is that of a polynomial, at singular ones too."""

    name = "det"
    of_last_axes = True
    computes_in = ("float32", "float64")
    function = "det"

    def infer(self, a: TensorType, **attributes: Any) -> TensorType:
        refuse_oblong(self.name, a.shape)
        return TensorType(a.dtype, a.shape[:-2])

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        return trace_of_product(b, b.adjugate(primals[0]), tangents[0])


class LogDeterminant(_Square):
    """The signs of the determinants and the logarithms of their absolute values."""

    name = "slogdet"
    of_last_axes = True
    computes_in = ("float32", "float64")
    defined_on = "f"
    function = "slogdet"

    def infer(self, a: TensorType, **attributes: Any) -> tuple[TensorType, TensorType]:
        refuse_oblong(self.name, a.shape)
        kind = TensorType(a.dtype, a.shape[:-2])
        return kind, kind

    def eval(self, xp: Any, a: Any, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        sign, size = xp.linalg.slogdet(a)
        return as_array(xp, sign), as_array(xp, size)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        return [b.zeros_like(outs[0]), trace_of_product(b, b.inverse(primals[0]), tangents[0])]


class Solve(Op):
    """The x of a @ x = y, for square matrices `a` and matrices `y` in equal batches."""

    name = "solve"
    of_last_axes = True
    computes_in = ("float32", "float64")
    superlinear = True
    defined_on = "fc"
    linear_in = (1,)
    may_raise = True
    fresh = True

    def infer(self, a: TensorType, y: TensorType) -> TensorType:
        refuse_oblong(self.name, a.shape)
        if y.rank != a.rank or y.shape[:-2] != a.shape[:-2]:
            raise ValueError(f"solve needs operands of one rank and batch, not {a} and {y}")
        return y

    def eval(self, xp: Any, a: Any, y: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        if a.shape[-1] != y.shape[-2]:
            raise ValueError(f"solve: matrices of {a.shape[-1]} rows do not fit {y.shape[-2]} rows on the right")
        return xp.linalg.solve(a, y)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        da, dy = tangents
        right = dy
        if da is not None:
            moved = b.neg(product(b, da, outs[0]))
            right = moved if dy is None else b.add(dy, moved)
        return b.solve(primals[0], right)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Tangents:  # fmt: skip
        return [None, b.solve(flipped(b, operands[0]), cts[0])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=(3, 2))))
        yield Sample((rng.normal(size=(2, 2, 2)) + 3 * np.eye(2), rng.normal(size=(2, 2, 1))))


class Cholesky(_Square):
    """The lower triangular L with L @ L^T = a, for positive definite `a`; of `a` the symmetric part is taken."""

    name = "cholesky"
    of_last_axes = True
    computes_in = ("float32", "float64")
    function = "cholesky"

    def eval(self, xp: Any, a: Any, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        return xp.linalg.cholesky((a + a.swapaxes(-1, -2)) / 2)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        lower = outs[0]
        half = b.solve(lower, symmetric_part(b, tangents[0]))
        inner = b.solve(lower, flipped(b, half))
        strict = b.tril(inner, diagonal=-1)
        diagonal = b.mul(b.sub(b.tril(inner, diagonal=0), strict), 0.5)
        return product(b, lower, b.add(strict, diagonal))

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2)):
            x = rng.normal(size=shape)
            yield Sample((x @ x.swapaxes(-1, -2) + np.eye(shape[-1]),))


class SymmetricEigen(_Square):
    """The eigenvalues, ascending, and eigenvectors (columns) of the symmetric part of matrices."""

    name = "eigh"
    of_last_axes = True
    computes_in = ("float32", "float64")
    superlinear = True
    defined_on = "f"
    function = "eigh"

    def infer(self, a: TensorType, **attributes: Any) -> tuple[TensorType, TensorType]:
        refuse_oblong(self.name, a.shape)
        return TensorType(a.dtype, a.shape[:-1]), a

    def eval(self, xp: Any, a: Any, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        values, vectors = xp.linalg.eigh((a + a.swapaxes(-1, -2)) / 2)
        return values, vectors

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        values, vectors = outs
        rank = tensor_type(vectors).rank
        inner = product(b, product(b, flipped(b, vectors), symmetric_part(b, tangents[0])), vectors)
        rows = b.expand_dims(values, axes=(rank - 1,))
        gaps = b.sub(b.expand_dims(values, axes=(rank - 2,)), rows)
        iteration = b.mul(inner, inverse_gaps(b, gaps))
        return [b.diagonal(inner, offset=0, axes=(rank - 2, rank - 1)), product(b, vectors, iteration)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((np.array([[2.0, 0.3, 0.1], [0.3, 5.0, -0.4], [0.1, -0.4, 9.0]]),))
        yield Sample((np.array([[[1.0, 0.2], [0.2, 4.0]], [[-3.0, 0.5], [0.5, 2.0]]]),))


class GeneralEigen(_Square):
    """The eigenvalues and eigenvectors (columns) of square matrices, complex, in no order."""

    name = "eig"
    of_last_axes = True
    superlinear = True
    function = "eig"
    differentiable = False

    def infer(self, a: TensorType, **attributes: Any) -> tuple[TensorType, TensorType]:
        refuse_oblong(self.name, a.shape)
        kind = complex128 if a.dtype is float64 else complex64
        return TensorType(kind, a.shape[:-1]), TensorType(kind, a.shape)

    def eval(self, xp: Any, a: Any, **attributes: Any) -> Any:
        refuse_oblong(self.name, a.shape)
        values, vectors = xp.linalg.eig(a)
        kind = xp.complex128 if a.dtype == np.float64 else xp.complex64
        return values.astype(kind), vectors.astype(kind)


def refuse_oblong(name: str, shape: Sequence[Any]) -> None:
    """Refuse what is not a batch of square matrices, as far as the extents are known."""
    listed = f"[{', '.join(map(str, shape))}]"
    if len(shape) < 2:
        raise ValueError(f"{name} needs matrices, not the shape {listed}")
    if isinstance(shape[-1], int) and isinstance(shape[-2], int) and shape[-1] != shape[-2]:
        raise ValueError(f"{name} needs square matrices, not the shape {listed}")


def product(b: Builder, x: Any, y: Any) -> Any:
    """Emit x @ y."""
    return b.matmul(x, y, transpose_x=False, transpose_y=False)


def flipped(b: Builder, x: Any) -> Any:
    """Emit the matrices with rows and columns exchanged."""
    rank = tensor_type(x).rank
    return b.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2))


def symmetric_part(b: Builder, x: Any) -> Any:
    """Emit (x + x^T) / 2."""
    return b.mul(b.add(x, flipped(b, x)), 0.5)


def trace_of_product(b: Builder, x: Any, y: Any) -> Any:
    """Emit the traces of x @ y."""
    rank = tensor_type(x).rank
    return b.sum(b.mul(flipped(b, x), y), axis=(rank - 2, rank - 1), keepdim=False)


def inverse_gaps(b: Builder, gaps: Any) -> Any:
    """Emit 1 / gap, 0 where the gap is 0: on the diagonal, and between eigenvalues that are equal."""
    closed = b.eq(gaps, 0.0)
    return b.where(closed, b.zeros_like(gaps), b.reciprocal(b.where(closed, b.ones_like(gaps), gaps)))
