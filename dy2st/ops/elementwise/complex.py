"""Parts of complex numbers: real, imag, conj, and complex, which puts a number together.

A cotangent ct says how a real loss changes: dL = Re(ct * dx), without a conjugate, so holomorphic operations are
transposed by the rules of real ones. Gradients leave the tape conjugated (`autograd_engine/backward.py`), as Paddle has
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType, complex64, complex128, float32, float64
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Elementwise, Sample
from dy2st.ops.core.elementwise_base import as_array

PART_OF: dict[DType, DType] = {complex64: float32, complex128: float64}
WHOLE_OF = {part: whole for whole, part in PART_OF.items()}
Cotangents = Sequence[Value | None]


class _Part(Elementwise):
    abstract = True
    linear_in = (0,)

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        (x,) = types
        if x.dtype not in PART_OF:
            raise TypeError(f"{self.name} needs complex numbers, not {x}")
        return TensorType(PART_OF[x.dtype], x.shape)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample((np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)),), differentiate=False)


class Real(_Part):
    """The real part of complex numbers."""

    name = "real"

    def eval(self, xp: Any, x: Any) -> Any:
        return xp.array(x.real)

    def transpose(self, b: Builder, cts: Cotangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.complex(cts[0], b.zeros_like(cts[0]))]


class Imag(_Part):
    """The imaginary part of complex numbers."""

    name = "imag"

    def eval(self, xp: Any, x: Any) -> Any:
        return xp.array(x.imag)

    def transpose(self, b: Builder, cts: Cotangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.complex(b.zeros_like(cts[0]), b.neg(cts[0]))]


class Conj(Elementwise):
    """The conjugate of complex numbers."""

    name = "conj"
    linear_in = (0,)
    fresh = True

    def eval(self, xp: Any, x: Any) -> Any:
        return as_array(xp, xp.conjugate(x) if x.dtype.kind == "c" else x.copy())  # NumPy makes int8 of bool

    def transpose(self, b: Builder, cts: Cotangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.conj(cts[0])]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3)),), differentiate=False)


class Complex(Elementwise):
    """The complex numbers of which the operands are the real and the imaginary parts."""

    name = "complex"
    linear_together = (0, 1)
    fresh = True

    def infer(self, *types: TensorType, **attributes: Any) -> TensorType:
        x, y = types
        if x.dtype not in WHOLE_OF or x.dtype is not y.dtype or x.shape != y.shape:
            raise TypeError(f"complex needs two tensors of float32 or of float64 and one shape, not {x} and {y}")
        return TensorType(WHOLE_OF[x.dtype], x.shape)

    def eval(self, xp: Any, x: Any, y: Any) -> Any:
        out = xp.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
        out.real, out.imag = x, y
        return out

    def transpose(self, b: Builder, cts: Cotangents, operands: Sequence[Value], linear: Sequence[bool],
                  **attributes: Any) -> Sequence[Value | None]:  # fmt: skip
        return [b.real(cts[0]) if linear[0] else None, b.neg(b.imag(cts[0])) if linear[1] else None]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((2, 3), (), (0, 2)):
            yield Sample((rng.normal(size=shape), rng.normal(size=shape)), differentiate=False)
