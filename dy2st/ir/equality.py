"""Whether two Programs are the same but for names: what a round trip through text or a file must keep."""

from __future__ import annotations

from typing import Any

from dy2st.ir.literals import is_array
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import Type

Pairs = dict[Value, Value]


def structurally_equal(a: Program | Block, b: Program | Block, *, locations: bool = False, names: bool = False) -> bool:
    """Return whether two Programs (or blocks) have the same operations on the same values.

    Types, attributes (arrays bit by bit) and function names count; `locations` and the hints for value `names` only
    where asked for.
    """
    compare = _Compare(locations, names)
    if isinstance(a, Block) and isinstance(b, Block):
        return compare.blocks(a, b)
    if not isinstance(a, Program) or not isinstance(b, Program):
        return False
    if a.entry != b.entry or a.functions.keys() != b.functions.keys():
        return False
    return all(compare.blocks(block, b.functions[name]) for name, block in a.functions.items())


def same_value(a: Any, b: Any) -> bool:
    """Return whether two attribute values are the same: of one Python type, NaN equal to NaN, arrays bit by bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_value, a, b))  # pyright: ignore[reportUnknownArgumentType]
    if is_array(a):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return repr(a) == repr(b)
    return same_type(a, b) if isinstance(a, Type) else a == b


def same_type(a: Type, b: Type) -> bool:
    """Return whether two types are the same; constants in them bit by bit."""
    return a is b or (type(a) is type(b) and str(a) == str(b))


class _Compare:
    def __init__(self, locations: bool, names: bool):
        self.locations, self.names = locations, names

    def attribute(self, a: Operation, b: Operation, name: str) -> bool:
        """Return whether an attribute is the same; a place in the user's source counts as locations do."""
        is_place = name == a.op.place and not self.locations
        return is_place or same_value(a.attributes[name], b.attributes[name])

    def blocks(self, a: Block, b: Block) -> bool:
        pairs: Pairs = {}
        return (
            self.define(a.arguments, b.arguments, pairs)
            and len(a.operations) == len(b.operations)
            and all(self.operations(p, q, pairs) for p, q in zip(a.operations, b.operations, strict=True))
            and self.same(a.results, b.results, pairs)
        )

    def operations(self, a: Operation, b: Operation, pairs: Pairs) -> bool:
        return (
            a.name == b.name
            and (not self.locations or a.location == b.location)
            and self.same(a.operands, b.operands, pairs)
            and a.attributes.keys() == b.attributes.keys()
            and all(self.attribute(a, b, name) for name in a.attributes)
            and len(a.blocks) == len(b.blocks)
            and all(map(self.blocks, a.blocks, b.blocks))
            and self.define(a.results, b.results, pairs)
        )

    def define(self, a: list[Value], b: list[Value], pairs: Pairs) -> bool:
        pairs.update(zip(a, b, strict=False))
        return len(a) == len(b) and all(
            same_type(p.type, q.type) and (not self.names or p.name == q.name) for p, q in zip(a, b, strict=True)
        )

    @staticmethod
    def same(a: list[Value], b: list[Value], pairs: Pairs) -> bool:
        return len(a) == len(b) and all(pairs.get(p) is q for p, q in zip(a, b, strict=True))
