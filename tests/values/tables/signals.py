"""Frames of signals and short-time Fourier transforms."""

import numpy as np

from tests.values.operands import floats
from tests.values.row import row

X, LONG = floats(11), floats(2, 20)
WINDOW = floats(4, low=0.5, high=1.5)


def _frames(x, length, hop):
    return np.lib.stride_tricks.sliding_window_view(x, length, -1)[..., ::hop, :]


def _stft(x, n, hop, window, side, transform=np.fft.rfft, **how):
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(side, side)], "reflect") if side else x
    return transform(_frames(padded, n, hop) * window, **how).swapaxes(-1, -2)


WIDE = np.pad(WINDOW, (1, 1))
SPECTRA = _stft(LONG, 6, 2, WIDE, 3).astype(np.complex64).astype(np.complex128)
ROWS = [
    row("signal.frame", (X, 4, 3), _frames(X, 4, 3).T),
    row("signal.frame", (LONG, 4, 2), _frames(LONG, 4, 2).swapaxes(1, 2)),
    row("signal.frame", (LONG.T.copy(), 4, 2, 0), np.moveaxis(_frames(LONG, 4, 2), 0, -1)),
    row("signal.overlap_add", (_frames(X, 4, 1).T.copy(), 1), np.convolve(np.ones(8), np.ones(4)) * X),
    row("signal.overlap_add", (np.moveaxis(_frames(LONG, 4, 4), 0, -1).copy(), 4, 0), LONG.T),
    row("signal.stft", (LONG, 4), _stft(LONG, 4, 1, 1.0, 2)),
    row("signal.stft", (X, 6), _stft(X, 6, 2, WIDE, 3), hop_length=2, win_length=4, window=WINDOW).only("float64"),
    row("signal.stft", (LONG, 4), _stft(LONG, 4, 2, 1.0, 0, norm="ortho"), hop_length=2, center=False, normalized=True),
    row("signal.stft", (LONG, 4), _stft(LONG, 4, 1, 1.0, 2, np.fft.fft), onesided=False),
    row("signal.istft", (SPECTRA, 6), LONG, hop_length=2, win_length=4, window=WINDOW).only("float64"),
    row("signal.istft", (_stft(X, 4, 1, 1.0, 2), 4), X[:9], length=9),
    row("signal.istft", (_stft(X, 4, 1, 1.0, 2, np.fft.fft), 4), X, onesided=False),
    row("signal.istft", (_stft(X, 4, 1, 1.0, 0, norm="ortho"), 4), X, center=False, normalized=True),
    row("signal.istft", (_stft(X, 4, 1, 1.0, 2, np.fft.fft), 4), X + 0j, onesided=False, return_complex=True),
]  # fmt: skip
ROWS = [r.but(tolerance=(1e-6, 1e-4)) for r in ROWS]
