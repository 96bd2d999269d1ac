"""`paddle.utils.cpp_extension`: operators in C++ or CUDA against Paddle's headers, which cannot be built here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.missing import missing_in

_INSTEAD = (
    "operators written against Paddle's C++ headers cannot be built here: write the operator with paddle's functions, "
    "which to_static compiles, or as a paddle.autograd.PyLayer"
)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"{name}: {_INSTEAD}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise NotImplementedError, which says what to do instead."
    return refuse


setup, load, CppExtension, CUDAExtension = map(_refused, ("setup", "load", "CppExtension", "CUDAExtension"))
load_op_meta_info_and_register_op = _refused("load_op_meta_info_and_register_op")


class BuildExtension:
    """The command of setuptools that would build operators."""

    with_options = staticmethod(_refused("BuildExtension.with_options"))

    def __init__(self, *args: Any, **keywords: Any):
        raise NotImplementedError(f"BuildExtension: {_INSTEAD}")


def get_build_directory(verbose: bool = False) -> str:
    """Return where operators would be built: nowhere."""
    return ""


__getattr__ = missing_in(__name__)
