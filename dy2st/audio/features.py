"""`paddle.audio.features`: layers that make spectra of signals [batch, length]: [batch, frequencies, frames]."""

from __future__ import annotations

from typing import Any

from dy2st.audio.functional import compute_fbank_matrix, create_dct, get_window, power_to_db
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.math import abs
from dy2st.functions.shape.manipulation import transpose
from dy2st.missing import missing_in
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.tensor import Tensor
from dy2st.signal import stft


class Spectrogram(Layer):
    """|stft| to some power.

    >>> import dy2st as paddle
    >>> paddle.audio.features.Spectrogram(n_fft=64, hop_length=32)(paddle.ones([1, 128])).shape
    [1, 33, 5]
    """

    def __init__(
        self, n_fft: int = 512, hop_length: int | None = 512, win_length: int | None = None, window: Any = "hann",
        power: float = 1.0, center: bool = True, pad_mode: str = "reflect", dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__()
        if power <= 0:
            raise ValueError(f"Spectrogram: power must be positive, not {power}")
        self.power = power
        self.n_fft, self.hop_length = n_fft, hop_length
        self.win_length, self._how = win_length or n_fft, (center, pad_mode)
        self.register_buffer("fft_window", get_window(window, self.win_length, True, dtype))

    def forward(self, x: Tensor) -> Tensor:
        made = abs(stft(x, self.n_fft, self.hop_length, self.win_length, self.fft_window, *self._how))
        return made if self.power == 1.0 else made**self.power


class MelSpectrogram(Layer):
    """A spectrum seen through triangular filters: [batch, n_mels, frames]."""

    def __init__(
        self, sr: int = 22050, n_fft: int = 2048, hop_length: int | None = 512, win_length: int | None = None,
        window: Any = "hann", power: float = 2.0, center: bool = True, pad_mode: str = "reflect", n_mels: int = 64,
        f_min: float = 50.0, f_max: float | None = None, htk: bool = False, norm: Any = "slaney",
        dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__()
        self._spectrogram = Spectrogram(n_fft, hop_length, win_length, window, power, center, pad_mode, dtype)
        self.n_mels, self.f_min, self.f_max = n_mels, f_min, sr // 2 if f_max is None else f_max
        bank = compute_fbank_matrix(sr, n_fft, n_mels, f_min, self.f_max, htk, norm, dtype)
        self.register_buffer("fbank_matrix", bank)

    def forward(self, x: Tensor) -> Tensor:
        return matmul(self.fbank_matrix, self._spectrogram(x))


class LogMelSpectrogram(Layer):
    """`MelSpectrogram` in decibels."""

    def __init__(
        self, sr: int = 22050, n_fft: int = 512, hop_length: int | None = None, win_length: int | None = None,
        window: Any = "hann", power: float = 2.0, center: bool = True, pad_mode: str = "reflect", n_mels: int = 64,
        f_min: float = 50.0, f_max: float | None = None, htk: bool = False, norm: Any = "slaney",
        ref_value: float = 1.0, amin: float = 1e-10, top_db: float | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__()
        self._melspectrogram = MelSpectrogram(sr, n_fft, hop_length, win_length, window, power, center, pad_mode,
                                              n_mels, f_min, f_max, htk, norm, dtype)  # fmt: skip
        self._decibels = ref_value, amin, top_db

    def forward(self, x: Tensor) -> Tensor:
        return power_to_db(self._melspectrogram(x), *self._decibels)


class MFCC(Layer):
    """The cosine transform of `LogMelSpectrogram`: [batch, n_mfcc, frames]."""

    def __init__(
        self, sr: int = 22050, n_mfcc: int = 40, n_fft: int = 512, hop_length: int | None = None,
        win_length: int | None = None, window: Any = "hann", power: float = 2.0, center: bool = True,
        pad_mode: str = "reflect", n_mels: int = 64, f_min: float = 50.0, f_max: float | None = None,
        htk: bool = False, norm: Any = "slaney", ref_value: float = 1.0, amin: float = 1e-10,
        top_db: float | None = None, dtype: Any = "float32",
    ):  # fmt: skip
        super().__init__()
        if n_mfcc > n_mels:
            raise ValueError(f"MFCC: n_mfcc is at most n_mels, not {n_mfcc} of {n_mels}")
        self._log_melspectrogram = LogMelSpectrogram(
            sr, n_fft, hop_length, win_length, window, power, center, pad_mode, n_mels, f_min, f_max, htk, norm,
            ref_value, amin, top_db, dtype,
        )  # fmt: skip
        self.register_buffer("dct_matrix", create_dct(n_mfcc, n_mels, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        spectra = transpose(self._log_melspectrogram(x), [0, 2, 1])
        return transpose(matmul(spectra, self.dct_matrix), [0, 2, 1])


__getattr__ = missing_in(__name__)
