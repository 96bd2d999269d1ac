"""What becomes of operations that may raise: what was handed over, and what they give where nothing was.

The second is not made at once: whoever asks says in which block, one that stands where it is known that nothing was
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.autodiff.cotangents import as_optional, close_cond
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import NONE, TupleType, Type, VariantType, optional
from dy2st.ops.control.control_flow import outward
from dy2st.records import record

Mapping = dict[Value, Value]
DONE = "what follows a raise was asked for"
"""The message of reads of optionals that cannot fail, because they stand where nothing was raised."""


class Behind(dict[Value, Value]):
    """Copies of values in a block behind one that may have raised: from around it, or out of optionals."""

    def __init__(self, b: Builder, around: Mapping, optionals: Mapping):
        self.b, self.around, self.optionals = b, around, optionals

    def __missing__(self, value: Value) -> Value:
        found = self.optionals.get(value)
        made = self[value] = self.around[value] if found is None else _payload(self.b, found, value)
        return made


def _payload(b: Builder, found: Value, of: Value) -> Value:
    if isinstance(of.type, VariantType):
        return found
    made = b.emit("variant_get", [found], {"tag": 1, "message": DONE})
    made.name = of.name
    b.retype(made, of.type)
    return made


@record
class TryOutcome:
    """What was handed over, unset where nothing was raised, and what emits the results of values in that case."""

    raised: Value
    values: Sequence[Value]
    finish: Callable[[Builder], list[Value]]
    at_hand: Mapping | None
    """The values where nothing is left to do for them: copies, or optionals of these."""

    def optionals(self, b: Builder) -> list[Value]:
        """Emit the results as optionals, unset where something was raised."""
        if self.at_hand is not None:
            return wrapped(b, [self.at_hand[v] for v in self.values], self.values)
        going, caught = b.child(), b.child()
        going.block.results = wrapped(going, self.finish(going), self.values)
        caught.block.results = unset(caught, self.values)
        return close_cond(b, nothing_raised(b, self.raised), going, caught)


def wrapped(b: Builder, made: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Emit optionals of what was made for values; what is one already stays."""
    return [as_optional(b, one, kind_of(b, v)) for one, v in zip(made, values, strict=True)]


def unset(b: Builder, values: Sequence[Value]) -> list[Value]:
    """Emit optionals for values which are not there."""
    return [as_optional(b, None, kind_of(b, v)) for v in values]


def kind_of(b: Builder, value: Value) -> VariantType:
    """Return the type of an optional of a value, with extents of its own."""
    kind = b.named(outward(optional(value.type), set()))
    assert isinstance(kind, VariantType)
    return kind


def kind_of_raised(b: Builder, handed: Sequence[Sequence[Type]]) -> VariantType:
    """Return the type of what is handed over to one of several `try`."""
    packed = (TupleType(tuple(outward(t, set()) for t in types)) if types else NONE for types in handed)
    return VariantType((optional(NONE).alternatives[0], *map(b.named, packed)))


def handed_over(b: Builder, kind: VariantType, tag: int, values: Sequence[Value]) -> Value:
    """Emit what values hand over to the `try` with this tag; to none with 0."""
    packed = [b.emit("tuple_new", values)] if values else []
    return b.emit("variant_new", packed, {"type": kind, "tag": tag})


def taken_over(b: Builder, raised: Value, tag: int, arguments: Sequence[Value]) -> list[Value]:
    """Emit what the handler with these arguments takes over."""
    if not arguments:
        return []
    packed = b.emit("variant_get", [raised], {"tag": tag, "message": DONE})
    parts = b.operation("tuple_get", [packed]).results
    for part, argument in zip(parts, arguments, strict=True):
        b.retype(part, argument.type)
    return parts


def nothing_raised(b: Builder, raised: Value) -> Value:
    """Emit whether operations came to their end."""
    return raised_for(b, raised, 0)


def raised_for(b: Builder, raised: Value, tag: int) -> Value:
    """Emit whether the `try` with this tag is the one to take over."""
    return b.emit("scalar_eq", [b.emit("variant_tag", [raised]), b.scalar(tag)])
