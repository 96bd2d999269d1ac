"""`paddle.signal`: signals cut into overlapping frames and put together again, and their short-time transforms."""

from __future__ import annotations

from typing import Any

from dy2st import fft
from dy2st.functions.core.operands import floating, tensor
from dy2st.functions.math.complex_numbers import real, whole
from dy2st.functions.shape.creation import arange, ones, zeros
from dy2st.functions.shape.gather_scatter import index_add
from dy2st.functions.shape.manipulation import moveaxis, reshape, transpose
from dy2st.functions.shape.stacking import unfold
from dy2st.missing import missing_in
from dy2st.nn.functional.padding import pad
from dy2st.runtime.eager.tensor import Tensor


def frame(x: Any, frame_length: int, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the frames of a signal, `hop_length` apart: [..., frame_length, frames], or for axis 0 [frames, ...].

    >>> import dy2st as paddle
    >>> paddle.signal.frame(paddle.arange(5), 3, 2).tolist()
    [[0, 2], [1, 3], [2, 4]]
    """
    x = tensor(x, "frame")
    _check(axis, hop_length, "frame")
    if axis == 0:
        return moveaxis(unfold(x, 0, frame_length, hop_length), -1, 1)
    return moveaxis(unfold(x, x.ndim - 1, frame_length, hop_length), -1, -2)


def overlap_add(x: Any, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the sum of frames, each `hop_length` after the one before: what `frame` gave, [..., length]."""
    x = tensor(x, "overlap_add")
    _check(axis, hop_length, "overlap_add")
    if axis == 0:
        rest = list(range(2, x.ndim))
        return moveaxis(overlap_add(transpose(x, [*rest, 1, 0]), hop_length), -1, 0)
    length, count = x.shape[-2:]
    places = arange(length).unsqueeze(1) + arange(count) * hop_length
    flat = reshape(x, [*x.shape[:-2], length * count])
    start = zeros([*x.shape[:-2], (count - 1) * hop_length + length], x.dtype)
    return index_add(start, reshape(places, [length * count]), x.ndim - 2, flat)


def stft(
    x: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool = True,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the transforms of windowed frames of signals [length] or [batch, length]: [..., frequencies, frames].

    Parameters
    ----------
    n_fft, hop_length, win_length
        The length of a frame, how far frames are apart (a quarter of it by default), and the length of the window,
        which stands in the middle of a frame.
    center, pad_mode
        Whether frame t has its middle at t * hop_length, the ends being filled up in this mode of `pad`.
    normalized, onesided
        Whether transforms are divided by the root of n_fft; whether of real signals the first half is given.

    >>> import dy2st as paddle
    >>> paddle.signal.stft(paddle.ones([8]), n_fft=4).shape
    [3, 9]
    """
    x = floating(x, "stft")
    window, hop = _window(x, n_fft, hop_length, win_length, window, "stft")
    if x.ndim not in (1, 2):
        raise ValueError(f"stft needs signals [length] or [batch, length], not {x.shape}")
    if x.dtype.is_complex and onesided:
        raise ValueError("stft: complex signals have no half that stands for all; give onesided=False")
    signals = x if x.ndim == 2 else x.unsqueeze(0)
    if center:
        side = n_fft // 2
        signals = pad(signals.unsqueeze(1), [side, side], mode=pad_mode, data_format="NCL").squeeze(1)
    frames = moveaxis(frame(signals, n_fft, hop), -2, -1) * window
    made = (fft.rfft if onesided else fft.fft)(frames, norm="ortho" if normalized else "backward")
    found = moveaxis(made, -1, -2)
    return found if x.ndim == 2 else found.squeeze(0)


def istft(
    x: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool = True, length: int | None = None,
    return_complex: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return the signals whose `stft`, made with the same arguments, x is; `length` elements of them."""
    x = whole(x, "istft")
    if x.ndim not in (2, 3):
        raise ValueError(f"istft needs [frequencies, frames], in a batch or not, not {x.shape}")
    if return_complex and onesided:
        raise ValueError("istft: return_complex=True needs onesided=False")
    window, hop = _window(real(x), n_fft, hop_length, win_length, window, "istft")
    spectra = moveaxis(x if x.ndim == 3 else x.unsqueeze(0), -1, -2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = fft.ifft(spectra, norm=norm)
    else:
        frames = fft.irfft(spectra if onesided else spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    signals = overlap_add(moveaxis(frames * window, -1, -2), hop)
    weights = overlap_add(moveaxis(ones([spectra.shape[1], 1], window.dtype) * (window * window), 0, 1), hop)
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else signals.shape[-1] - first
    signals = signals[:, first:last] / weights[first:last]
    return signals if x.ndim == 3 else signals.squeeze(0)


def _window(
    x: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Any, name: str
) -> tuple[Tensor, int]:
    """Return the window, filled up to the length of a frame, and how far frames are apart."""
    width = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    if not 0 < width <= n_fft or hop < 1:
        raise ValueError(f"{name}: a window of {width} and a hop of {hop} do not go with frames of {n_fft}")
    made = ones([width], x.dtype) if window is None else tensor(window, name, x.dtype)
    if made.shape != [width]:
        raise ValueError(f"{name}: the window has shape {made.shape}, not [{width}]")
    before = (n_fft - width) // 2
    return (pad(made, [before, n_fft - width - before]) if width < n_fft else made), hop


def _check(axis: int, hop_length: int, name: str) -> None:
    if axis not in (0, -1):
        raise ValueError(f"{name}: axis must be 0 or -1, not {axis}")
    if hop_length < 1:
        raise ValueError(f"{name}: hop_length must be positive, not {hop_length}")


__getattr__ = missing_in(__name__)
