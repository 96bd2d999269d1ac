"""Reading and writing at places: index expressions, `take`, `gather_nd` and what adds there.

Where the places are the same in all lanes, the lane axis is a whole slice before them. Where they differ, the number of
the lane is one more index before them: what is indexed with tensors then stands first, behind the lane axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.batching.batched_value import BatchedValue, column, moved
from dy2st.batching.batcher import Batcher, rule
from dy2st.batching.lane_loop import lane_numbers
from dy2st.batching.rules import Lanes, again, stacked
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.core.index_spec import Item, Spec, indexed_shape
from dy2st.ops.indexing.getitem import Index, IndexLast

WHOLE: Item = ("slice", None, None, None)
ADVANCED = ("int", "tensor", "mask")


class IndexLayout:
    """Where the axes of a lane's `x[spec]` come from: how many the index tensors make, and how many stand before."""

    def __init__(self, spec: Spec, operands: Sequence[Value]):
        entries = [item[0] in ADVANCED for item in spec]
        rest = iter(operands)
        ranks: list[int] = []
        for item in spec:
            given = [next(rest) for part in (item[1:] if item[0] != "tensor" else ("?",)) if part == "?"]
            if item[0] == "mask":
                next(rest)
                ranks.append(1)
            if item[0] == "tensor":
                ranks.append(tensor_type(given[0]).rank)
        self.rank = max(ranks, default=0)
        """The number of axes that the index tensors make together."""
        places = [i for i, one in enumerate(entries) if one]
        self.together = self.rank == 0 or places[-1] - places[0] + 1 == len(places)
        self.first = sum(not one for one in entries[: places[0]]) if places and self.together else 0
        """The number of axes before those."""


def _brackets(
    at: Batcher, operation: Operation, lanes: Lanes, places: Lanes, value: Value | None
) -> list[BatchedValue] | None:
    """Emit `index`, `index_set`, `index_add` or `index_last`; `value` is the stacked value that is written."""
    spec: Spec = operation.attributes["spec"]
    of = operation.operands[len(operation.operands) - len(places) :]
    layout = IndexLayout(spec, of)
    region = len(indexed_shape(operation.name, tensor_type(operation.operands[0]).shape, spec, [v.type for v in of]))
    if layout.together and all(lane.shared for lane in places):
        written = [] if value is None else [_aligned(at, value, operation.operands[1], region)]
        operands = [at.stacked(lanes[0]), *written, *(lane.value for lane in places)]
        return again(at, operation, operands, spec=(WHOLE, *spec))
    if any(item[0] == "mask" or (item[0] == "slice" and "?" in item) for item in spec):
        return None
    items, given = _with_lanes(at, spec, of, places, layout.rank)
    read = isinstance(operation.op, (Index, IndexLast))
    if read and lanes[0].shared and isinstance(operation.op, Index):
        made = at.b.emit("index", [lanes[0].value, *given[1:]], {"spec": items[1:]})
        return stacked(moved(at.b, made, layout.first, 0))
    x = at.stacked(lanes[0])
    if read:
        made = at.b.emit(operation.op, [x, *given], {"spec": items})
        return stacked(_behind(at, made, layout))
    assert value is not None
    value = _aligned(at, value, operation.operands[1], region)
    return again(at, operation, [x, _before(at, value, layout), *given], spec=items)


def _aligned(at: Batcher, value: Value, old: Value, rank: int) -> Value:
    """Return a stacked value with axes of extent 1 behind the lane axis, so that it has the rank of the region."""
    more = rank - tensor_type(old).rank
    return at.b.emit("expand_dims", [value], {"axes": tuple(range(1, 1 + more))}) if more > 0 else value


def _with_lanes(at: Batcher, spec: Spec, of: Sequence[Value], places: Lanes, rank: int) -> tuple[Spec, list[Value]]:
    """Return the spec with the number of the lane before it, and its operands; ints that differ become tensors."""
    b, items, rest = at.b, [("tensor",)], iter(zip(places, of, strict=True))
    given = [column(b, lane_numbers(b, at.lanes), rank)]
    for item in spec:
        if item[0] == "tensor":
            lane, old = next(rest)
            own = tensor_type(old).rank
            value = b.use(lane.value)
            if lane.stacked and rank > own:
                value = b.emit("expand_dims", [value], {"axes": tuple(range(1, 1 + rank - own))})
            given.append(value)
            items.append(item)
        elif item == ("int", "?"):
            lane, old = next(rest)
            given.append(b.use(lane.value) if lane.shared else column(b, lane.value, rank))
            items.append(item if lane.shared else ("tensor",))
        else:
            items.append(item)
    return tuple(items), given


