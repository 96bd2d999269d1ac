"""`paddle.vision.image`: pictures read from files, by Pillow or OpenCV where one is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dy2st.missing import missing_in

_BACKENDS = ("pil", "cv2", "tensor")
_chosen = ["pil"]


def set_image_backend(backend: str) -> None:
    """Say what `image_load` gives without a backend: "pil", "cv2" or "tensor"."""
    _chosen[0] = _known(backend)


def get_image_backend() -> str:
    """Return what `image_load` gives without a backend.

    >>> get_image_backend()
    'pil'
    """
    return _chosen[0]


def image_load(path: str, backend: str | None = None) -> Any:
    """Return a picture of Pillow's ("pil"), or an array of BGR bytes ("cv2"); "tensor" is that array as a tensor.

    ModuleNotFoundError where the library is not installed.
    """
    kind = _known(backend or _chosen[0])
    if kind == "pil":
        return import_module("PIL.Image").open(path)
    array = import_module("cv2").imread(path)
    return import_module("dy2st").to_tensor(array) if kind == "tensor" else array


def _known(backend: str) -> str:
    if backend not in _BACKENDS:
        raise ValueError(f"an image backend is one of {', '.join(_BACKENDS)}, not {backend!r}")
    return backend


__getattr__ = missing_in(__name__)
