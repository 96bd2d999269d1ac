"""Complex numbers and Fourier transforms."""

import numpy as np

from tests.values.operands import A, C, V, floats
from tests.values.row import everywhere, row

Z = A + 1j * floats(2, 3)
W = floats(3, 4) + 1j * floats(3, 4)
_NORMS = ("backward", "forward", "ortho")


_ONE = {"fft": W, "ifft": W, "rfft": C, "irfft": W, "hfft": W, "ihfft": C}
_MANY = {"fftn": W, "ifftn": W, "rfftn": C, "irfftn": W}
_PLANE = {"fft2": W, "ifft2": W, "rfft2": C, "irfft2": W}
ROWS = [
    row("real", (Z,), Z.real),
    row("imag", (Z,), Z.imag),
    row("conj", (Z,), Z.conj()),
    row("conj", (A,), A),
    row("complex", (A, A[0]), A + 1j * A[0]).but(known_extents=True),
    row("angle", (Z,), np.angle(Z)),
    *everywhere("angle", lambda x: np.angle(x + 0.0), C),
    row("polar", (A, A * 3), A * np.exp(3j * A)),
    row("abs", (Z,), np.abs(Z)),
    row("as_complex", (np.stack([A, A * 2], -1),), A + 2j * A).but(known_extents=True),
    row("view_as_complex", (np.stack([A, A * 2], -1),), A + 2j * A).but(known_extents=True),
    row("view_as_real", (Z,), np.stack([Z.real, Z.imag], -1)),
    row("as_real", (Z,), np.stack([Z.real, Z.imag], -1)),
    row("isreal", (np.array([1 + 0j, 1j]),), np.array([True, False])),
    row("isreal", (A,), np.ones_like(A, bool)),
    *(row(f"fft.{n}", (x,), getattr(np.fft, n)(x)) for n, x in (_ONE | _PLANE).items()),
    *(row(f"fft.{n}", (x,), getattr(np.fft, n)(x, 3, 0, norm), n=3, axis=0, norm=norm)
      for n, x in _ONE.items() for norm in _NORMS),
    *(row(f"fft.{n}", (x,), getattr(np.fft, n)(x, 6), n=6) for n, x in _ONE.items()),
    *(row(f"fft.{n}", (x,), getattr(np.fft, n)(x, [3, 4], [0, 1], norm), s=[3, 4], axes=[0, 1], norm=norm)
      for n, x in (_MANY | _PLANE).items() for norm in _NORMS),
    *(row(f"fft.{n}", (x,), getattr(np.fft, n)(x, axes=range(x.ndim))) for n, x in _MANY.items()),
    row("fft.hfftn", (W,), np.fft.hfft(np.fft.fft(W, axis=0), axis=1)),
    row("fft.ihfftn", (W.real.copy(),), np.fft.ifft(np.fft.ihfft(W.real, axis=1), axis=0)),
    row("fft.fftfreq", (5, 0.5), np.fft.fftfreq(5, 0.5).astype(np.float32)).only("float64"),
    row("fft.fftfreq", (4,), np.fft.fftfreq(4), dtype="float64").only("float64"),
    row("fft.rfftfreq", (5, 0.5), np.fft.rfftfreq(5, 0.5).astype(np.float32)).only("float64"),
    row("fft.fftshift", (V,), np.fft.fftshift(V)),
    row("fft.fftshift", (C,), np.fft.fftshift(C, 1), axes=1),
    row("fft.ifftshift", (C,), np.fft.ifftshift(C)),
]  # fmt: skip
ROWS = [r.but(tolerance=(1e-7, 1e-5)) for r in ROWS]
