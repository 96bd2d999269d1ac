"""Reverse mode through `variant_cast`.

Several alternatives of a variant may become one (a list that is named there and a list that is made anew). On the way
back the cotangent of that one belongs to the alternative that the variant was, so its tag is kept where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.control import put_before
from dy2st.autodiff.cotangents import close_cond
from dy2st.autodiff.reverse import CONTROL, Frontier
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import VariantType, is_differentiable, tangent_type


def pull_cast(frontier: Frontier, operation: Operation, cts: Sequence[Value | None]) -> None:
    """Emit the cotangent of the variant: that of the other variant under the tag that this one had."""
    ((value,), (ct,)), b = (operation.operands, cts), frontier.b
    assert isinstance(value.type, VariantType)
    assert ct is not None
    if value not in frontier.active:
        return
    tags: tuple[int, ...] = operation.attributes["tags"]
    came_from: dict[int, list[int]] = {}
    for old, (new, kind) in enumerate(zip(tags, value.type.alternatives, strict=True)):
        if new and is_differentiable(kind):  # what the other variant cannot be became unset
            came_from.setdefault(new, []).append(old)
    assert isinstance(ct.type, VariantType)
    back = [0] * len(ct.type.alternatives)
    for new, olds in came_from.items():
        back[new] = olds[0]
    attributes = {"type": tangent_type(value.type), "tags": tuple(back)}
    total = b.emit("variant_cast", [ct], attributes)
    others = [(new, old) for new, olds in came_from.items() for old in olds[1:]]
    tag = put_before(operation, "variant_tag", [value], {}) if others else None
    for new, old in others:
        assert tag is not None
        back[new] = old
        then, other = b.child(), b.child()
        then.block.results = [then.emit("variant_cast", [ct], {**attributes, "tags": tuple(back)})]
        other.block.results = [other.use(total)]
        total = close_cond(b, b.scalar_eq(tag, old), then, other)[0]
    frontier.add(value, total, fresh=True)


CONTROL["variant_cast"] = pull_cast