def _behind(at: Batcher, made: Value, layout: IndexLayout) -> Value:
    """Return [lanes, index axes, others] with the index axes where a lane has them."""
    rank = tensor_type(made).rank
    front = list(range(1 + layout.rank, 1 + layout.rank + layout.first))
    order = [0, *front, *range(1, 1 + layout.rank), *range(1 + layout.rank + layout.first, rank)]
    return made if order == list(range(rank)) else at.b.emit("transpose", [made], {"perm": tuple(order)})


def _before(at: Batcher, value: Value, layout: IndexLayout) -> Value:
    """Return the inverse of `_behind`."""
    rank = tensor_type(value).rank
    order = [0, *range(1 + layout.first, 1 + layout.first + layout.rank), *range(1, 1 + layout.first)]
    order += range(len(order), rank)
    return value if order == list(range(rank)) else at.b.emit("transpose", [value], {"perm": tuple(order)})


@rule("index", "index_last")
def index(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Read x[spec] of each lane."""
    return _brackets(at, operation, lanes, lanes[1:], None)


@rule("index_set", "index_add")
def index_write(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue] | None:
    """Write a value to x[spec] of each lane."""
    return _brackets(at, operation, lanes, lanes[2:], at.stacked(lanes[1]))


@rule("take")
def take(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Slices along an axis: `x[..., indices]`."""
    b, axis, (x, indices) = at.b, operation.attributes["axis"], lanes
    if indices.shared:
        return again(at, operation, [x.value, indices.value], axis=axis + 1)
    if x.shared:
        made = b.emit("take", [x.value, indices.value], {"axis": axis})
        return stacked(moved(b, made, axis, 0))
    rank = tensor_type(operation.operands[1]).rank
    spec = (("tensor",), *(WHOLE,) * axis, ("tensor",))
    made = b.emit("index", [x.value, column(b, lane_numbers(b, at.lanes), rank), indices.value], {"spec": spec})
    return stacked(_behind(at, made, _TakeLayout(axis, rank)))


@rule("take_add")
def take_add(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Values added to slices along an axis."""
    b, axis, (x, values, indices) = at.b, operation.attributes["axis"], lanes
    base, added = at.stacked(x), at.stacked(values)
    if indices.shared:
        return again(at, operation, [base, added, indices.value], axis=axis + 1)
    rank = tensor_type(operation.operands[2]).rank
    spec = (("tensor",), *(WHOLE,) * axis, ("tensor",))
    places = [column(b, lane_numbers(b, at.lanes), rank), indices.value]
    added = _before(at, added, _TakeLayout(axis, rank))
    return stacked(b.emit("index_add", [base, added, *places], {"spec": spec}))


class _TakeLayout(IndexLayout):
    """The layout of indices of some rank on one axis."""

    def __init__(self, axis: int, rank: int):
        self.rank, self.first, self.together = rank, axis, True


@rule("gather_nd")
def gather_nd(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Slices at places on the first axes."""
    b, (x, indices) = at.b, lanes
    if x.shared:
        return again(at, operation, [x.value, indices.value])
    if indices.shared:
        last = tensor_type(x.value).rank - 1
        made = b.emit("gather_nd", [moved(b, x.value, 0, last), indices.value], dict(operation.attributes))
        return stacked(moved(b, made, tensor_type(made).rank - 1, 0))
    places = _numbered(at, indices.value)
    return again(at, operation, [x.value, places], depth=operation.attributes["depth"] + 1)


@rule("scatter_nd_add")
def scatter_nd_add(at: Batcher, operation: Operation, lanes: Lanes) -> list[BatchedValue]:
    """Values added at places on the first axes."""
    x, values, indices = (at.stacked(lane) for lane in lanes)
    return again(at, operation, [x, values, _numbered(at, indices)], depth=operation.attributes["depth"] + 1)


def _numbered(at: Batcher, indices: Value) -> Value:
    """Return places [lanes, ..., depth] with the number of the lane before each."""
    b, kind = at.b, tensor_type(indices)
    assert isinstance(kind, TensorType)
    numbers = b.cast(column(b, lane_numbers(b, at.lanes), kind.rank - 1), dtype=kind.dtype)
    numbers = b.broadcast_to(numbers, [*b.shape(indices)[:-1], 1])
    return b.emit("concat", [numbers, indices], {"axis": kind.rank - 1})
