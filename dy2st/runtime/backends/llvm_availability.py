"""Whether there is an LLVM to make native code with; where there is none, that is said once."""

from __future__ import annotations

import warnings

from dy2st.records import record
from dy2st.runtime.aot_cache.environment_key import llvm_folder


class NoLlvm(ImportError):
    """llvmlite is there and cannot be loaded."""


@record
class _Known:
    there: bool | None = None


_known = _Known()


def has_llvm() -> bool:
    """Return whether llvmlite is installed; warn once where it is not. It is loaded where code has to be made only."""
    if _known.there is None:
        _known.there = llvm_folder() is not None
        if not _known.there:
            _warn("is not installed")
    return _known.there


def do_without(error: NoLlvm) -> None:
    """Run everything on the interpreter from now on: llvmlite is there and cannot be loaded."""
    if _known.there:
        _known.there = False
        _warn(f"cannot be loaded ({error})")


def _warn(why: str) -> None:
    text = f"llvmlite {why}: Programs run operation by operation; pip install llvmlite"
    warnings.warn(text, RuntimeWarning, stacklevel=3)
