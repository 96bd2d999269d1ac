"""`warn`: what Python's `warnings.warn` does, in each run and on the path that runs."""

from __future__ import annotations

import builtins
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from dy2st.formatting import Part, render
from dy2st.ir.types import Type
from dy2st.ops.core.base import Op, Sample

CATEGORIES: dict[str, type[Warning]] = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Warning)
}
"""The classes of warnings that a Program can name."""


class Warn(Op):
    """Warn with the text that `template` makes of the operands, at the line `at` (a file and a number)."""

    name = "warn"
    attributes = ("template", "category", "at")
    place = "at"
    differentiable = False
    effect = True

    def infer(self, *operands: Type, template: tuple[Part, ...], category: str, at: tuple[str, int]) -> tuple[()]:
        return ()

    def eval(self, xp: Any, *operands: Any, template: tuple[Part, ...], category: str, at: tuple[str, int]) -> Any:
        text = "".join(render(template, operands))
        file, line = at
        scope = _module_of(file)
        name = scope.get("__name__") or os.path.splitext(os.path.basename(file))[0]
        registry = scope.setdefault("__warningregistry__", {})  # Python's memory of what was shown already
        warnings.warn_explicit(text, CATEGORIES[category], file, line, name, registry)
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def _module_of(file: str) -> dict[str, Any]:
    """Return the globals of the module that a file defines; an empty dict where none is loaded."""
    nothing: dict[str, Any] = {}
    found = (vars(m) for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file)
    return next(found, nothing)
