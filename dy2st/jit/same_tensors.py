"""Which results of a Program are the very tensor that is one of its arguments: a call gives that tensor, no copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.runtime.templates import types_of
from dy2st.runtime.tensor import Tensor


def arguments_among(
    trace: Any, output: Sequence[Value], writes: Sequence[Any], values: Sequence[Value], order: Sequence[Value]
) -> tuple[tuple[int, int], ...]:
    """Return which results, of the output and of what is written, are which argument, by number.

    An argument that was written in place is still that tensor.
    """
    places = {v: i for i, v in enumerate(order) if isinstance(v.type, TensorType)}
    for key, new in trace.log.overlays[0].items():
        if key[0] == "data" and isinstance(new, Tensor) and isinstance(new._payload, Value):
            slot, state = trace.arguments.get(key[1]), trace.slots.get(key[1])
            if slot is not None:
                places[new._payload] = slot.index
            elif state is not None:
                places[new._payload] = order.index(state[1])
    named = [key[0] not in ("data", "grad", "grad_sum") for key, _, t in writes for _ in types_of(t)]
    results = zip([True] * len(output) + named, [*output, *values], strict=True)
    return tuple((i, places[v]) for i, (is_named, v) in enumerate(results) if is_named and v in places)
