"""A `try` whose handlers would have to catch what only the run raises: refused, so that it runs eagerly.

Tracing runs the `try` itself, so its handlers see what Python raises while tracing. What an operation of the Program
raises later passes them by.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Operation
from dy2st.ops.control import RAISABLE

RAISED: dict[str, tuple[type[Exception], ...]] = {
    "assert": (AssertionError,),
    "scalar_floordiv": (ZeroDivisionError,),
    "scalar_mod": (ZeroDivisionError,),
    "scalar_truediv": (ZeroDivisionError,),
    "scalar_pow": (ZeroDivisionError, OverflowError),
    "scalar_int": (ValueError, OverflowError),
    "variant_get": (UnboundLocalError,),
    "unreachable": (),
}
"""What ops raise in a run; those that are not here raise IndexError or ValueError."""


def refuse_uncaught(builder: Builder, start: int, kinds: tuple[Any, ...]) -> None:
    """Raise StructureError where an operation from number `start` on may raise what `kinds` would catch."""
    for top in builder.block.operations[start:]:
        for operation in (top, *(o for block in top.blocks for o in block.walk())):
            if not any(_overlap(error, kind) for error in _raised(operation) for kind in kinds):
                continue
            place = operation.location
            raise StructureError(
                f"'{operation.name}' may raise when the Program runs, where the `try` around it cannot catch it",
                file=place.file if place else None,
                line=place.line if place else None,
                hint="Test for it with `if` in place of `try`.",
            )


def _raised(operation: Operation) -> tuple[type[Exception], ...]:
    if operation.name == "raise":
        return (RAISABLE[operation.attributes["kind"]],)
    if not operation.op.can_raise([v.type for v in operation.operands], operation.attributes):
        return ()
    return RAISED.get(operation.name, (IndexError, ValueError))


def _overlap(error: type[Exception], kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(error, kind) or issubclass(kind, error))
