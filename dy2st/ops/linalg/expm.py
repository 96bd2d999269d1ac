"""The exponential of square matrices, and its derivative in a direction, which is an op of its own.

exp([[A, E], [0, A]]) has the derivative of exp at A in the direction E as its upper right block (R. Mathias, "A chain
rule for matrix functions", 1996). That derivative is linear in E, and its own derivative is again one of larger
matrices, so every order follows. Values: N. Higham, "The scaling and squaring method for the matrix exponential
revisited" (2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.elementwise_base import Tangents
from dy2st.ops.linalg.linalg import flipped

T = TypeVar("T")
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
WIDEST = 5.371920351148152
"""Up to this norm the approximation of order 13 is exact to rounding in float64."""


def exponential(xp: Any, a: Any) -> Any:
    """Return the exponentials of matrices, in float64 or complex128."""
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"matrix_exp needs square matrices, not {list(a.shape)}")
    a = a.astype(xp.complex128 if a.dtype.kind == "c" else xp.float64)
    if a.size == 0:
        return a
    norm = float(xp.abs(a).sum(-2).max())
    halvings = max(0, int(np.ceil(np.log2(norm / WIDEST)))) if np.isfinite(norm) and norm > 0 else 0
    a = a / 2.0**halvings
    one = xp.broadcast_to(xp.eye(a.shape[-1]), a.shape)
    odd, even = approximation(a, one, lambda x, y: x @ y, lambda *terms: sum(c * x for c, x in terms))
    found = xp.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        found = found @ found
    return found


def approximation(a: T, one: T, product: Callable[[T, T], T], total: Callable[..., T]) -> tuple[T, T]:
    """Return the odd and the even part of the approximation of order 13; `total` adds up numbers times matrices."""
    b, a2 = _PADE, product(a, a)
    a4 = product(a2, a2)
    a6 = product(a4, a2)
    high = product(a6, total((b[13], a6), (b[11], a4), (b[9], a2)))
    odd = product(a, total((1.0, high), (b[7], a6), (b[5], a4), (b[3], a2), (b[1], one)))
    high = product(a6, total((b[12], a6), (b[10], a4), (b[8], a2)))
    return odd, total((1.0, high), (b[6], a6), (b[4], a4), (b[2], a2), (b[0], one))


class MatrixExponential(Op):
    """e to the power of square matrices."""

    name = "matrix_exp"
    of_last_axes = True
    defined_on = "fc"
    fresh = True

    def infer(self, a: TensorType) -> TensorType:
        return _square("matrix_exp", a)

    def eval(self, xp: Any, a: Any) -> Any:
        return exponential(xp, a).astype(a.dtype)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        return b.matrix_exp_slope(primals[0], tangents[0])

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 2, 2)):
            yield Sample((rng.normal(size=shape),))


class MatrixExponentialSlope(Op):
    """The derivative of the exponential at A in the direction E: linear in E."""

    name = "matrix_exp_slope"
    of_last_axes = True
    defined_on = "fc"
    linear_in = (1,)
    fresh = True

    def infer(self, a: TensorType, e: TensorType) -> TensorType:
        if a.dtype is not e.dtype or a.rank != e.rank:
            raise ValueError(f"matrix_exp_slope needs matrices of one dtype and rank, not {a} and {e}")
        return _square("matrix_exp_slope", e)

    def eval(self, xp: Any, a: Any, e: Any) -> Any:
        size = a.shape[-1]
        above = xp.concatenate([a, e], -1)
        whole = xp.concatenate([above, xp.concatenate([xp.zeros_like(a), a], -1)], -2)
        return exponential(xp, whole)[..., :size, size:].astype(a.dtype)

    def jvp(self, b: Builder, primals: Sequence[Value], tangents: Tangents, outs: Sequence[Value], **_: Any) -> Any:
        (a, e), (da, de) = primals, tangents
        if da is None:
            return b.matrix_exp_slope(a, de)
        zero = b.zeros_like(a)
        moved = b.matrix_exp_slope(blocks(b, a, e, zero), blocks(b, da, zero if de is None else de, zero))
        return upper_right(b, moved, a)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  **_: Any) -> Sequence[Value | None]:  # fmt: skip
        return [None, b.matrix_exp_slope(flipped(b, operands[0]), cts[0])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 2)), rng.normal(size=(2, 2))))


def blocks(b: Builder, a: Any, e: Any, zero: Any) -> Any:
    """Emit [[a, e], [0, a]]."""
    rank = tensor_type(a).rank
    above, below = b.concat(a, e, axis=rank - 1), b.concat(zero, a, axis=rank - 1)
    return b.concat(above, below, axis=rank - 2)


def upper_right(b: Builder, whole: Any, a: Any) -> Any:
    """Emit the block that stands above on the right."""
    kind = tensor_type(a)
    batch = (("slice", None, None, None),) * (kind.rank - 2)
    size = kind.shape[-1]
    if isinstance(size, int):
        return b.index(whole, spec=(*batch, ("slice", None, size, None), ("slice", size, None, None)))
    size = b.shape(a)[-1]
    return b.index(whole, size, size, spec=(*batch, ("slice", None, "?", None), ("slice", "?", None, None)))


def _square(name: str, a: TensorType) -> TensorType:
    if a.rank < 2 or (isinstance(a.shape[-1], int) and isinstance(a.shape[-2], int) and a.shape[-1] != a.shape[-2]):
        raise ValueError(f"{name} needs square matrices, not {a}")
    return a
