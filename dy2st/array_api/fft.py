"""The extension `fft` of the array API standard: `paddle.fft`, and what takes a device."""

from __future__ import annotations

from typing import Any

from dy2st import fft as _fft
from dy2st.fft import fft, fftn, fftshift, hfft, ifft, ifftn, ifftshift, ihfft, irfft, irfftn, rfft, rfftn
from dy2st.functions.device_transfer import to
from dy2st.runtime.eager.tensor import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the results of `fft` for n samples, `d` apart."""
    made = _fft.fftfreq(n, d, dtype)
    return made if device is None else to(made, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """Return the frequencies of the results of `rfft` for n samples, `d` apart."""
    made = _fft.rfftfreq(n, d, dtype)
    return made if device is None else to(made, device=device)
