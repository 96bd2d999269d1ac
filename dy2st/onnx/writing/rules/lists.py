"""Lists: a sequence for each leaf of what they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dy2st.dtypes import bool_, int64
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import ListType
from dy2st.onnx.writing.control_flow import graph_of
from dy2st.onnx.writing.leaves import Leaf, Refused, leaves
from dy2st.onnx.writing.writer import Names, Writer, rule


def _empty(g: Writer, leaf: Leaf) -> str:
    return g.emit("SequenceEmpty", dtype=g.type_number(leaf.dtype))


def _length(g: Writer, value: Value) -> str:
    return g.emit("SequenceLength", g.names(value)[0])


def _from_front(g: Writer, i: str, length: str) -> str:
    """Write a place counted from the front."""
    return g.emit("Where", g.emit("Less", i, g.constant(0, int64)), g.emit("Add", i, length), i)


@rule("list_new")
def _list_new(g: Writer, o: Operation) -> Names:
    columns = [g.names(v) for v in o.operands]
    return tuple(
        g.emit("SequenceConstruct", *(column[i] for column in columns)) if columns else _empty(g, leaf)
        for i, leaf in enumerate(leaves(o.attributes["type"]))
    )


@rule("list_append")
def _list_append(g: Writer, o: Operation) -> Names:
    items, item = (g.names(v) for v in o.operands)
    return tuple(g.emit("SequenceInsert", s, x) for s, x in zip(items, item, strict=True))


@rule("list_len")
def _list_len(g: Writer, o: Operation) -> str:
    return _length(g, o.operands[0])


@rule("list_index")
def _list_index(g: Writer, o: Operation) -> str:
    return _from_front(g, g.one(o.operands[1]), _length(g, o.operands[0]))


@rule("list_get")
def _list_get(g: Writer, o: Operation) -> Names:
    at = g.one(o.operands[1])
    return tuple(g.emit("SequenceAt", s, at) for s in g.names(o.operands[0]))


@rule("list_set")
def _list_set(g: Writer, o: Operation) -> Names:
    items, i, item = o.operands
    at = _from_front(g, g.one(i), _length(g, items))
    pairs = zip(g.names(items), g.names(item), strict=True)
    return tuple(g.emit("SequenceInsert", g.emit("SequenceErase", s, at), x, at) for s, x in pairs)


@rule("list_pop")
def _list_pop(g: Writer, o: Operation) -> Names:
    at, items = g.one(o.operands[1]), g.names(o.operands[0])
    rest = tuple(g.emit("SequenceErase", s, at) for s in items)
    return (*rest, *(g.emit("SequenceAt", s, at) for s in items))


@rule("list_popped")
def _list_popped(g: Writer, o: Operation) -> str:
    rest, i = o.operands
    return _from_front(g, g.one(i), g.emit("Add", _length(g, rest), g.constant(1, int64)))


@rule("list_insert")
def _list_insert(g: Writer, o: Operation) -> Names:
    items, at, item = o.operands
    pairs = zip(g.names(items), g.names(item), strict=True)
    return tuple(g.emit("SequenceInsert", s, x, g.one(at)) for s, x in pairs)


@rule("list_bounds")
def _list_bounds(g: Writer, o: Operation) -> Names:
    items, *ends = o.operands
    length, zero = _length(g, items), g.constant(0, int64)
    start, stop = (g.emit("Min", g.emit("Max", _from_front(g, g.one(e), length), zero), length) for e in ends)
    return start, g.emit("Max", start, stop)


def repeated(g: Writer, count: str, leaf: Leaf, start: str, step: Callable[[str, str], str]) -> str:
    """Write a loop that makes a sequence: `step` gets the number of an iteration and the sequence."""
    iteration, going, carried = g.fresh("iteration"), g.fresh("going"), g.fresh("carried")
    inputs = [(iteration, Leaf(int64, ())), (going, Leaf(bool_, ())), (carried, leaf)]

    def body() -> list[tuple[str, Leaf]]:
        return [(going, Leaf(bool_, ())), (step(iteration, carried), leaf)]

    graph, reads = graph_of(g, "copy", inputs, body)
    return g.node("Loop", [count, "", start], 1, reads, body=graph)[0]


def _copied(g: Writer, o: Operation, into: Sequence[str], source: Value, count: str,
            place: Callable[[str], str]) -> Names:  # fmt: skip
    """Write the elements of a list at `place(i)`, for i below `count`, behind those of others."""
    made: list[str] = []
    for leaf, start, items in zip(leaves(o.results[0].type), into, g.names(source), strict=True):

        def step(i: str, done: str, items: str = items) -> str:
            return g.emit("SequenceInsert", done, g.emit("SequenceAt", items, place(i)))

        made.append(repeated(g, count, leaf, start, step))
    return tuple(made)


def _empties(g: Writer, o: Operation) -> list[str]:
    return [_empty(g, leaf) for leaf in leaves(o.results[0].type)]


@rule("list_extend")
def _list_extend(g: Writer, o: Operation) -> Names:
    items, more = o.operands
    return _copied(g, o, g.names(items), more, _length(g, more), lambda i: i)


@rule("list_part")
def _list_part(g: Writer, o: Operation) -> Names:
    items, start, stop = o.operands
    first = g.one(start)
    return _copied(g, o, _empties(g, o), items, g.emit("Sub", g.one(stop), first), lambda i: g.emit("Add", i, first))


@rule("list_reverse")
def _list_reverse(g: Writer, o: Operation) -> Names:
    items = o.operands[0]
    length = _length(g, items)
    last = g.emit("Sub", length, g.constant(1, int64))
    return _copied(g, o, _empties(g, o), items, length, lambda i: g.emit("Sub", last, i))


@rule("list_widen")
def _list_widen(g: Writer, o: Operation) -> Names:
    if o.attributes["tags"]:
        raise Refused("it gives every element of a list more alternatives")
    return g.names(o.operands[0])


@rule("list_stack")
def _list_stack(g: Writer, o: Operation) -> str:
    return g.emit("ConcatFromSequence", g.one(o.operands[0]), axis=0, new_axis=1)


@rule("list_concat")
def _list_concat(g: Writer, o: Operation) -> str:
    return g.emit("ConcatFromSequence", g.one(o.operands[0]), axis=o.attributes["axis"])


@rule("list_extents")
def _list_extents(g: Writer, o: Operation) -> str:
    """Write the extents as a sequence of vectors, and those as one vector."""
    items = g.one(o.operands[0])
    leaf = Leaf(int64, None, True)
    start = g.emit("SequenceConstruct", g.constant(np.zeros(0, np.int64)))

    def step(i: str, done: str) -> str:
        return g.emit("SequenceInsert", done, g.extent(g.emit("SequenceAt", items, i), o.attributes["axis"]))

    made = repeated(g, _length(g, o.operands[0]), leaf, start, step)
    return g.emit("ConcatFromSequence", made, axis=0)


@rule("list_to_tensor")
def _list_to_tensor(g: Writer, o: Operation) -> str:
    """Stack the numbers with one more behind them, so that there is something to stack, and leave it out again."""
    t, wanted = o.operands[0].type, o.attributes["dtype"]
    assert isinstance(t, ListType)
    have = leaves(t.element)[0].dtype
    more = g.emit("SequenceInsert", g.one(o.operands[0]), g.constant(0, have))
    stacked = g.emit("ConcatFromSequence", more, axis=0, new_axis=1)
    made = g.emit("Slice", stacked, g.ints(0), g.ints(-1), g.ints(0))
    return made if have is wanted else g.cast(made, wanted)
