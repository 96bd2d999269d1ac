"""The error for an operation with sub-blocks that derivatives have no rule for."""

from __future__ import annotations

from dy2st.errors import StructureError
from dy2st.ir.program import Operation


def no_rule(operation: Operation) -> StructureError:
    """Return the error for a derivative that would go through `operation` while a Program is built.

    A finished Program is differentiated without `try` (`unwinding.py`); one that is being built still has it.
    """
    place = operation.location
    return StructureError(
        f"a derivative that is taken inside of a Program goes through '{operation.name}', for which there is no rule",
        file=place.file if place else None,
        line=place.line if place else None,
        hint="take the derivative outside of the converted function",
    )
