"""What derivatives of branches and lists are made of: optionals of tensors, and lists of them that grow on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import int64
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ListType, TensorType, Type, VariantType, is_optional, payload
from dy2st.onnx.writing.control_flow import graph_of
from dy2st.onnx.writing.leaves import Leaf, Refused, leaves, place_of
from dy2st.onnx.writing.rules.lists import repeated
from dy2st.onnx.writing.rules.shapes import zeros
from dy2st.onnx.writing.rules.variants import placeholders, variant
from dy2st.onnx.writing.writer import Names, Writer, rule


def either(g: Writer, test: str, kinds: Sequence[Leaf], then: Callable[[], Names], other: Callable[[], Names]) -> Names:
    """Write one of two ways to get values."""
    graphs, reads = [], set[str]()
    for name, way in (("then", then), ("else", other)):
        graph, more = graph_of(g, name, [], lambda way=way: list(zip(way(), kinds, strict=True)))
        graphs.append(graph)
        reads |= more
    return g.node("If", [test], len(kinds), reads, then_branch=graphs[0], else_branch=graphs[1])


def _is(g: Writer, tag: str, number: int) -> str:
    return g.emit("Equal", tag, g.constant(number, int64))


def _added(g: Writer, t: Type, a: Names, b: Names) -> Names:
    """Write the sum of two optionals of type `t`: tag and payload."""
    if not is_optional(t) or not isinstance(payload(t), TensorType):
        raise Refused(f"it adds what may be missing of {t}")
    kinds = leaves(t)[1:]

    def with_a() -> Names:
        return either(g, _is(g, b[0], 1), kinds, lambda: (g.emit("Add", a[1], b[1]),), lambda: (a[1],))

    return g.emit("Max", a[0], b[0]), *either(g, _is(g, a[0], 1), kinds, with_a, lambda: (b[1],))


def _as_optional(g: Writer, value: Value) -> Names:
    """Return an optional, of a value that is there too."""
    names = g.names(value)
    return names if isinstance(value.type, VariantType) else (g.constant(1, int64), *names)


@rule("optional_add")
def _optional_add(g: Writer, o: Operation) -> Names:
    a, b = o.operands
    t = a.type if is_optional(a.type) else b.type
    if not is_optional(t):
        raise Refused(f"it adds {a.type} and {b.type}")
    made = _added(g, t, _as_optional(g, a), _as_optional(g, b))
    return made if is_optional(o.results[0].type) else made[1:]


@rule("variant_ct")
def _variant_ct(g: Writer, o: Operation) -> Names:
    names, tag = g.names(o.operands[0]), o.attributes["tag"]
    there = g.cast(_is(g, names[0], tag), int64)
    return (there, *names[place_of(variant(o.operands[0].type), tag)])


@rule("variant_wrap")
def _variant_wrap(g: Writer, o: Operation) -> Names:
    names, t, tag = g.names(o.operands[0]), variant(o.attributes["type"]), o.attributes["tag"]
    made = [g.emit("Mul", names[0], g.constant(tag, int64))]
    for number, alternative in enumerate(t.alternatives):
        made += names[1:] if number == tag else placeholders(g, alternative)
    return tuple(made)


@rule("variant_or_zeros")
def _variant_or_zeros(g: Writer, o: Operation) -> Names:
    given, like = o.operands
    if not isinstance(like.type, TensorType):
        raise Refused(f"it makes the derivative of {like.type}")
    tag, names = o.attributes["tag"], g.names(given)
    there = names[place_of(variant(given.type), tag)]
    return either(g, _is(g, names[0], tag), leaves(o.results[0].type), lambda: there, lambda: (zeros(g, like),))


@rule("tuple_of_tangents")
def _tuple_of_tangents(g: Writer, o: Operation) -> Names:
    return tuple(name for v in o.operands for name in g.names(v))


# ---- lists of optionals ----------------------------------------------------------------------------------------------
def _slot_type(t: Type) -> Type:
    assert isinstance(t, ListType)
    return t.element


def _missing(g: Writer, t: Type) -> Names:
    """Return an optional that is not there."""
    parts = variant(t).alternatives
    return (g.constant(0, int64), *(name for part in parts for name in placeholders(g, part)))


def _inside(g: Writer, i: str, slots: Names) -> str:
    length = g.emit("SequenceLength", slots[0])
    return g.emit("And", g.emit("GreaterOrEqual", i, g.constant(0, int64)), g.emit("Less", i, length))


def _replaced(g: Writer, slots: Names, i: str, item: Names) -> Names:
    pairs = zip(slots, item, strict=True)
    return tuple(g.emit("SequenceInsert", g.emit("SequenceErase", s, i), x, i) for s, x in pairs)


@rule("list_take")
def _list_take(g: Writer, o: Operation) -> Names:
    slots, i, t = g.names(o.operands[0]), g.one(o.operands[1]), _slot_type(o.operands[0].type)

    def read() -> Names:
        return tuple(g.emit("SequenceAt", s, i) for s in slots)

    return either(g, _inside(g, i, slots), leaves(t), read, lambda: _missing(g, t))


@rule("list_clear")
def _list_clear(g: Writer, o: Operation) -> Names:
    slots, i, t = g.names(o.operands[0]), g.one(o.operands[1]), _slot_type(o.operands[0].type)
    kinds = leaves(o.results[0].type)
    return either(g, _inside(g, i, slots), kinds, lambda: _replaced(g, slots, i, _missing(g, t)), lambda: slots)


def _grown(g: Writer, t: ListType, slots: Names, i: str) -> Names:
    """Write slots that reach to number i."""
    wanted = g.emit("Add", i, g.constant(1, int64))
    lacking = g.emit("Max", g.emit("Sub", wanted, g.emit("SequenceLength", slots[0])), g.constant(0, int64))
    made: list[str] = []
    for leaf, start, filler in zip(leaves(t), slots, _missing(g, t.element), strict=True):

        def step(turn: str, done: str, filler: str = filler) -> str:
            return g.emit("SequenceInsert", done, filler)

        made.append(repeated(g, lacking, leaf, start, step))
    return tuple(made)


@rule("list_put")
def _list_put(g: Writer, o: Operation) -> Names:
    slots, i, item = o.operands
    t, at = o.results[0].type, g.one(i)
    assert isinstance(t, ListType)
    return _replaced(g, _grown(g, t, g.names(slots), at), at, _as_optional(g, item))


@rule("list_accumulate")
def _list_accumulate(g: Writer, o: Operation) -> Names:
    slots, i, item = o.operands
    t, at = o.results[0].type, g.one(i)
    assert isinstance(t, ListType)
    grown = _grown(g, t, g.names(slots), at)
    held = tuple(g.emit("SequenceAt", s, at) for s in grown)
    return _replaced(g, grown, at, _added(g, t.element, held, _as_optional(g, item)))
