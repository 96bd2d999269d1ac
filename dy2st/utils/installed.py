"""Whether something is installed, and works."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

from dy2st import version
from dy2st.functions.shape.creation import ones


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """Return a module; ImportError with `err_msg`, or what to install, where it is not there.

    >>> try_import("json").__name__
    'json'
    """
    try:
        return import_module(module_name)
    except ImportError:
        text = err_msg or f"{module_name} is needed here and is not installed: pip install {module_name}"
        raise ImportError(text) from None


def run_check() -> None:
    """Compute a product and its gradient, and say that it worked.

    >>> run_check()
    dy2st works on this machine.
    """
    x = ones([2, 3])
    x.stop_gradient = False
    (x @ ones([3, 4])).sum().backward()
    if x.grad is None or x.grad.tolist() != [[4.0] * 3] * 2:
        raise RuntimeError(f"the gradient of a product is wrong on this machine: {x.grad}")
    print("dy2st works on this machine.")


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Raise RuntimeError unless Paddle's release whose interface this is lies between two others, both included.

    Parameters
    ----------
    min_version, max_version
        One to four numbers with dots between; ValueError for other texts, TypeError for what is no text.

    >>> require_version("2.0.0", "3.9")
    """
    least, most = _release(min_version), _release(max_version) if max_version is not None else None
    here = _release(version.full_version)
    if here < least or (most is not None and here > most):
        bounds = f"{min_version} at least" if max_version is None else f"{min_version} to {max_version}"
        raise RuntimeError(f"PaddlePaddle {bounds} is wanted; the interface here is that of {version.full_version}")


def _release(text: str) -> tuple[int, ...]:
    if not isinstance(text, str):
        raise TypeError(f"require_version: a version is a text, not {text!r}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", text):
        raise ValueError(f"require_version: {text!r} is not a version like '1.5.2.0'")
    numbers = tuple(int(number) for number in text.split("."))
    return numbers + (0,) * (4 - len(numbers))
