"""The formulas of the math library, entered by their modules as they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.runtime.backends.cpu.libm.core.emitter import VectorValue

Formula = Callable[..., VectorValue]

FORMULAS: dict[str, Formula] = {}
"""The formulas of the modules that are loaded, by name."""
EXACT: set[str] = set()
"""Those that are correctly rounded as they are."""
INSIDE: dict[str, str] = {}
"""Those that are part of what is written of an op of another name, by their name: that op."""


def formula(made: Formula | None = None, *, exact: bool = False, inside: str = "") -> Any:
    """Enter a formula: that of the op of its name, whose trait `formula` says the module; or of the op `inside`."""

    def enter(made: Formula) -> Formula:
        name = made.__name__
        if name in FORMULAS:
            raise ValueError(f"two formulas are named {name!r}")
        FORMULAS[name] = made
        if exact:
            EXACT.add(name)
        if inside:
            INSIDE[name] = inside
        return made

    return enter if made is None else enter(made)
