"""Branches, loops, scans, sequences and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import tensor as T
from dy2st.ir.program import Value
from dy2st.onnx.reading.runner import Node, ints, operator, tensor
from dy2st.runtime.eager.tensor import Tensor
from dy2st.static.nn import cond, while_loop


def _inner(node: Node, name: str, *inputs: Any) -> list[Any]:
    """Run a graph of the node."""
    graph = node.attributes[name].g
    names = [i.name for i in graph.input]
    return [tensor(x) for x in node.run.inner(graph, node.known)(dict(zip(names, inputs, strict=True)))]


def _known(x: Any) -> bool:
    return isinstance(x, np.ndarray)


@operator("If")
def _if(node: Node, test: Any) -> Any:
    if _known(node.raw[0]):
        made = _inner(node, "then_branch" if node.raw[0].reshape(-1)[0] else "else_branch")
        return tuple(made)
    test = T.reshape(test, [])
    made = cond(test, lambda: _inner(node, "then_branch"), lambda: _inner(node, "else_branch"))
    return tuple(made) if isinstance(made, (list, tuple)) else made


@operator("Loop")
def _loop(node: Node, most: Any, test: Any, *carried: Any) -> Any:
    """Loop while the number of turns and the test allow; what each turn gives beside the state is stacked."""
    graph = node.attributes["body"].g
    states = len(carried)
    scans = len(graph.output) - 1 - states
    limit = T.full([], 1 << 62, "int64") if most is None else T.reshape(T.cast(most, "int64"), [])
    going = T.full([], True, "bool") if test is None else T.reshape(test, [])
    if not _is_traced([limit, going, *carried]):
        return _unrolled(node, limit, going, list(carried), scans)
    if scans:
        raise node.fail("a loop in a Program that collects what its turns give")

    def more(i: Any, on: Any, *state: Any) -> Any:
        return T.logical_and(on, i < limit)

    def turn(i: Any, on: Any, *state: Any) -> list[Any]:
        on, *after = _inner(node, "body", i, on, *state)
        return [i + 1, T.reshape(on, []), *after]

    made = while_loop(more, turn, [T.zeros([], "int64"), going, *carried])
    return tuple(made[2:])


def _is_traced(values: list[Any]) -> bool:
    return any(isinstance(x, Tensor) and isinstance(x.payload, Value) for x in values)


def _unrolled(node: Node, limit: Any, going: Any, state: list[Any], scans: int) -> tuple[Any, ...]:
    made: list[list[Any]] = [[] for _ in range(scans)]
    i = 0
    while i < int(limit) and bool(going):
        going, *after = _inner(node, "body", T.full([], i, "int64"), going, *state)
        state, given = after[: len(state)], after[len(state) :]
        for column, x in zip(made, given, strict=True):
            column.append(x)
        i += 1
    return (*state, *(T.stack(column) if column else T.zeros([0]) for column in made))


@operator("Scan")
def _scan(node: Node, *inputs: Any) -> Any:
    if node.opset < 9:
        raise node.fail("scans of opset 8 have a batch axis")
    count = node.get("num_scan_inputs")
    state, given = list(inputs[: len(inputs) - count]), inputs[len(inputs) - count :]
    graph = node.attributes["body"].g
    outs = len(graph.output) - len(state)
    axes = node.get("scan_input_axes") or [0] * count
    backward = node.get("scan_input_directions") or [0] * count
    made: list[list[Any]] = [[] for _ in range(outs)]
    length = given[0].shape[axes[0]]
    for i in range(length):
        slices = []
        for x, axis, back in zip(given, axes, backward, strict=True):
            at = length - 1 - i if back else i
            slices.append(x[(*[slice(None)] * (axis % x.ndim), at)])
        after = _inner(node, "body", *state, *slices)
        state = after[: len(state)]
        for column, x in zip(made, after[len(state) :], strict=True):
            column.append(x)
    places = node.get("scan_output_axes") or [0] * outs
    reverse = node.get("scan_output_directions") or [0] * outs
    columns = [T.stack(c[::-1] if back else c, axis) for c, axis, back in zip(made, places, reverse, strict=True)]
    return (*state, *columns)


# ---- sequences and optionals: Python's lists, and None ---------------------------------------------------------------
@operator("SequenceEmpty")
def _sequence_empty(node: Node) -> Any:
    return []


@operator("SequenceConstruct")
def _sequence_construct(node: Node, *xs: Any) -> Any:
    return list(xs)


@operator("SequenceInsert")
def _sequence_insert(node: Node, items: Any, x: Any, at: Any = None) -> Any:
    place = len(items) if at is None else int(at)
    place = place + len(items) if place < 0 else place
    return [*items[:place], x, *items[place:]]


@operator("SequenceErase")
def _sequence_erase(node: Node, items: Any, at: Any = None) -> Any:
    place = (len(items) - 1 if at is None else int(at)) % len(items)
    return [*items[:place], *items[place + 1 :]]


@operator("SequenceAt")
def _sequence_at(node: Node, items: Any, at: Any) -> Any:
    return items[int(at)]


@operator("SequenceLength")
def _sequence_length(node: Node, items: Any) -> Any:
    return T.full([], len(items), "int64")


@operator("ConcatFromSequence")
def _concat_from_sequence(node: Node, items: Any) -> Any:
    join = T.stack if node.get("new_axis", 0) else T.concat
    return join(list(items), node.get("axis"))


@operator("SplitToSequence")
def _split_to_sequence(node: Node, x: Any, split: Any = None) -> Any:
    axis = node.get("axis", 0) % x.ndim
    extent = x.shape[axis]
    sizes = [1] * extent if split is None else ints(split)
    if split is not None and split.ndim == 0:
        sizes = [sizes[0]] * (extent // sizes[0]) + ([extent % sizes[0]] if extent % sizes[0] else [])
    parts, start = [], 0
    for size in sizes:
        parts.append(T.slice(x, [axis], [start], [start + size]))
        start += size
    return [T.squeeze(p, [axis]) for p in parts] if split is None and not node.get("keepdims", 1) else parts


@operator("SequenceMap")
def _sequence_map(node: Node, first: Any, *more: Any) -> Any:
    rows = [_inner(node, "body", x, *(m[i] if isinstance(m, list) else m for m in more)) for i, x in enumerate(first)]
    return tuple([row[k] for row in rows] for k in range(node.outputs))


@operator("Optional")
def _optional(node: Node, x: Any = None) -> Any:
    return x


@operator("OptionalHasElement")
def _optional_has_element(node: Node, x: Any = None) -> Any:
    return T.full([], x is not None, "bool")


@operator("OptionalGetElement")
def _optional_get_element(node: Node, x: Any) -> Any:
    return x
