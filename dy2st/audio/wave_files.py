"""Sound in WAV files of 16 bits, by Python's own module."""

from __future__ import annotations

import contextlib
import os
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import regular
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
    """Return what a WAV file says of its sound; FileFormatError says what is wrong with one that is damaged."""
    with _opened(filepath) as file:
        width = file.getsampwidth() * 8
        return AudioInfo(file.getframerate(), file.getnframes(), file.getnchannels(), width)


def load(
    filepath: Any, frame_offset: int = 0, num_frames: int = -1, normalize: bool = True, channels_first: bool = True
) -> tuple[Tensor, int]:
    """Return the sound of a WAV file of 16 bits, [channels, length] in -1 to 1, and its rate.

    FileFormatError says what is wrong with a file that is damaged, or has samples of another width.
    """
    with _opened(filepath) as file:
        if file.getsampwidth() != 2:
            raise FileFormatError(f"audio.load reads samples of 16 bits, not of {file.getsampwidth() * 8}")
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


@contextlib.contextmanager
def _opened(filepath: Any) -> Iterator[wave.Wave_read]:
    """Open the WAV file that a path names, or that a file object has."""
    is_path = isinstance(filepath, (str, os.PathLike))
    with contextlib.ExitStack() as stack:
        stack.enter_context(regular.errors_of(os.fspath(filepath) if is_path else "the sound"))
        source = stack.enter_context(regular.opened(filepath))[0] if is_path else filepath
        try:
            yield stack.enter_context(wave.open(source, "rb"))
        except (EOFError, RuntimeError, wave.Error) as error:
            reason = f"{error}" or "it is cut short"
            raise FileFormatError(f"it is no WAV file that can be read: {reason}") from error
