"""The text of Python objects in a trace: by the converted methods of the user's classes, else behind the barrier."""

from __future__ import annotations

from typing import Any

from dy2st.formatting import Part
from dy2st.ir.program import Value
from dy2st.kinds import type_of
from dy2st.runtime.eager.tensor import needs_value
from dy2st.runtime.tracer.access.operators import users_dunder
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.container_state import Spliced
from dy2st.runtime.tracer.effects.reach import is_atom
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_string import text_part, written
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def text_of_object(trace: Trace, x: Any, conversion: str, spec: str) -> tuple[Part, list[Value]]:
    """Return the part of an abstract value that stands for the text of a Python object, and its operands."""
    if isinstance(x, (SymbolicList, Variant, Spliced)):
        raise needs_value("the text of a list that only the run will tell")
    if is_atom(x):
        return written(x, conversion, spec), []
    if conversion == "" and (own := users_dunder(type_of(x), "__format__")) is not None:
        return text_part(trace, trace.callable(own)(x, spec), "s")
    own = _text_method(type_of(x), conversion)
    if own is not None:
        return text_part(trace, trace.callable(own)(x), "a" if conversion == "a" else "s", spec)
    return natively(trace, written, x, conversion, spec), []


def _text_method(kind: type, conversion: str) -> Any:
    """Return the method of the user's that gives the text of an object; None where a library does."""
    if conversion not in ("r", "a"):
        own = users_dunder(kind, "__str__")
        if own is not None or kind.__str__ is not object.__str__:
            return own
    return users_dunder(kind, "__repr__")
