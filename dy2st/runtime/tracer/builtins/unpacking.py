"""`a, b, *c = value` where it is known only at run time how many parts the value has, or which of several things it
is.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import StructureError
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.items import item
from dy2st.runtime.tracer.builtins.builtins import len_
from dy2st.runtime.tracer.builtins.iteration import list_
from dy2st.runtime.tracer.control_flow.conditional import if_exp, switch
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.loops.generators import PushIterator
from dy2st.runtime.tracer.values.symbolic_string import fstring
from dy2st.runtime.tracer.values.union import SymbolicList, Variant


def unpack(trace: Trace, value: Any, before: int, after: int | None) -> Any:
    """Return something with the parts that the targets take: `before` of them, then a list and `after` more."""
    if isinstance(value, Variant):
        if after is not None:
            raise StructureError("a value that is one of several things is unpacked into a starred target")
        return switch(trace, value, lambda x: tuple(unpack(trace, x, before, None)))
    if isinstance(value, PushIterator):
        value = list_(trace, value)
    content = trace.content(value)
    if isinstance(content, Variant):
        return trace.on_content(value, switch, lambda: tuple(unpack(trace, value, before, None)))
    length: Any
    if isinstance(content, Tensor) and content.ndim > 0:
        length = content.shape[0]
    elif isinstance(content, SymbolicList):
        length = len_(trace, value)
    else:
        return content
    if isinstance(length, int) and isinstance(content, Tensor):
        return [content[i] for i in range(length)]
    _check(trace, length, before, after)
    first = [item(trace, value, i) for i in range(before)]
    if after is None:
        return first
    rest = item(trace, value, slice(before, -after if after else None))
    if isinstance(rest, Tensor):
        rest = list_(trace, rest)
    return [*first, *rest, *(item(trace, value, i - after) for i in range(after))]


def _check(trace: Trace, length: Any, before: int, after: int | None) -> None:
    """Raise ValueError, when the Program runs, for a wrong number of parts."""
    wanted = before + (after or 0)

    def too_few() -> None:
        expected = f"at least {wanted}" if after is not None else str(wanted)
        raise ValueError(
            fstring(trace, f"not enough values to unpack (expected {expected}, got ", (length, None, None), ")")
        )

    def too_many() -> None:
        raise ValueError(f"too many values to unpack (expected {wanted})")

    def enough() -> None:
        if after is None:
            if_exp(trace, length > wanted, too_many, lambda: None)

    if_exp(trace, length < wanted, too_few, enough)
