"""The package `onnx`, which has ONNX's file format: loaded on first use, and not needed by anything else."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dy2st.errors import MissingExtraError


def onnx_package() -> Any:
    """Return the package; MissingExtraError says which extra has it."""
    try:
        package = import_module("onnx")
        import_module("onnx.numpy_helper")
        import_module("onnx.inliner")
    except ImportError as error:
        raise MissingExtraError("onnx", "onnx", "reading and writing ONNX models") from error
    return package
