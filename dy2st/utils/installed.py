"""Whether something is installed, and works."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

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
