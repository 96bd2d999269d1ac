"""Whether the rows of a batch have nothing to do with each other, which is proved from the Program.

    (x: float32[N, 4]) -> softmax(x @ w)     row i of the result is made of row i of x: requests may be one batch
    (x: float32[N, 4]) -> x - x.mean(0)      all rows meet in the mean: they may not

The analysis is that of loops which threads share (`loop_parallel/axis_propagation.py`), with rules for more ops: axes
are put into classes as operations tie them, and what is not known mixes its axes. The first axes of all inputs are one
class, that of the batch. An axis of k times as many places belongs to it too, k places for each row: so `reshape` joins
rows with what follows them, as linear layers do, and parts them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from dy2st.ir.opdef import entering
from dy2st.ir.program import Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.loop_parallel.axis_propagation import (
    AxisClasses,
    Rule,
    axes_of,
    mix_all,
    tie_block,
    tie_trailing,
)
from dy2st.shapes import Dim


def meeting_rows(program: Program, inputs: int, outputs: int) -> str:
    """Return why requests may not be one batch, or "" where each row of the outputs follows from its row of inputs."""
    taken, given = program.block.arguments[:inputs], program.block.results[:outputs]
    if not taken or not all(isinstance(v.type, TensorType) and v.type.rank for v in (*taken, *given)):
        return "not all inputs and outputs are tensors with a first axis"
    rows = axes_of(taken[0])[0]
    if not (isinstance(rows, Dim) and rows.is_symbol) or any(axes_of(v)[0] != rows for v in (*taken, *given)):
        return "the first axes of inputs and outputs are not one symbolic extent"
    ties = AxisClasses(_TIES)
    for value in taken[1:]:
        ties.tie((taken[0], 0), (value, 0))
    tie_block(ties, program.block)
    batch = (taken[0], 0)
    if ties.is_mixed(batch):
        return "an operation works along the batch, or none is known to leave rows apart"
    if not all(ties.are_tied(batch, (v, 0)) for v in given):
        return "an output does not follow its row of the inputs"
    seen: set[Value] = set()
    for value, axis in ties.members(batch):
        extent = axes_of(value)[axis]
        if value in seen or not isinstance(extent, Dim) or extent // rows * rows != extent:
            return "two axes of a value are of the batch, or a part of one"
        seen.add(value)
    return ""


_TIES: dict[str, Rule] = {}
_ties = entering(_TIES)


@_ties(
    "softmax", "log_softmax", "cumsum", "cumprod", "linear_scan", "cummax", "cummin", "sort", "argsort", "topk", "fft"
)
def _along_one(ties: AxisClasses, operation: Operation) -> None:
    _kept(ties, operation.operands, operation.results, {operation.attributes["axis"]})


@_ties("reshape")
def _reshape(ties: AxisClasses, operation: Operation) -> None:
    """Tie the first of the axes that become one or several others; what stands behind it is mixed."""
    (x, *numbers), (made,) = operation.operands, operation.results
    for number, axis in zip(
        numbers, (i for i, n in enumerate(operation.attributes["shape"]) if n is None), strict=True
    ):
        ties.tie((number, 0), (made, axis))
    many = [[i for i, n in enumerate(axes_of(v)) if n != 1] for v in (x, made)]
    sizes = [list(accumulate((axes_of(v)[i] for i in axes), mul)) for v, axes in zip((x, made), many, strict=True)]
    firsts: list[tuple[int, ...]] = []
    """Of the groups of axes that have as many places together: which axes they begin with."""
    begin = (0, 0)
    for count, size in enumerate(sizes[0], 1):
        if size in sizes[1]:
            firsts.append(begin)
            begin = count, sizes[1].index(size) + 1
    if begin != (len(many[0]), len(many[1])):
        mix_all(ties, operation)
        return
    tied = [{axes[first[k]] for first in firsts} for k, axes in enumerate(many)]
    for value, kept in zip((x, made), tied, strict=True):
        for axis in set(range(len(axes_of(value)))) - kept:
            ties.mix(value, axis)
    for one, other in firsts:
        ties.tie((x, many[0][one]), (made, many[1][other]))


@_ties("flip")
def _flip(ties: AxisClasses, operation: Operation) -> None:
    _kept(ties, operation.operands, operation.results, set(operation.attributes["axes"]))


@_ties("batch_norm_infer")
def _batch_norm_infer(ties: AxisClasses, operation: Operation) -> None:
    x, *of_channels = operation.operands
    _kept(ties, [x], operation.results, {operation.attributes["axis"]})
    for value in of_channels:
        ties.mix(value)


@_ties("layer_norm")
def _layer_norm(ties: AxisClasses, operation: Operation) -> None:
    x, scale, bias = operation.operands
    rank = len(axes_of(x))
    _kept(ties, [x], operation.results, set(range(rank - operation.attributes["rank"], rank)))
    ties.mix(scale)
    ties.mix(bias)


@_ties("max_pool", "avg_pool")
def _pool(ties: AxisClasses, operation: Operation) -> None:
    _windows(ties, operation, len(operation.attributes["kernel"]))


@_ties("adaptive_avg_pool", "adaptive_max_pool")
def _adaptive_pool(ties: AxisClasses, operation: Operation) -> None:
    _windows(ties, operation, len(operation.attributes["output"]))


def _windows(ties: AxisClasses, operation: Operation, count: int) -> None:
    """Tie images and channels; the windows go over so many axes, the last ones."""
    (x,), rank = operation.operands, len(axes_of(operation.operands[0]))
    _kept(ties, [x], operation.results, set(range(rank - count, rank)))


@_ties("conv")
def _conv(ties: AxisClasses, operation: Operation) -> None:
    x, w = operation.operands
    _kept(ties, [x], operation.results, set(range(1, len(axes_of(x)))))
    ties.mix(w)


def _kept(ties: AxisClasses, operands: Sequence[Value], results: Sequence[Value], mixed: set[int]) -> None:
    """Tie the axes of values of one rank to each other, and mix some."""
    first, rank = results[0], len(axes_of(results[0]))
    for value in (*operands, *results):
        ties.tie_all(value, first)
    for axis in mixed:
        for value in (*operands, *results):
            ties.mix(value, axis % rank)


@_ties("argmax", "argmin", "logsumexp")
def _reduction(ties: AxisClasses, operation: Operation) -> None:
    (x,), (made,), axes = operation.operands, operation.results, operation.attributes["axis"]
    rank = len(axes_of(x))
    gone = set(range(rank)) if axes is None else {a % rank for a in ((axes,) if isinstance(axes, int) else axes)}
    for axis in gone:
        ties.mix(x, axis)
    for place, axis in enumerate(i for i in range(rank) if i not in gone):
        ties.tie((x, axis), (made, axis if operation.attributes["keepdim"] else place))


@_ties("matmul")
def _matmul(ties: AxisClasses, operation: Operation) -> None:
    """Tie the rows of the left matrices; axes in front of matrices are matched from the last on."""
    (x, y), (made,) = operation.operands, operation.results
    if min(len(axes_of(x)), len(axes_of(y))) < 2:
        mix_all(ties, operation)
        return
    rank = len(axes_of(made))
    for value in (x, y):
        lead = rank - len(axes_of(value))
        for axis in range(len(axes_of(value)) - 2):
            if axes_of(value)[axis] == axes_of(made)[lead + axis]:
                ties.tie((value, axis), (made, lead + axis))
            else:
                ties.mix(value, axis)
    last = len(axes_of(x)) - 1
    swapped = operation.attributes["transpose_x"]
    ties.tie((x, last if swapped else last - 1), (made, rank - 2))
    ties.mix(x, last - 1 if swapped else last)
    ties.mix(y, len(axes_of(y)) - 2, len(axes_of(y)) - 1)
    ties.mix(made, rank - 1)


@_ties("attention")
def _attention(ties: AxisClasses, operation: Operation) -> None:
    q, k, v, *more = operation.operands
    (made,) = operation.results
    rank = len(axes_of(made))
    if len(more) > 1 or not len(axes_of(q)) == len(axes_of(k)) == len(axes_of(v)) == rank:
        mix_all(ties, operation)
        return
    _kept(ties, [q, k, v], [made], {rank - 2, rank - 1})
    for mask in more:
        tie_trailing(ties, mask, made, repeats=True)


@_ties("take")
def _take(ties: AxisClasses, operation: Operation) -> None:
    """Tie the indices' axes, which stand in the result where the axis was that they point into."""
    (x, indices), (made,) = operation.operands, operation.results
    rank, places = len(axes_of(x)), len(axes_of(indices))
    axis = operation.attributes["axis"] % rank
    ties.mix(x, axis)
    for i in range(places):
        ties.tie((indices, i), (made, axis + i))
    for i in (i for i in range(rank) if i != axis):
        ties.tie((x, i), (made, i if i < axis else i + places - 1))


@_ties("take_along_axis")
def _take_along_axis(ties: AxisClasses, operation: Operation) -> None:
    if axes_of(operation.operands[0])[:1] != axes_of(operation.operands[1])[:1]:
        mix_all(ties, operation)
        return
    _kept(ties, operation.operands, operation.results, {operation.attributes["axis"]})


@_ties("one_hot")
def _with_axis_more(ties: AxisClasses, operation: Operation) -> None:
    (x, *numbers), made = operation.operands, operation.results
    for value in made:
        for axis in range(min(len(axes_of(x)), len(axes_of(value)))):
            ties.tie((x, axis), (value, axis))
        for axis in range(len(axes_of(x)), len(axes_of(value))):
            ties.mix(value, axis)
    for number in numbers:
        ties.mix(number)


@_ties("pad")
def _pad(ties: AxisClasses, operation: Operation) -> None:
    (x, *numbers), (made,) = operation.operands, operation.results
    padded = {
        i
        for i, p in enumerate(zip(operation.attributes["low"], operation.attributes["high"], strict=True))
        if p != (0, 0)
    }
    _kept(ties, [x], [made], padded)
    for number in numbers:
        ties.mix(number)
