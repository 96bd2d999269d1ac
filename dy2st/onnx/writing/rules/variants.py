"""Variants and tuples: a tag and the leaves of all alternatives, of which one counts."""

from __future__ import annotations

import numpy as np

from dy2st.dtypes import int64
from dy2st.ir.program import Operation
from dy2st.ir.types import TupleType, Type, VariantType
from dy2st.onnx.writing.leaves import Refused, leaves, place_of
from dy2st.onnx.writing.writer import Names, Writer, rule


def placeholders(g: Writer, t: Type) -> Names:
    """Return what stands for a value that is not there."""
    made: list[str] = []
    for leaf in leaves(t):
        if leaf.sequence:
            made.append(g.emit("SequenceEmpty", dtype=g.type_number(leaf.dtype)))
            continue
        shape = [e if isinstance(e, int) else 0 for e in leaf.shape or ()]
        made.append(g.constant(np.zeros(shape, leaf.dtype.numpy)))
    return tuple(made)


def variant(t: Type) -> VariantType:
    """Return a type that is a variant."""
    assert isinstance(t, VariantType)
    return t


@rule("variant_new")
def _variant_new(g: Writer, o: Operation) -> Names:
    t, tag = variant(o.attributes["type"]), o.attributes["tag"]
    given = tuple(name for v in o.operands for name in g.names(v))
    parts = [given if i == tag else placeholders(g, a) for i, a in enumerate(t.alternatives)]
    return (g.constant(tag, int64), *(name for part in parts for name in part))


@rule("variant_tag")
def _variant_tag(g: Writer, o: Operation) -> str:
    return g.names(o.operands[0])[0]


@rule("variant_get")
def _variant_get(g: Writer, o: Operation) -> Names:
    return g.names(o.operands[0])[place_of(variant(o.operands[0].type), o.attributes["tag"])]


@rule("variant_cast")
def _variant_cast(g: Writer, o: Operation) -> Names:
    old, new, tags = variant(o.operands[0].type), variant(o.attributes["type"]), o.attributes["tags"]
    names = g.names(o.operands[0])
    made = [g.emit("Gather", g.ints(*tags), names[0])]
    for number, alternative in enumerate(new.alternatives):
        if not leaves(alternative):
            continue
        sources = [k for k, tag in enumerate(tags) if tag == number and leaves(old.alternatives[k])]
        if len(sources) > 1:
            raise Refused("it joins two alternatives with values")
        made += names[place_of(old, sources[0])] if sources else placeholders(g, alternative)
    return tuple(made)


@rule("unreachable")
def _unreachable(g: Writer, o: Operation) -> Names:
    return placeholders(g, o.attributes["type"])


@rule("tuple_new")
def _tuple_new(g: Writer, o: Operation) -> Names:
    return tuple(name for v in o.operands for name in g.names(v))


@rule("tuple_get")
def _tuple_get(g: Writer, o: Operation) -> Names:
    t = o.operands[0].type
    assert isinstance(t, TupleType)
    return g.names(o.operands[0])
