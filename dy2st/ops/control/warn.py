"""`warn` and `log_record`: what Python's `warnings.warn` and `logging` do, in each run and on the path that runs."""

from __future__ import annotations

import builtins
import logging
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
    is_hushed = True
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


class LogRecord(Op):
    """Log the text that `template` makes of the operands, at a level, for the line `at` (a file and a number).

    A logger with no name is what the functions of `logging` use, which set up the root's first.
    """

    name = "log_record"
    attributes = ("template", "logger", "level", "at")
    place = "at"
    differentiable = False
    effect = True

    def infer(self, *operands: Type, template: tuple[Part, ...], logger: str, level: int,
              at: tuple[str, int]) -> tuple[()]:  # fmt: skip
        return ()

    def eval(self, xp: Any, *operands: Any, template: tuple[Part, ...], logger: str, level: int,
             at: tuple[str, int]) -> Any:  # fmt: skip
        if not logger and not logging.root.handlers:
            logging.basicConfig()
        found = logging.getLogger(logger)
        if found.isEnabledFor(level):
            text = "".join(render(template, operands))
            found.handle(found.makeRecord(found.name, level, *at, text, (), None))
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def _module_of(file: str) -> dict[str, Any]:
    """Return the globals of the module that a file defines; an empty dict where none is loaded."""
    nothing: dict[str, Any] = {}
    found = (vars(m) for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file)
    return next(found, nothing)
