"""Type rules of ops that make tensors, and that move their elements."""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.dtypes import DType
from dy2st.ir.checker.type_join import Known, at_least_zero
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.literals import is_array
from dy2st.ir.type_text import DTYPES
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.shapes import Extent, divide, product

_MOST_RANK = 32


def typed(dtype: DType, shape: Sequence[Known]) -> TensorType:
    """Return the type of a tensor; extents of None are known to the run alone."""
    return TensorType(dtype, tuple(shape))  # type: ignore[arg-type]


def beside(t: TensorType, axis: int) -> list[Known]:
    """Return the extents of a tensor but that of one axis."""
    return [e for i, e in enumerate(t.shape) if i != axis]


# ---- made ----------------------------------------------------------------------------------------------------------
@rule("constant", 0)
def _constant(g: TypedOperation) -> Sequence[Type]:
    value = g.attribute("value")
    if not is_array(value) or value.dtype.name not in DTYPES or not value.dtype.isnative:
        g.refuse("value is no array that a tensor may be")
    return (TensorType(DTYPES[value.dtype.name], value.shape),)


@rule("full")
def _full(g: TypedOperation) -> Sequence[Type]:
    return (typed(g.tensor(0, rank=0).dtype, g.shape("shape", 1)),)


@rule("arange", 3)
def _arange(g: TypedOperation) -> Sequence[Type]:
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


@rule("linspace", 3)
def _linspace(g: TypedOperation) -> Sequence[Type]:
    g.numbers(0, 2, "int", "float")
    return (typed(g.dtype(), (_count(g, 2),)),)


@rule("eye", 2)
def _eye(g: TypedOperation) -> Sequence[Type]:
    return (typed(g.dtype(), (_count(g, 0), _count(g, 1))),)


def _count(g: TypedOperation, i: int) -> Known:
    """Return an extent that a number gives; of one that may be negative nothing is known."""
    extent = g.number(i).extent
    return extent if at_least_zero(extent) else None


@rule("random_uniform random_normal random_exponential random_int random_bernoulli:3 random_permutation:3")
def _random(g: TypedOperation) -> Sequence[Type]:
    g.numbers(0, 2)
    if g.name == "random_bernoulli":
        return (g.tensor(2, "f"),)
    if g.name == "random_permutation":
        return (typed(g.dtype(kinds="iu"), (_count(g, 2),)),)
    if g.name == "random_int":
        g.numbers(2, 4)
        return (typed(g.dtype(kinds="biuf"), g.shape("shape", 4)),)
    return (typed(g.dtype(kinds="f"), g.shape("shape", 2)),)


# ---- shapes --------------------------------------------------------------------------------------------------------
@rule("dim", 1)
def _dim(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    return (ScalarType("int", x.shape[g.axis("axis", x.rank)]),)


@rule("broadcast sum_to")
def _broadcast(g: TypedOperation) -> Sequence[Type]:
    x, shape = g.tensor(0), g.shape("shape", 1)
    g.require(len(shape) <= _MOST_RANK, f"rank {len(shape)}")
    g.fits(*((x.shape, shape) if g.name == "broadcast" else (shape, x.shape)))
    return (typed(x.dtype, shape),)


@rule("reshape")
def _reshape(g: TypedOperation) -> Sequence[Type]:
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


@rule("transpose", 1)
def _transpose(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    perm = g.axes("perm", x.rank)
    g.require(len(perm) == x.rank, "perm names not all axes")
    return (typed(x.dtype, [x.shape[p] for p in perm]),)


@rule("expand_dims", 1)
def _expand_dims(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    rank = x.rank + len(g.sequence("axes"))
    axes, rest = g.axes("axes", rank), iter(x.shape)
    g.require(rank <= _MOST_RANK, f"rank {rank}")
    return (typed(x.dtype, [1 if i in axes else next(rest) for i in range(rank)]),)


@rule("squeeze", 1)
def _squeeze(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    axes = g.axes("axes", x.rank)
    for i in axes:
        g.equal(x.shape[i], 1)
    return (typed(x.dtype, [e for i, e in enumerate(x.shape) if i not in axes]),)


@rule("bitcast", 1)
def _bitcast(g: TypedOperation) -> Sequence[Type]:
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
def _joined(g: TypedOperation) -> Sequence[Type]:
    xs = g.tensors()
    first, stacked = xs[0], g.name == "stack"
    axis = g.axis("axis", first.rank + stacked)
    for x in xs[1:]:
        g.equals(*((first.shape, x.shape) if stacked else (beside(first, axis), beside(x, axis))))
    shape: list[Known] = [
        next((x.shape[i] for x in xs if isinstance(x.shape[i], int)), first.shape[i]) for i in range(first.rank)
    ]
    if stacked:
        return (typed(first.dtype, (*shape[:axis], len(xs), *shape[axis:])),)
    total: Extent = sum((x.shape[axis] for x in xs), 0)
    return (typed(first.dtype, (*shape[:axis], total, *shape[axis + 1 :])),)


@rule("split")
def _split(g: TypedOperation) -> Sequence[Type]:
    x, sections = g.tensor(0), g.shape("sections", 1)
    axis = g.axis("axis", x.rank)
    if all(isinstance(e, int) for e in sections):
        g.equal(sum(e for e in sections if isinstance(e, int)), x.shape[axis], "sections")
    return [typed(x.dtype, (*x.shape[:axis], e, *x.shape[axis + 1 :])) for e in sections]


# ---- moved ---------------------------------------------------------------------------------------------------------
@rule("flip", 1)
def _flip(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0)
    g.axes("axes", x.rank)
    return (x,)


@rule("roll")
def _roll(g: TypedOperation) -> Sequence[Type]:
    x, shifts = g.tensor(0), g.fill("shifts", 1)
    g.require(len(g.wholes("axes", 0, x.rank - 1)) == len(shifts), "as many shifts as axes")
    return (x,)


@rule("pad")
def _pad(g: TypedOperation) -> Sequence[Type]:
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


@rule("tril triu", 1)
def _triangle(g: TypedOperation) -> Sequence[Type]:
    g.whole("diagonal", -(2**31), 2**31)
    return (g.tensor(0, least=2),)


@rule("diagonal", 1)
def _diagonal(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, least=2)
    axes, offset = g.axes("axes", x.rank), g.whole("offset", -(2**31), 2**31)
    g.require(len(axes) == 2, "axes")
    rows, columns = x.shape[axes[0]], x.shape[axes[1]]
    length: Known = rows if rows == columns and not offset else None
    if isinstance(rows, int) and isinstance(columns, int):
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return (typed(x.dtype, (*(e for i, e in enumerate(x.shape) if i not in axes), length)),)


@rule("diagonal_embed")
def _diagonal_embed(g: TypedOperation) -> Sequence[Type]:
    x = g.tensor(0, least=1)
    shape = g.shape("shape", 1, x.rank + 1)
    g.whole("offset", -(2**31), 2**31)
    g.require(len(g.axes("axes", len(shape))) == 2, "axes")
    return (typed(x.dtype, shape),)
