"""Type rules of ops that make, move and take out elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from dy2st.dtypes import DType, bool_, int32, int64, of_array
from dy2st.ir.checker.given import Given, rule
from dy2st.ir.checker.joining import Known, at_least_zero
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.shapes import Dim, Extent, divide, product

_MOST_RANK = 32


def typed(dtype: DType, shape: Sequence[Known]) -> TensorType:
    """Return the type of a tensor; extents of None are known to the run alone."""
    return TensorType(dtype, tuple(shape))  # type: ignore[arg-type]


# ---- made ----------------------------------------------------------------------------------------------------------
@rule("constant")
def _constant(g: Given) -> Sequence[Type]:
    g.count(0)
    value = g.attribute("value")
    g.require(isinstance(value, np.ndarray), "value is no array")
    return (TensorType(of_array(value), value.shape),)


@rule("full")
def _full(g: Given) -> Sequence[Type]:
    return (typed(g.tensor(0, rank=0).dtype, g.shape("shape", 1)),)


@rule("arange")
def _arange(g: Given) -> Sequence[Type]:
    g.count(3)
    numbers = [g.number(i, "int", "float").extent for i in range(3)]
    dtype = g.dtype(kinds="biuf")
    start, stop, step = numbers
    if start is None or stop is None or not isinstance(step, int) or step == 0:
        return (typed(dtype, (None,)),)
    if isinstance(start, int) and isinstance(stop, int):
        return (typed(dtype, (len(range(start, stop, step)),)),)
    length, step = (stop - start, step) if step > 0 else (start - stop, -step)
    if not at_least_zero(length):
        return (typed(dtype, (None,)),)
    return (typed(dtype, (length if step == 1 else (length + (step - 1)) // step,)),)


@rule("linspace")
def _linspace(g: Given) -> Sequence[Type]:
    g.count(3)
    g.numbers(0, 2, "int", "float")
    return (typed(g.dtype(), (_count(g, 2),)),)


@rule("eye")
def _eye(g: Given) -> Sequence[Type]:
    g.count(2)
    return (typed(g.dtype(), (_count(g, 0), _count(g, 1))),)


def _count(g: Given, i: int) -> Known:
    """Return an extent that a number gives; of one that may be negative nothing is known."""
    extent = g.number(i).extent
    return extent if at_least_zero(extent) else None


@rule("random_uniform random_normal random_exponential random_int random_bernoulli random_permutation")
def _random(g: Given) -> Sequence[Type]:
    g.numbers(0, 2)
    if g.name == "random_bernoulli":
        g.count(3)
        return (g.tensor(2, "f"),)
    if g.name == "random_permutation":
        g.count(3)
        return (typed(g.dtype(kinds="iu"), (_count(g, 2),)),)
    if g.name == "random_int":
        g.numbers(2, 4)
        return (typed(g.dtype(kinds="biuf"), g.shape("shape", 4)),)
    return (typed(g.dtype(kinds="f"), g.shape("shape", 2)),)


# ---- shapes --------------------------------------------------------------------------------------------------------
@rule("dim")
def _dim(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0)
    return (ScalarType("int", x.shape[g.axis("axis", x.rank)]),)


@rule("broadcast")
def _broadcast(g: Given) -> Sequence[Type]:
    x, shape = g.tensor(0), g.shape("shape", 1)
    g.require(x.rank <= len(shape) <= _MOST_RANK, f"rank {x.rank} to {len(shape)}")
    for own, wanted in zip(reversed(x.shape), reversed(shape), strict=False):
        if own != 1:
            g.equal(own, wanted)
    return (typed(x.dtype, shape),)


@rule("sum_to")
def _sum_to(g: Given) -> Sequence[Type]:
    x, shape = g.tensor(0), g.shape("shape", 1)
    g.require(len(shape) <= x.rank, f"rank {x.rank} to {len(shape)}")
    for own, wanted in zip(reversed(x.shape), reversed(shape), strict=False):
        if wanted != 1:
            g.equal(own, wanted)
    return (typed(x.dtype, shape),)


@rule("reshape")
def _reshape(g: Given) -> Sequence[Type]:
    x, target = g.tensor(0), g.fill("shape", 1)
    g.require(len(target) <= _MOST_RANK, f"rank {len(target)}")
    rest: list[Extent] = [e for e in target if e is not None and e != -1]
    g.require(not any(isinstance(e, int) and e < 0 for e in rest), "a negative extent")
    g.require(target.count(-1) <= 1, "two extents of -1")
    total = product(x.shape) if len(rest) == len(target) - target.count(-1) else None
    if -1 in target:
        free: Known = None if total is None else divide(total, product(tuple(rest)))
        target[target.index(-1)] = free
    elif total is not None:
        g.equal(total, product(tuple(rest)), "numbers of elements")
    # a number that a dim was not proved to be may be -1 at run time: then nothing is known of that extent
    return (typed(x.dtype, [e if at_least_zero(e) else None for e in target]),)


@rule("transpose")
def _transpose(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0)
    perm = g.axes("perm", x.rank)
    g.require(len(perm) == x.rank, "perm names not all axes")
    return (typed(x.dtype, [x.shape[p] for p in perm]),)


@rule("expand_dims")
def _expand_dims(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0)
    rank = x.rank + len(g.sequence("axes"))
    axes, rest = g.axes("axes", rank), iter(x.shape)
    g.require(rank <= _MOST_RANK, f"rank {rank}")
    return (typed(x.dtype, [1 if i in axes else next(rest) for i in range(rank)]),)


@rule("squeeze")
def _squeeze(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0)
    axes = g.axes("axes", x.rank)
    for i in axes:
        g.equal(x.shape[i], 1)
    return (typed(x.dtype, [e for i, e in enumerate(x.shape) if i not in axes]),)


@rule("bitcast")
def _bitcast(g: Given) -> Sequence[Type]:
    g.count(1)
    x, dtype = g.tensor(0), g.dtype()
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return (TensorType(dtype, x.shape),)
    g.require(x.rank > 0, "a 0-D tensor")
    last = x.shape[-1]
    g.require(not isinstance(last, int) or last * old % new == 0, f"{last} elements")
    return (typed(dtype, (*x.shape[:-1], last * old // new)),)


# ---- joined and cut ------------------------------------------------------------------------------------------------
@rule("concat stack")
def _joined(g: Given) -> Sequence[Type]:
    xs = g.tensors()
    first, stacked = xs[0], g.name == "stack"
    axis = g.axis("axis", first.rank + stacked)
    for x in xs[1:]:
        g.require(x.rank == first.rank, "operands of several ranks")
        for i, (a, b) in enumerate(zip(first.shape, x.shape, strict=True)):
            if stacked or i != axis:
                g.equal(a, b)
    shape: list[Known] = [
        next((x.shape[i] for x in xs if isinstance(x.shape[i], int)), first.shape[i]) for i in range(first.rank)
    ]
    if stacked:
        return (typed(first.dtype, (*shape[:axis], len(xs), *shape[axis:])),)
    total: Extent = 0
    for x in xs:
        total = total + x.shape[axis]
    return (typed(first.dtype, (*shape[:axis], total, *shape[axis + 1 :])),)


@rule("split")
def _split(g: Given) -> Sequence[Type]:
    x, sections = g.tensor(0), g.shape("sections", 1)
    axis = g.axis("axis", x.rank)
    if all(isinstance(e, int) for e in sections):
        g.equal(sum(e for e in sections if isinstance(e, int)), x.shape[axis], "sections")
    return [typed(x.dtype, (*x.shape[:axis], e, *x.shape[axis + 1 :])) for e in sections]


# ---- moved ---------------------------------------------------------------------------------------------------------
@rule("flip")
def _flip(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0)
    g.axes("axes", x.rank)
    return (x,)


@rule("roll")
def _roll(g: Given) -> Sequence[Type]:
    x, shifts = g.tensor(0), g.fill("shifts", 1)
    g.require(len(g.wholes("axes", 0, x.rank - 1)) == len(shifts), "as many shifts as axes")
    return (x,)


@rule("pad")
def _pad(g: Given) -> Sequence[Type]:
    x = g.tensor(0)
    g.like(1, x.dtype, 0)
    given = iter([g.number(i) for i in range(2, len(g.types))])
    widths: list[Known] = []
    for name in ("low", "high"):
        g.require(len(g.sequence(name)) == x.rank, f"{name} for another rank")
        for e in g.sequence(name):
            dim = next(given, None) if e is None else None
            g.require(e is not None or dim is not None, "too few widths")
            widths.append(dim.extent if dim is not None else g.small(e, name, 0))
    g.require(next(given, None) is None, "too many widths")
    axes = zip(x.shape, widths[: x.rank], widths[x.rank :], strict=True)
    return (typed(x.dtype, [None if a is None or z is None else e + a + z for e, a, z in axes]),)


@rule("tril triu")
def _triangle(g: Given) -> Sequence[Type]:
    g.count(1)
    g.whole("diagonal", -(2**31), 2**31)
    return (g.tensor(0, least=2),)


@rule("diagonal")
def _diagonal(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0, least=2)
    axes, offset = g.axes("axes", x.rank), g.whole("offset", -(2**31), 2**31)
    g.require(len(axes) == 2, "axes")
    rows, columns = x.shape[axes[0]], x.shape[axes[1]]
    length: Known = rows if rows == columns and not offset else None
    if isinstance(rows, int) and isinstance(columns, int):
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return (typed(x.dtype, (*(e for i, e in enumerate(x.shape) if i not in axes), length)),)


@rule("diagonal_embed")
def _diagonal_embed(g: Given) -> Sequence[Type]:
    x, shape = g.tensor(0, least=1), g.shape("shape", 1)
    g.whole("offset", -(2**31), 2**31)
    g.require(len(shape) == x.rank + 1 and len(g.axes("axes", len(shape))) == 2, "axes and shape")
    return (typed(x.dtype, shape),)


# ---- taken out and put in ------------------------------------------------------------------------------------------
@rule("take take_add")
def _take(g: Given) -> Sequence[Type]:
    adds = g.name == "take_add"
    g.count(3 if adds else 2)
    x, places = g.tensor(0), g.tensor(2 if adds else 1, "iu")
    axis = g.axis("axis", x.rank)
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    return _put(g, x, shape) if adds else (typed(x.dtype, shape),)


@rule("gather_nd scatter_nd_add")
def _gather_nd(g: Given) -> Sequence[Type]:
    adds = g.name == "scatter_nd_add"
    g.count(3 if adds else 2)
    x, places = g.tensor(0), g.tensor(2 if adds else 1, "iu", least=1)
    depth = g.whole("depth", 0, x.rank)
    g.equal(places.shape[-1], depth, "depth")
    shape = (*places.shape[:-1], *x.shape[depth:])
    return _put(g, x, shape) if adds else (typed(x.dtype, shape),)


def _put(g: Given, x: TensorType, shape: Sequence[Known]) -> Sequence[Type]:
    values = g.like(1, x.dtype, len(shape))
    for a, b in zip(values.shape, shape, strict=True):
        g.equal(a, b)
    return (x,)


@rule("take_along_axis put_along_axis combine_along_axis keep_at")
def _along_axis(g: Given) -> Sequence[Type]:
    writes = g.name in ("put_along_axis", "combine_along_axis")
    g.count(3 if writes else 2)
    x, places = g.tensor(0), g.tensor(1, "iu")
    axis = g.axis("axis", x.rank)
    g.require(places.rank == x.rank, f"indices of rank {places.rank}")
    for i, (a, b) in enumerate(zip(x.shape, places.shape, strict=True)):
        if i != axis:
            g.equal(a, b)
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
def _last_writer(g: Given) -> Sequence[Type]:
    places, shape = g.tensor(0, "iu"), g.shape("shape", 1)
    g.require(len(shape) == 1, "a shape of one axis")
    g.axis("axis", places.rank)
    return (TensorType(bool_, places.shape),)


@rule("class_places")
def _class_places(g: Given) -> Sequence[Type]:
    g.count(2)
    g.number(1)
    g.whole("ignore_index")
    return (TensorType(int32, g.tensor(0, "iu").shape),)


@rule("one_hot")
def _one_hot(g: Given) -> Sequence[Type]:
    g.count(1)
    x = g.tensor(0, "iu")
    return (TensorType(g.dtype(), (*x.shape, g.whole("num_classes", 0, 2**40))),)


@rule("nonzero")
def _nonzero(g: Given) -> Sequence[Type]:
    g.count(1)
    return (typed(int64, (None, g.tensor(0).rank)),)


@rule("masked_select")
def _masked_select(g: Given) -> Sequence[Type]:
    g.count(2)
    x, mask = g.tensor(0), g.tensor(1, "b")
    g.require(x.rank == mask.rank, f"a mask of rank {mask.rank}")
    for a, b in zip(x.shape, mask.shape, strict=True):
        g.equal(a, b)
    return (typed(x.dtype, (None,)),)


@rule("gather_tree")
def _gather_tree(g: Given) -> Sequence[Type]:
    g.count(2)
    ids = g.tensor(0, "iu", 3)
    g.tensor(1, "iu", 3)
    g.same_shape(1)
    return (ids,)


# ---- brackets ------------------------------------------------------------------------------------------------------
@rule("index index_last index_set index_add")
def _index(g: Given) -> Sequence[Type]:
    writes = g.name in ("index_set", "index_add")
    x, given = g.tensor(0), iter(range(2 if writes else 1, len(g.types)))
    shape = _indexed(g, x, list(_entries(g, x, given)))
    g.require(next(given, None) is None, "too many operands")
    if not writes:
        return (typed(bool_ if g.name == "index_last" else x.dtype, shape),)
    value = g.like(1, x.dtype)
    g.require(value.rank <= len(shape), f"a value of rank {value.rank} for one of {len(shape)}")
    for a, b in zip(reversed(value.shape), reversed(shape), strict=False):
        if a != 1:
            g.equal(a, b)
    return (x,)


def _entries(g: Given, x: TensorType, given: Iterator[int]) -> Iterator[tuple[str, tuple[Known, ...]]]:
    """Yield what each item of the brackets gives: an axis, or a place told by numbers or tensors."""

    def operand() -> int:
        i = next(given, None)
        return g.refuse("too few operands") if i is None else i

    at = 0
    for item in g.sequence("spec"):
        if type(item) is not tuple or not item:
            g.refuse(f"spec has {item!r:.40}")
        item = cast("tuple[Any, ...]", item)
        kind = item[0]
        if kind == "new" and len(item) == 1:
            yield "axis", (1,)
            continue
        g.require(at < x.rank, "more items than axes")
        if kind == "int" and len(item) == 2:
            g.number(operand(), "int", "bool") if item[1] == "?" else g.small(item[1], "spec")
            yield "place", ()
        elif kind == "slice" and len(item) == 4:
            yield "axis", (_sliced(g, x.shape[at], [_bound(g, p, operand) for p in item[1:]]),)
        elif kind == "tensor" and len(item) == 1:
            places = g.tensor(operand(), "iu")
            yield ("tensor" if places.rank else "place"), places.shape
        elif kind == "mask" and len(item) == 1:
            mask = g.tensor(operand(), "b")
            g.require(at + mask.rank <= x.rank, f"a mask of rank {mask.rank}")
            for a, b in zip(mask.shape, x.shape[at:], strict=False):
                g.equal(a, b)
            yield "tensor", (None,)
            at += mask.rank - 1
        else:
            g.refuse(f"spec has {item!r:.40}")
        at += 1
    for extent in x.shape[at:]:
        yield "axis", (extent,)


def _bound(g: Given, part: Any, operand: Any) -> Any:
    """Return a bound of a slice as what is known of it: a type, or None where it is left out."""
    if part == "?":
        return g.number(operand(), "int", "bool")
    return None if part is None else ScalarType("int", g.small(part, "spec"))


def _sliced(g: Given, extent: Extent, bounds: Sequence[ScalarType | None]) -> Known:
    start, stop, step = bounds
    by = 1 if step is None else step.extent
    if not isinstance(by, int) or any(b is not None and b.extent is None for b in bounds):
        return None
    g.require(by != 0, "a slice with step 0")
    first, last = (None if b is None else b.extent for b in (start, stop))
    if not any(isinstance(e, Dim) for e in (extent, first, last)):
        return len(range(*slice(first, last, by).indices(extent)))  # type: ignore[arg-type]
    if by < 0:
        return (extent + (-by - 1)) // -by if first is None and last is None else None
    low, high = _inside(extent, 0 if first is None else first), _inside(extent, extent if last is None else last)
    if low is None or high is None or not at_least_zero(high - low):
        return None
    return high - low if by == 1 else (high - low + (by - 1)) // by


def _inside(extent: Extent, bound: Extent) -> Known:
    """Return a bound of a slice where it is in [0, extent] for certain."""
    if isinstance(bound, int) and bound < 0:
        bound = extent + bound
    return bound if at_least_zero(bound) and at_least_zero(extent - bound) else None


def _indexed(g: Given, x: TensorType, entries: list[tuple[str, tuple[Known, ...]]]) -> list[Known]:
    if all(kind != "tensor" for kind, _ in entries):
        return [shape[0] for kind, shape in entries if kind == "axis"]
    places = [i for i, (kind, _) in enumerate(entries) if kind != "axis"]
    first = places[0] if places[-1] - places[0] + 1 == len(places) else 0
    met = _met(g, [entries[i][1] for i in places])
    before = [shape[0] for kind, shape in entries[:first] if kind == "axis"]
    return [*before, *met, *(shape[0] for kind, shape in entries[first:] if kind == "axis")]


def _met(g: Given, shapes: list[tuple[Known, ...]]) -> list[Known]:
    """Return the shape to which tensors of places are broadcast."""
    made: list[Known] = []
    for axis in range(-max(map(len, shapes)), 0):
        extents = [s[axis] for s in shapes if len(s) >= -axis]
        numbers = sorted({e for e in extents if isinstance(e, int) and e != 1})
        others = list(dict.fromkeys(e for e in extents if not isinstance(e, int)))
        g.require(len(numbers) < 2, "indices that do not fit each other")
        made.append(numbers[0] if numbers else 1 if not others else others[0] if len(others) == 1 else None)
    return made
