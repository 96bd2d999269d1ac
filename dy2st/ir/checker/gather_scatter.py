"""Type rules of ops that take elements out at places that tensors say, and put them in there."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import bool_, int32, int64
from dy2st.ir.checker.shapes import beside, typed
from dy2st.ir.checker.type_join import Known
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import TensorType, Type


@rule("take:2 take_add:3")
def _take(g: TypedOperation) -> Sequence[Type]:
    adds = g.name == "take_add"
    x, places = g.tensor(0), g.tensor(2 if adds else 1, "iu")
    axis = g.axis("axis", x.rank)
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    return _put(g, x, shape) if adds else (typed(x.dtype, shape),)


@rule("gather_nd:2 scatter_nd_add:3")
def _gather_nd(g: TypedOperation) -> Sequence[Type]:
    adds = g.name == "scatter_nd_add"
    at = 2 if adds else 1
    x, places = g.tensor(0), g.tensor(at, "iu", least=1)
    depth = g.whole("depth", 0, x.rank)
    g.shaped(at, [*((at, axis) for axis in range(places.rank - 1)), depth])
    shape = (*places.shape[:-1], *x.shape[depth:])
    return _put(g, x, shape) if adds else (typed(x.dtype, shape),)


def _put(g: TypedOperation, x: TensorType, shape: Sequence[Known]) -> Sequence[Type]:
    g.equals(g.like(1, x.dtype).shape, shape)
    return (x,)


@rule("take_along_axis:2 put_along_axis:3 combine_along_axis:3 keep_at:2")
def _along_axis(g: TypedOperation) -> Sequence[Type]:
    writes = g.name in ("put_along_axis", "combine_along_axis")
    x, places = g.tensor(0), g.tensor(1, "iu")
    axis = g.axis("axis", x.rank)
    g.require(places.rank == x.rank, f"indices of rank {places.rank}")
    g.equals(beside(x, axis), beside(places, axis))
    if g.name == "keep_at":
        g.equal(places.shape[axis], 1)
        return (x,)
    if not writes:
        return (TensorType(x.dtype, places.shape),)
    g.like(2, x.dtype, x.rank)
    g.same_shape(2, 1)
    g.text("mode", *(("assign", "add") if g.name == "put_along_axis" else ("mul", "amax", "amin")))
    return (x,)


@rule("last_writer")
def _last_writer(g: TypedOperation) -> Sequence[Type]:
    places, _ = g.tensor(0, "iu"), g.shape("shape", 1, 1)
    g.axis("axis", places.rank)
    return (TensorType(bool_, places.shape),)


@rule("class_places", 2)
def _class_places(g: TypedOperation) -> Sequence[Type]:
    g.number(1)
    g.whole("ignore_index")
    return (TensorType(int32, g.tensor(0, "iu").shape),)


@rule("one_hot")
def _one_hot(g: TypedOperation) -> Sequence[Type]:
    x, classes = g.tensor(0, "iu"), g.attributes["num_classes"]
    g.count(1 if classes is not None else 2)
    last = g.whole("num_classes", 0, 2**40) if classes is not None else g.number(1, "int").extent
    return (typed(g.dtype(), (*x.shape, last)),)


@rule("nonzero", 1)
def _nonzero(g: TypedOperation) -> Sequence[Type]:
    return (typed(int64, (None, g.tensor(0).rank)),)


@rule("masked_select", 2)
def _masked_select(g: TypedOperation) -> Sequence[Type]:
    x, mask = g.tensor(0), g.tensor(1, "b")
    g.equals(x.shape, mask.shape)
    return (typed(x.dtype, (None,)),)


@rule("gather_tree", 2)
def _gather_tree(g: TypedOperation) -> Sequence[Type]:
    ids = g.tensor(0, "iu", 3)
    g.tensor(1, "iu", 3)
    g.same_shape(1)
    return (ids,)
