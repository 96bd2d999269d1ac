"""What a module says of a name that it has not: near misses, and that some hardware is not here at all."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from dy2st.paths import submodule

_SPARSE = re.compile(r"sparse|^(coalesce|cols|crows|dense_dim|indices|is_coalesced|nnz|rows|values)$")
_OTHER_HARDWARE = re.compile(r"(?<![a-z])(xpu|npu|ipu|mlu|gcu|rocm|cinn|custom_?device|custom_?place)", re.IGNORECASE)


def no_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module has not; it says what is near, or that the hardware is not here.

    >>> print(no_attribute("dy2st", "mathmul", ["matmul", "add"]))
    module 'dy2st' has no attribute 'mathmul'; did you mean 'matmul'?
    """
    text = f"module {module!r} has no attribute {name!r}"
    if _OTHER_HARDWARE.search(name):
        return AttributeError(f"{text}: dy2st runs on CPUs and CUDA devices, not on that hardware", name=name)
    if name.startswith("_"):
        return AttributeError(text, name=name)
    return NoAttribute(text, name, lambda: _hint(module, name, known))


def _hint(owner: str, name: str, known: Iterable[str]) -> str:
    if _SPARSE.search(name):
        return "a Tensor is dense, x.to_sparse_coo() makes one of paddle.sparse of it"
    import difflib

    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"dir({owner}) lists the names there are"


class NoAttribute(AttributeError):
    """A name that a module or tensor has not, shown as the AttributeError that it is.

    The hint is looked for where the error is shown: `hasattr` shows none, nor does an import, which asks a package for
    a name before it looks for a module.
    """

    def __init__(self, text: str, name: str, hint: Callable[[], str]):
        super().__init__(text, name=name)
        self._hint = hint

    def __str__(self) -> str:
        (text,) = self.args
        return f"{text}; {self._hint()}"

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


NoAttribute.__module__, NoAttribute.__qualname__ = "builtins", "AttributeError"


def no_tensor_attribute(name: str, known: Callable[[], Iterable[str]]) -> AttributeError:
    """Return the error for an attribute that a tensor has not."""
    return NoAttribute(f"a Tensor has no attribute {name!r}", name, lambda: _hint("paddle.Tensor", name, known()))


def missing_in(module: str, elsewhere: str = "") -> Callable[[str], Any]:
    """Return a module's `__getattr__`, which has no names of its own but modules under Paddle's paths.

    Public names are looked up in the module `elsewhere` as well, where Paddle keeps under one path what is in several
    files here.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if (found := submodule(module, name)) is not None:
            return found
        if elsewhere and not name.startswith("_") and hasattr(found := import_module(elsewhere), name):
            return getattr(found, name)
        raise no_attribute(module, name, [n for n in vars(sys.modules[module]) if not n.startswith("_")])

    return __getattr__
