"""Elements at places: `x[...]`, read and written; gathers and scatters.

What is written at an index expression is written at the flat places that the same expression reads of 0, 1, 2, ... in
the tensor's shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import bool_, int64
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.onnx.writing.leaves import Refused
from dy2st.onnx.writing.rules.shapes import places
from dy2st.onnx.writing.writer import Writer, rule

_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


class _Read:
    """One index expression on one tensor."""

    def __init__(self, g: Writer, spec: Sequence[tuple[Any, ...]], operands: Sequence[Value], rank: int):
        self.g = g
        self.slices: list[tuple[str, ...]] = []
        """Starts, stops, steps and axes of slices, each a vector of one element."""
        self.points: list[tuple[int, str, int]] = []
        """Axes, the places on them, and of what rank these are."""
        self.layout: list[int | None] = []
        """What an axis of the result is: an axis of the tensor, None for a new one, -1 where the points stand."""
        self.tensors = 0
        self._rest = iter(operands)
        axis = 0
        for item in spec:
            axis = self._take(item, axis)
        self.layout += range(axis, rank)
        self.rank = rank

    def _take(self, item: tuple[Any, ...], axis: int) -> int:
        kind, g = item[0], self.g
        if kind == "new":
            self.layout.append(None)
            return axis
        if kind == "slice":
            self._slice(item, axis)
            self.layout.append(axis)
            return axis + 1
        self.layout.append(-1)
        if kind == "int":
            at = g.one(next(self._rest)) if item[1] == "?" else g.constant(item[1], int64)
            self.points.append((axis, at, 0))
            return axis + 1
        given = next(self._rest)
        t = tensor_type(given)
        if kind == "tensor":
            self.tensors += t.rank > 0
            x = g.one(given)
            self.points.append((axis, x if t.dtype is int64 else g.cast(x, int64), t.rank))
            return axis + 1
        if not t.rank:
            raise Refused("a mask without axes makes an axis of 0 or 1")
        self.tensors += 1
        found = g.emit("NonZero", g.one(given))
        lines = [g.emit("Gather", found, g.constant(i, int64), axis=0) for i in range(t.rank)]
        self.points += [(axis + i, line, 1) for i, line in enumerate(lines)]
        return axis + t.rank

    def _slice(self, item: tuple[Any, ...], axis: int) -> None:
        if item[1:] == (None, None, None):
            return
        g = self.g
        given = [g.vector(g.one(next(self._rest))) if part == "?" else part for part in item[1:]]
        start, stop, step = given
        step = 1 if step is None else step
        if start is None:
            start = self._by_direction(step, 0, _MOST)
        if stop is None:
            stop = self._by_direction(step, _MOST, _LEAST)
        self.slices.append(tuple(g.ints(p) if isinstance(p, int) else p for p in (start, stop, step, axis)))

    def _by_direction(self, step: int | str, forward: int, backward: int) -> int | str:
        g = self.g
        if isinstance(step, int):
            return forward if step > 0 else backward
        return g.emit("Where", g.emit("Greater", step, g.ints(0)), g.ints(forward), g.ints(backward))

    def __call__(self, x: str) -> str:
        g = self.g
        if self.slices:
            starts, stops, steps, axes = (g.joined(list(column)) for column in zip(*self.slices, strict=True))
            x = g.emit("Slice", x, starts, stops, axes, steps)
        if not self.tensors:
            for axis, at, _ in reversed(self.points):
                x = g.emit("Gather", x, at, axis=axis)
            return self._with_new(x, [a for a in self.layout if a != -1])
        if len(self.points) == 1:
            axis, at, rank = self.points[0]
            place = self.layout.index(-1)
            return self._with_new(g.emit("Gather", x, at, axis=axis), [*self.layout[:place], *[-1] * rank,
                                                                       *self.layout[place + 1 :]])  # fmt: skip
        return self._gathered(x)

    def _gathered(self, x: str) -> str:
        """Read at points on several axes: these axes go to the front, and their places into the last axis of one."""
        g, common = self.g, max(rank for *_, rank in self.points)
        total = self.points[0][1]
        for _, at, _ in self.points[1:]:
            total = g.emit("Add", total, at)
        nothing = g.emit("Sub", total, total)
        at = g.emit("Concat", *(g.emit("Unsqueeze", g.emit("Add", p, nothing), g.ints(-1)) for _, p, _ in self.points),
                    axis=-1)  # fmt: skip
        axes = [axis for axis, *_ in self.points]
        others = [a for a in range(self.rank) if a not in axes]
        if axes != list(range(len(axes))):
            x = g.emit("Transpose", x, perm=[*axes, *others])
        x = g.emit("GatherND", x, at)
        places = [i for i, a in enumerate(self.layout) if a == -1]
        together = places[-1] - places[0] + 1 == len(places)
        first = places[0] if together else 0
        before = [a for a in self.layout[:first] if a != -1]
        layout = [*before, *[-1] * common, *(a for a in self.layout[first:] if a != -1)]
        lead = len([a for a in before if a is not None])
        if lead:
            rest = common + len(others)
            x = g.emit(
                "Transpose", x, perm=[*range(common, common + lead), *range(common), *range(common + lead, rest)]
            )
        return self._with_new(x, layout)

    def _with_new(self, x: str, layout: Sequence[int | None]) -> str:
        new = [i for i, a in enumerate(layout) if a is None]
        return self.g.emit("Unsqueeze", x, self.g.ints(*new)) if new else x


@rule("index")
def _index(g: Writer, o: Operation) -> str:
    x = o.operands[0]
    return _Read(g, o.attributes["spec"], o.operands[1:], tensor_type(x).rank)(g.one(x))


def _numbered(g: Writer, x: str) -> str:
    """Write 0, 1, 2, ... in the shape of a tensor."""
    return g.emit("Reshape", places(g, g.vector(g.emit("Size", x))), g.emit("Shape", x), allowzero=1)


def _flat(g: Writer, x: str) -> str:
    return g.emit("Reshape", x, g.ints(-1))


def _scattered(g: Writer, x: str, at: str, value: str, reduction: str) -> str:
    """Write a tensor with a value, repeated, at flat places."""
    value = g.emit("Expand", value, g.emit("Shape", at))
    made = g.emit("ScatterElements", _flat(g, x), _flat(g, at), _flat(g, value), axis=0, reduction=reduction)
    return g.emit("Reshape", made, g.emit("Shape", x), allowzero=1)


@rule("index_set", "index_add")
def _index_write(g: Writer, o: Operation) -> str:
    x, value, *more = o.operands
    at = _Read(g, o.attributes["spec"], more, tensor_type(x).rank)(_numbered(g, g.one(x)))
    return _scattered(g, g.one(x), at, g.one(value), "add" if o.op.accumulates or o.op.writes is None else "none")


def _is_last(g: Writer, at: str, size: str) -> str:
    """Write, for flat places, which of them are the last ones that name theirs."""
    flat = _flat(g, at)
    numbers = places(g, g.extent(flat, 0))
    none = g.emit("Expand", g.constant(-1, int64), size)
    last = g.emit("ScatterElements", none, flat, numbers, axis=0, reduction="max")
    return g.emit("Reshape", g.emit("Equal", g.emit("Gather", last, flat), numbers), g.emit("Shape", at), allowzero=1)


@rule("index_last")
def _index_last(g: Writer, o: Operation) -> str:
    x, *more = o.operands
    at = _Read(g, o.attributes["spec"], more, tensor_type(x).rank)(_numbered(g, g.one(x)))
    return _is_last(g, at, g.vector(g.emit("Size", g.one(x))))


@rule("last_writer")
def _last_writer(g: Writer, o: Operation) -> str:
    """Write which indices along an axis are the last ones that name their element."""
    indices, *dims = o.operands
    axis, x = o.attributes["axis"], g.cast(g.one(indices), int64)
    extent = g.shape(o.attributes["shape"], dims)
    shape = g.joined([g.emit("Shape", x, end=axis), extent, g.emit("Shape", x, start=axis + 1)])
    size = g.emit("ReduceProd", shape, keepdims=1)
    numbers = g.emit("Reshape", places(g, size), shape, allowzero=1)
    return _is_last(g, g.emit("GatherElements", numbers, x, axis=axis), size)


@rule("take")
def _take(g: Writer, o: Operation) -> str:
    return g.emit("Gather", *_with_places(g, o, 1), axis=o.attributes["axis"])


def _with_places(g: Writer, o: Operation, number: int) -> Iterator[str]:
    """Yield the operands, that of this number as int64."""
    for i, value in enumerate(o.operands):
        wide = i == number and tensor_type(value).dtype is not int64
        yield g.cast(g.one(value), int64) if wide else g.one(value)


@rule("take_add")
def _take_add(g: Writer, o: Operation) -> str:
    x, values, indices = _with_places(g, o, 2)
    at = g.emit("Gather", _numbered(g, x), indices, axis=o.attributes["axis"])
    return _scattered(g, x, at, values, "add")


@rule("gather_nd")
def _gather_nd(g: Writer, o: Operation) -> str:
    if not o.attributes["depth"]:
        raise Refused("its places are on no axis")
    return g.emit("GatherND", *_with_places(g, o, 1))


@rule("scatter_nd_add")
def _scatter_nd_add(g: Writer, o: Operation) -> str:
    if not o.attributes["depth"]:
        raise Refused("its places are on no axis")
    x, values, indices = _with_places(g, o, 2)
    return g.emit("ScatterND", x, indices, values, reduction="add")


@rule("take_along_axis")
def _take_along_axis(g: Writer, o: Operation) -> str:
    return g.emit("GatherElements", *_with_places(g, o, 1), axis=o.attributes["axis"])


@rule("put_along_axis", "combine_along_axis")
def _put_along_axis(g: Writer, o: Operation) -> str:
    x, indices, values = _with_places(g, o, 1)
    how = o.attributes["mode"].removeprefix("a") if o.attributes["mode"] not in ("add", "assign") else None
    how = how or {"add": "add", "assign": "none"}[o.attributes["mode"]]
    values = g.emit("Expand", values, g.emit("Shape", indices))
    return g.emit("ScatterElements", x, indices, values, axis=o.attributes["axis"], reduction=how)


@rule("nonzero")
def _nonzero(g: Writer, o: Operation) -> str:
    found = g.cast(g.one(o.operands[0]), bool_)
    if tensor_type(o.operands[0]).rank:
        return g.emit("Transpose", g.emit("NonZero", found), perm=[1, 0])
    return g.emit("ConstantOfShape", g.joined([g.vector(g.cast(found, int64)), g.ints(0)]),
                  value=g.helper.make_tensor("zero", g.type_number(int64), [1], [0]))  # fmt: skip


@rule("masked_select")
def _masked_select(g: Writer, o: Operation) -> str:
    x, mask = g.inputs(o)
    shape = g.emit("Shape", g.emit("And", g.emit("Equal", x, x), mask))
    x, mask = (_flat(g, g.emit("Expand", one, shape)) for one in (x, mask))
    return g.emit("Compress", x, mask, axis=0)
