"""Sound in WAV files of 16 bits, by Python's own module."""

from __future__ import annotations

import wave
from dataclasses import dataclass
from typing import Any

import numpy as np

from dy2st.functions.shape.from_data import to_tensor
from dy2st.runtime.eager.tensor import Tensor


@dataclass(frozen=True)
class AudioInfo:
    """What a file says of its sound."""

    sample_rate: int
    num_samples: int
    num_channels: int
    bits_per_sample: int
    encoding: str = "PCM_S"


def info(filepath: Any) -> AudioInfo:
    """Return what a WAV file says of its sound."""
    with wave.open(filepath, "rb") as file:
        width = file.getsampwidth() * 8
        return AudioInfo(file.getframerate(), file.getnframes(), file.getnchannels(), width)


def load(
    filepath: Any, frame_offset: int = 0, num_frames: int = -1, normalize: bool = True, channels_first: bool = True
) -> tuple[Tensor, int]:
    """Return the sound of a WAV file of 16 bits, [channels, length] in -1 to 1, and its rate."""
    with wave.open(filepath, "rb") as file:
        if file.getsampwidth() != 2:
            raise ValueError(f"audio.load reads samples of 16 bits, not of {file.getsampwidth() * 8}")
        rate, channels = file.getframerate(), file.getnchannels()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels)
    samples = samples[frame_offset:] if num_frames < 0 else samples[frame_offset : frame_offset + num_frames]
    found = samples.astype("float32") / 32768.0 if normalize else samples
    return to_tensor(np.ascontiguousarray(found.T if channels_first else found)), rate


def save(
    filepath: str, src: Any, sample_rate: int, channels_first: bool = True, encoding: str = "PCM_16",
    bits_per_sample: int | None = 16,
) -> None:  # fmt: skip
    """Write a sound [channels, length] in -1 to 1, or int16, into a WAV file of 16 bits."""
    if bits_per_sample not in (None, 16) or src.ndim != 2:
        raise ValueError(f"audio.save writes a sound of two axes in 16 bits, not {src.shape} in {bits_per_sample}")
    samples = src.numpy().T if channels_first else src.numpy()
    if samples.dtype.kind == "f":
        samples = np.clip(samples * 32768.0, -32768, 32767)
    with wave.open(filepath, "wb") as file:
        file.setparams((samples.shape[1], 2, sample_rate, samples.shape[0], "NONE", "not compressed"))
        file.writeframes(samples.astype("<i2").tobytes())
