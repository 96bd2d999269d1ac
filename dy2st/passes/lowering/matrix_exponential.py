"""The exponential of square matrices, and its derivative in a direction, as products, a solution and a loop.

The arithmetic is that of `expm.py`, in float64: the largest norm of a batch says by how many halvings
it is brought to where the approximation holds, and the result is squared as often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.dtypes import float64, int64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import ScalarType
from dy2st.ops.linalg.expm import WIDEST, approximation, blocks, upper_right


def exponential(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Emit the exponential of matrices of which the types tell that they are square."""
    (a,) = operation.operands
    if not _is_square(a):
        return None
    return [b.cast(_exponential(b, b.cast(a, dtype=float64)), dtype=tensor_type(a).dtype)]


def slope(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Emit the derivative at a matrix in the direction of another one."""
    a, e = operation.operands
    if not _is_square(a) or tensor_type(a).shape != tensor_type(e).shape:
        return None
    whole = blocks(b, a, e, b.zeros_like(a))
    return [b.cast(upper_right(b, _exponential(b, b.cast(whole, dtype=float64)), a), dtype=tensor_type(a).dtype)]


def _is_square(a: Value) -> bool:
    t = tensor_type(a)
    return t.dtype.is_floating and t.shape[-1] == t.shape[-2]


def _exponential(b: Builder, a: Value) -> Value:
    *_, size = shape = tensor_type(a).shape
    halvings = _halvings(b, a)
    a = b.mul(a, b.exp2(b.neg(halvings)))
    one = b.broadcast_to(b.eye(*map(b.scalar, b.shape((size, size))), dtype=float64), shape)
    odd, even = approximation(a, one, lambda x, y: _product(b, x, y), lambda *terms: _total(b, terms))
    found = b.solve(b.sub(even, odd), b.add(even, odd))
    iterations = b.item(b.cast(halvings, dtype=int64))
    inner = b.child()
    inner.block.add_argument(ScalarType("int"), "turn")
    x = inner.block.add_argument(found.type, "x")
    inner.block.results = [_product(inner, x, x)]
    return b.operation("counted_while", [iterations, found], {"carried": 1, "reverse": False}, [inner.block]).results[0]


def _halvings(b: Builder, a: Value) -> Value:
    """Emit how often matrices are halved; there may be none, or such as have no norm."""
    sums = b.sum(b.abs(a), axis=(tensor_type(a).rank - 2,), keepdim=False)
    count = b.shape(sums)
    several = count[0]
    for extent in count[1:]:
        several = b.scalar_mul(b.scalar(several), b.scalar(extent))
    flat = b.shaped("reshape", [sums], [several])
    norm = b.max(b.concat(flat, b.constant(np.zeros(1), float64), axis=0), axis=(0,), keepdim=False)
    ratio = b.where(b.isfinite(norm), b.div(norm, WIDEST), b.zeros_like(norm))
    return b.ceil(b.log2(b.maximum(ratio, b.ones_like(ratio))))


def _product(b: Builder, x: Value, y: Value) -> Value:
    return b.matmul(x, y, transpose_x=False, transpose_y=False)


def _total(b: Builder, terms: Sequence[tuple[float, Value]]) -> Value:
    made: Value | None = None
    for number, x in terms:
        term = x if number == 1.0 else b.mul(x, number)
        made = term if made is None else b.add(made, term)
    assert made is not None
    return made
