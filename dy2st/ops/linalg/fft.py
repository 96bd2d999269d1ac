"""`fft`: the discrete Fourier transform along one axis; every other transform is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op, Sample


class FFT(Op):
    """The discrete Fourier transform of complex numbers along an axis, or its inverse.

    `norm` says which way is divided by the length ("backward": the inverse, "forward") or by its root, both ("ortho").
    The matrix of the transform is symmetric, so it is its own transpose.
    """

    name = "fft"
    superlinear = True
    attributes = ("axis", "norm", "inverse")
    linear_in = (0,)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *, axis: int, norm: str, inverse: bool) -> TensorType:
        if not x.dtype.is_complex:
            raise TypeError(f"fft needs complex numbers, not {x}")
        return x

    def eval(self, xp: Any, x: Any, *, axis: int, norm: str, inverse: bool) -> Any:
        transform = xp.fft.ifft if inverse else xp.fft.fft
        return transform(x, axis=axis, norm=norm).astype(x.dtype, copy=False)

    def transpose(self, b: Builder, cts: Sequence[Value | None], operands: Sequence[Value], linear: Sequence[bool],
                  *, axis: int, norm: str, inverse: bool) -> Sequence[Value | None]:  # fmt: skip
        return [b.fft(cts[0], axis=axis, norm=norm, inverse=inverse)]

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        x = rng.normal(size=(3, 5)) + 1j * rng.normal(size=(3, 5))
        for axis, norm, inverse in ((1, "backward", False), (0, "ortho", True), (1, "forward", False)):
            yield Sample((x,), {"axis": axis, "norm": norm, "inverse": inverse}, differentiate=False)
