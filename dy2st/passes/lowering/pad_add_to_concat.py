"""Join parts, and do not add each of them to zeros.

Before                                              After
    %z = full(0.0) {shape=(N, 8)}                       %n = broadcast(0.0) {shape=(N, 5)}
    %a = index_add(%z, %p) {[:, 3:]}                    %a = add(%p, %n)
    %b = index_add(%a, %q) {[:, :3]}                    %m = broadcast(0.0) {shape=(N, 3)}
                                                        %c = add(%q, %m)
                                                        %b = concat(%c, %a) {axis=1}

The gradient of what is cut into parts, like the gates of an LSTM, comes so. A loop nest writes its parts where they
belong.

1. Nobody else reads the zeros, or the sums but the last.
2. Along one axis, whose extent is known, the parts are slices that cover it and do not overlap; along the others each
   is as long as the sum, so nothing is repeated.

x + 0.0 is kept: it is 0.0 where x is -0.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.constant import Constant, Full
from dy2st.ops.indexing.getitem import IndexAdd
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.rebuild_block import Now, rebuild
from dy2st.records import record

_WHOLE = ("slice", None, None, None)
_DTYPES = ("float32", "float64")


@record(frozen=True)
class _Chain:
    """What is added to zeros: the zeros, the axis, and the parts in their order along it."""

    zeros: Operation
    axis: int
    parts: list[Value]
    dropped: list[Operation]


class PadAddToConcat(Pass):
    """Replace sums of zeros and parts that do not overlap by the parts, joined."""

    name = "pad_add_to_concat"

    def apply(self, program: Program) -> bool:
        return each_block(program, _join)


def _join(block: Block) -> bool:
    uses = Counter(v for o in block.operations for v in o.operands) + Counter(block.results)
    further = {o.operands[0] for o in block.operations if isinstance(o.op, IndexAdd) and uses[o.operands[0]] == 1}
    found = {
        o: chain for o in block.operations
        if isinstance(o.op, IndexAdd) and o.results[0] not in further and (chain := _chain(o, uses)) is not None
    }  # fmt: skip
    if not found:
        return False
    dropped = {o for chain in found.values() for o in chain.dropped}

    def instead(b: Builder, operation: Operation, now: Now) -> Sequence[Value] | None:
        if operation in found:
            return [_joined(b, found[operation], now)]
        return () if operation in dropped else None

    rebuild(block, instead)
    return True


def _chain(last: Operation, uses: Counter[Value]) -> _Chain | None:
    """Return the parts that are added to zeros one by one; None where they do not cover them."""
    whole = tensor_type(last.results[0])
    if whole.dtype.name not in _DTYPES:
        return None
    axes: set[int] = set()
    parts: list[tuple[int, int, Value]] = []
    dropped: list[Operation] = []
    made: Operation | None = last
    while made is not None and isinstance(made.op, IndexAdd):
        part = _part(made, whole)
        if part is None or (made is not last and uses[made.results[0]] != 1):  # 1.
            return None
        axes.add(part[0])
        parts.append((part[1], part[2], made.operands[1]))
        dropped.append(made)
        made = made.operands[0].operation
    if made is None or not _is_zeros(made) or uses[made.results[0]] != 1 or len(axes) != 1 or len(parts) < 2:  # 1.
        return None
    parts.sort(key=lambda part: part[:2])
    (axis,) = axes
    ends = [0, *(stop for _, stop, _ in parts)]
    if [start for start, _, _ in parts] != ends[:-1] or ends[-1] != whole.shape[axis]:  # 2.
        return None
    return _Chain(made, axis, [part for *_, part in parts], [*dropped, made])


def _part(operation: Operation, whole: TensorType) -> tuple[int, int, int] | None:
    """Return the axis along which an operation adds to a slice, where that begins and ends; None for others."""
    spec, value = operation.attributes["spec"], operation.operands[1]
    cut = [i for i, part in enumerate(spec) if tuple(part) != _WHOLE]
    if len(cut) != 1 or spec[cut[0]][0] != "slice" or spec[cut[0]][3] not in (None, 1):
        return None
    (axis,), t = cut, tensor_type(value)
    extent, numbers = whole.shape[axis], iter(operation.operands[2:])
    if not isinstance(extent, int) or t.dtype is not whole.dtype:
        return None
    start, stop = (_number(part, numbers, other) for part, other in zip(spec[axis][1:3], (0, extent), strict=True))
    if start is None or stop is None or not 0 <= start <= stop <= extent:
        return None
    wanted = (*whole.shape[:axis], stop - start, *whole.shape[axis + 1 :])
    return (axis, start, stop) if t.shape == wanted else None


def _number(part: int | str | None, numbers: Iterator[Value], other: int) -> int | None:
    """Return a bound of a slice, `other` where it has none; None where it is not known."""
    if part is None or isinstance(part, int):
        return other if part is None else part
    t = next(numbers).type
    return t.extent if isinstance(t, ScalarType) and isinstance(t.extent, int) else None


def _is_zeros(operation: Operation) -> bool:
    if not isinstance(operation.op, Full):
        return False
    made = operation.operands[0].operation
    if made is None or not isinstance(made.op, Constant):
        return False
    number: np.ndarray[Any, Any] = made.attributes["value"]
    return not number.tobytes().strip(b"\0")


def _joined(b: Builder, chain: _Chain, now: Now) -> Value:
    """Emit the parts, each with 0.0 added, one after the other."""
    number, *dims = map(now, chain.zeros.operands)
    shape: list[int | None] = list(chain.zeros.attributes["shape"])
    if shape[chain.axis] is None:
        del dims[sum(e is None for e in shape[: chain.axis])]
    made: list[Value] = []
    for part in map(now, chain.parts):
        length = tensor_type(part).shape[chain.axis]
        own = (*shape[: chain.axis], length, *shape[chain.axis + 1 :])
        made.append(b.emit("add", [part, b.emit("broadcast", [number, *dims], {"shape": own})]))
    return b.emit("concat", made, {"axis": chain.axis})
