"""A variant seen as a variant of other alternatives, where the payloads have to be made anew.

`variant_cast` only changes the tag. Where an alternative is made of other values in the new variant (a constant that
became a number, a list that leaves the trace by content), each alternative is taken apart and put together under its
tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.cotangents import close_cond
from dy2st.ir.program import Value
from dy2st.runtime.convert_if import alternative
from dy2st.runtime.structure import encode
from dy2st.runtime.templates import OneOf, is_taken_apart
from dy2st.runtime.variant import Variant


def recast(trace: Any, x: Variant, t: OneOf, kind: Any, places: Sequence[int]) -> Value:
    """Return `x` as a variant of type `kind`; its alternative k becomes `t.alternatives[places[k]]`."""
    return _way(trace, x, t, kind, places, 1)


def _way(trace: Any, x: Variant, t: OneOf, kind: Any, places: Sequence[int], k: int) -> Value:
    b = trace.builder
    if k == len(x.alternatives):
        return b.emit("variant_new", [], {"type": kind, "tag": 0})
    tag = b.emit("variant_tag", [x.value])
    then, other = b.child(), b.child()
    with trace.inside(then, {}):
        template = t.alternatives[places[k]]
        values = encode(trace, alternative(trace, x, k), template)
        if is_taken_apart(template):
            values = [then.emit("tuple_new", values)]
        then.block.results = [then.emit("variant_new", values, {"type": kind, "tag": places[k]})]
    with trace.inside(other, {}):
        other.block.results = [other.use(_way(trace, x, t, kind, places, k + 1))]
    return close_cond(b, b.emit("scalar_eq", [tag, b.scalar(k)]), then, other)[0]
