"""`paddle.audio.functional`: scales of pitch, banks of filters, decibels, windows.

Two formulas relate hertz and mel: that of the HTK book, and M. Slaney's, which is linear below 1000 Hz.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import cast_to, floating
from dy2st.functions.math.comparison import where
from dy2st.functions.math.math import cos, exp, log, log10, maximum
from dy2st.functions.shape.creation import arange, linspace
from dy2st.functions.shape.from_data import to_tensor
from dy2st.missing import missing_in
from dy2st.runtime.eager.tensor import Tensor

_STEP, _FROM = 200.0 / 3.0, 1000.0
_LOG_STEP = math.log(6.4) / 27.0


def hz_to_mel(freq: Any, htk: bool = False) -> Any:
    """Return frequencies, a number or a tensor, in mel.

    >>> round(hz_to_mel(1000.0), 2), round(hz_to_mel(1000.0, htk=True), 2)
    (15.0, 999.99)
    """
    if not isinstance(freq, Tensor):
        return 2595.0 * math.log10(1.0 + freq / 700.0) if htk else _slaney(freq)
    if htk:
        return 2595.0 * log10(1.0 + freq / 700.0)
    high = _FROM / _STEP + log(maximum(freq, freq * 0.0 + 1e-30) / _FROM) / _LOG_STEP
    return where(freq >= _FROM, high, freq / _STEP)


def mel_to_hz(mel: Any, htk: bool = False) -> Any:
    """Return mel, a number or a tensor, in hertz."""
    if not isinstance(mel, Tensor):
        if htk:
            return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
        edge = _FROM / _STEP
        return _FROM * math.exp(_LOG_STEP * (mel - edge)) if mel >= edge else _STEP * mel
    if htk:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    edge = _FROM / _STEP
    return where(mel >= edge, _FROM * exp(_LOG_STEP * (mel - edge)), _STEP * mel)


def _slaney(freq: float) -> float:
    return _FROM / _STEP + math.log(freq / _FROM) / _LOG_STEP if freq >= _FROM else freq / _STEP


def mel_frequencies(
    n_mels: int = 64, f_min: float = 0.0, f_max: float = 11025.0, htk: bool = False, dtype: Any = "float32"
) -> Tensor:
    """Return frequencies in hertz that are equally far apart in mel."""
    return mel_to_hz(linspace(hz_to_mel(f_min, htk), hz_to_mel(f_max, htk), n_mels, dtype), htk)


def fft_frequencies(sr: int, n_fft: int, dtype: Any = "float32") -> Tensor:
    """Return the frequencies of the transform of a real signal."""
    return linspace(0, float(sr) / 2, 1 + n_fft // 2, dtype)


def compute_fbank_matrix(
    sr: int, n_fft: int, n_mels: int = 64, f_min: float = 0.0, f_max: float | None = None, htk: bool = False,
    norm: Any = "slaney", dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """Return triangular filters [n_mels, n_fft // 2 + 1] whose corners are equally far apart in mel.

    With norm="slaney" each has the area 1; with a number its norm of that order is 1.
    """
    corners = mel_frequencies(n_mels + 2, f_min, sr / 2.0 if f_max is None else f_max, htk, "float64")
    corners, bins = corners.unsqueeze(1), fft_frequencies(sr, n_fft, "float64").unsqueeze(0)
    rising = (bins - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - bins) / (corners[2:] - corners[1:-1])
    weights = maximum(rising.minimum(falling), rising * 0.0)
    if norm == "slaney":
        weights = weights * (2.0 / (corners[2:] - corners[:-2]))
    elif isinstance(norm, (int, float)):
        weights = weights / maximum(weights.norm(float(norm), -1, keepdim=True), weights[:, :1] * 0.0 + 1e-12)
    return cast_to(weights, as_dtype(dtype))


def power_to_db(spect: Any, ref_value: float = 1.0, amin: float = 1e-10, top_db: float | None = 80.0) -> Tensor:
    """Return powers in decibels over a reference; nothing lies further below the largest than `top_db`."""
    if amin <= 0 or ref_value <= 0 or (top_db is not None and top_db < 0):
        raise ValueError(
            f"power_to_db: amin and ref_value are positive, top_db not negative: {amin}, {ref_value}, {top_db}"
        )
    x = floating(spect, "power_to_db")
    made = 10.0 * log10(x.clip(amin)) - 10.0 * math.log10(max(ref_value, amin))
    return made if top_db is None else maximum(made, made.max() - top_db)


def create_dct(n_mfcc: int, n_mels: int, norm: str | None = "ortho", dtype: Any = "float32") -> Tensor:
    """Return the discrete cosine transform (of the second kind) as a matrix [n_mels, n_mfcc]."""
    at = arange(n_mels, dtype="float64").unsqueeze(1) + 0.5
    order = arange(n_mfcc, dtype="float64")
    made = cos(at * order * (math.pi / n_mels))
    if norm is None:
        return cast_to(made * 2.0, as_dtype(dtype))
    if norm != "ortho":
        raise ValueError(f"create_dct: norm is 'ortho' or None, not {norm!r}")
    first = where(order == 0.0, order * 0.0 + math.sqrt(0.5), order * 0.0 + 1.0)
    return cast_to(made * first * math.sqrt(2.0 / n_mels), as_dtype(dtype))


def get_window(window: Any, win_length: int, fftbins: bool = True, dtype: Any = "float64") -> Tensor:
    """Return a window by its name, or by (name, parameter); with `fftbins` as one period of a longer one.

    Names are hann, hamming, blackman, bartlett, triang, cosine, bohman, nuttall, rectangular, gaussian (standard
    deviation), exponential (center None, tau), kaiser (beta), general_gaussian (power, standard deviation), tukey
    (part).

    >>> get_window("hann", 4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    name, *options = window if isinstance(window, tuple) else (window,)
    if name not in _WINDOWS:
        raise ValueError(f"there is no window {name!r}; there are {', '.join(_WINDOWS)}")
    if win_length < 1:
        raise ValueError(f"get_window: win_length must be positive, not {win_length}")
    count = win_length + 1 if fftbins and win_length > 1 else win_length
    made = np.ones(1) if count == 1 else _WINDOWS[name](count, *options)
    return to_tensor(np.asarray(made[:win_length], "float64"), dtype)


def _cosines(*weights: float) -> Any:
    def made(count: int) -> np.ndarray:
        angles = np.linspace(-np.pi, np.pi, count)
        return sum(w * np.cos(k * angles) for k, w in enumerate(weights))  # type: ignore[return-value]

    return made


def _bohman(count: int) -> np.ndarray:
    x = np.abs(np.linspace(-1, 1, count))
    made = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    made[[0, -1]] = 0
    return made


def _general_gaussian(count: int, power: float, deviation: float) -> np.ndarray:
    n = np.arange(count) - (count - 1) / 2
    return np.exp(-0.5 * np.abs(n / deviation) ** (2 * power))


def _exponential(count: int, center: float | None = None, tau: float = 1.0) -> np.ndarray:
    return np.exp(-np.abs(np.arange(count) - ((count - 1) / 2 if center is None else center)) / tau)


def _triangle(count: int) -> np.ndarray:
    half = np.arange(1, (count + 1) // 2 + 1)
    made = 2 * half / (count + 1.0) if count % 2 else (2 * half - 1.0) / count
    return np.r_[made, made[-2::-1] if count % 2 else made[::-1]]


def _tukey(count: int, part: float = 0.5) -> np.ndarray:
    if part <= 0:
        return np.ones(count)
    at = np.minimum(np.arange(count), np.arange(count)[::-1])
    edge = part * (count - 1) / 2.0
    return np.where(at < edge, 0.5 * (1 + np.cos(np.pi * (at / edge - 1))), 1.0)


_WINDOWS: dict[str, Any] = {
    "hann": _cosines(0.5, 0.5), "hamming": _cosines(0.54, 0.46), "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411), "bartlett": np.bartlett, "triang": _triangle,
    "bohman": _bohman, "cosine": lambda count: np.sin(np.pi / count * (np.arange(count) + 0.5)), "tukey": _tukey,
    "rectangular": np.ones, "gaussian": lambda count, std=7.0: _general_gaussian(count, 1.0, std),
    "general_gaussian": _general_gaussian, "exponential": _exponential,
    "kaiser": lambda count, beta=12.0: np.kaiser(count, beta),
}  # fmt: skip
__getattr__ = missing_in(__name__)
