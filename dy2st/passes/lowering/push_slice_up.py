"""Cut the operands of a sum, and not the sum, so that what is done with its parts shares a loop nest with it.

Before                                              After
    %z = add(%p, %q)        # [N, 256]                  %a = index(%p) {[:, :64]}      %b = index(%q) {[:, :64]}
    %i = index(%z) {[:, :64]}                           %c = add(%a, %b)
    %f = index(%z) {[:, 64:128]}                        ...
    %g = sigmoid(%i)                                    %g = sigmoid(%c)

So it is with the gates of an LSTM: the sum is never written to memory, because views of products are read as they are.

1. An elementwise operation that cannot raise, or a broadcast, is used by slices of one axis, or by one split of it.
2. The extents of the parts are known and no more than the axis has, so nothing is computed twice.
3. Of a repeated operand the axes are cut that it has; one that is repeated along the axis is repeated less often.
4. Axes of extent 1 that are put in or taken out between a sum and its slices stay behind the slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.shape.concat_split import ExpandDims, Split, Squeeze
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.core.rebuild_block import Now, rebuild
from dy2st.records import record

_WHOLE = ("slice", None, None, None)
_ROUNDS = 8
"""How many sums of sums are cut one after the other."""


@record(frozen=True)
class _Cut:
    """What cuts the result of an operation along an axis."""

    axis: int
    by: list[Operation]


class PushSliceUp(Pass):
    """Cut the operands of what is only used in parts."""

    name = "push_slice_up"

    def apply(self, program: Program) -> bool:
        for iteration in range(_ROUNDS):
            if not each_block(program, _cut_block):
                return iteration > 0
        return True


def _cut_block(block: Block) -> bool:
    users: dict[Value, list[Operation]] = {v: [] for v in block.results}
    for operation in block.operations:
        for value in dict.fromkeys(operation.operands):
            users.setdefault(value, []).append(operation)
    kept = set(block.results)
    found = {
        o: cut for o in block.operations if not kept.intersection(o.results) and (cut := _cuts(o, users)) is not None
    }
    if not found:
        return False
    of = {by: (operation, cut.axis) for operation, cut in found.items() for by in cut.by}

    def instead(b: Builder, operation: Operation, now: Now) -> Sequence[Value] | None:
        if operation in of:
            source, axis = of[operation]
            return _parts(b, source, operation, axis)
        return () if operation in found else None

    rebuild(block, instead)
    return True


def _cuts(operation: Operation, users: dict[Value, list[Operation]]) -> _Cut | None:
    """Return what cuts the result of an operation that may be done on parts; None for another operation."""
    if len(operation.results) != 1 or not _is_done_on_parts(operation):  # 1
        return None
    (made,) = operation.results
    by = users.get(made, [])
    axes = {_axis(user, made) for user in by}
    axis = axes.pop() if len(axes) == 1 else None
    if axis is None or (len(by) > 1 and any(isinstance(o.op, Split) for o in by)):
        return None
    lengths = [tensor_type(v).shape[axis] for user in by for v in user.results]
    whole = tensor_type(made).shape[axis]
    if not isinstance(whole, int) or not all(isinstance(n, int) for n in lengths) or sum(lengths) > whole:  # type: ignore[arg-type]  # 2
        return None
    if isinstance(operation.op, (Broadcast, Squeeze, ExpandDims)) and _own_axis(operation, axis) is None:
        return None
    return _Cut(axis, by)


def _is_done_on_parts(operation: Operation) -> bool:
    (made,) = operation.results
    if not isinstance(made.type, TensorType):
        return False
    if isinstance(operation.op, Broadcast):
        return True
    same = all(isinstance(v.type, TensorType) and v.type.shape == made.type.shape for v in operation.operands)
    if operation.op.can_raise([v.type for v in operation.operands], operation.attributes):
        return False
    if isinstance(operation.op, (Squeeze, ExpandDims)):  # 4
        source = operation.operands[0].operation
        return source is not None and len(source.results) == 1 and _is_done_on_parts(source)
    return same and operation.op.elementwise


def _axis(user: Operation, value: Value) -> int | None:
    """Return the one axis of a value that an operation cuts, and does nothing else; None for another operation."""
    if isinstance(user.op, Split):
        return user.attributes["axis"]
    if not isinstance(user.op, Index):
        return None
    spec = user.attributes["spec"]
    cut = [i for i, part in enumerate(spec) if tuple(part) != _WHOLE]
    return cut[0] if len(cut) == 1 and spec[cut[0]][0] == "slice" and spec[cut[0]][3] in (None, 1) else None


def _own_axis(operation: Operation, axis: int) -> int | None:
    """Return which axis of its operand an axis of a result is, -1 where it is repeated; None where types do not say."""
    x, made = tensor_type(operation.operands[0]), tensor_type(operation.results[0])
    if isinstance(operation.op, (Squeeze, ExpandDims)):
        longer = max(x.rank, made.rank)
        single = {a % longer for a in operation.attributes["axes"]}
        axes = [i for i in range(longer) if i not in single]
        if isinstance(operation.op, Squeeze):
            return axes[axis]
        return None if axis in single else axes.index(axis)
    own = axis - (made.rank - x.rank)
    if own < 0 or x.shape[own] == 1:
        return -1
    return own if x.shape[own] == made.shape[axis] else None


def _parts(b: Builder, source: Operation, user: Operation, axis: int) -> Sequence[Value]:
    """Emit the parts that `user` cuts from what `source` gives."""
    if isinstance(source.op, Broadcast):  # 3
        own = _own_axis(source, axis)
        x = source.operands[0]
        lengths = [tensor_type(v).shape[axis] for v in user.results]
        cut = [x] * len(lengths) if own == -1 else _cut(b, x, user, axis, own)
        return [_repeated(b, source, part, axis, length) for part, length in zip(cut, lengths, strict=True)]
    own = _own_axis(source, axis) if isinstance(source.op, (Squeeze, ExpandDims)) else axis
    cuts = [_cut(b, v, user, axis, own) for v in source.operands]
    return [b.emit(source.op, list(parts), dict(source.attributes)) for parts in zip(*cuts, strict=True)]


def _cut(b: Builder, x: Value, user: Operation, axis: int, own: int | None) -> list[Value]:
    """Emit the parts of an operand along its own axis."""
    attributes: dict[str, Any] = dict(user.attributes)
    if isinstance(user.op, Split):
        attributes["axis"] = own
    else:
        attributes["spec"] = (*[_WHOLE] * (own or 0), user.attributes["spec"][axis])
    return b.operation(user.op, [x, *user.operands[1:]], attributes).results


def _repeated(b: Builder, source: Operation, part: Value, axis: int, length: Any) -> Value:
    """Emit the repetition of a part."""
    shape: Sequence[int | None] = source.attributes["shape"]
    dims = iter(source.operands[1:])
    given = [(i, None if known is not None else next(dims)) for i, known in enumerate(shape)]
    kept = [dim for i, dim in given if dim is not None and i != axis]
    return b.emit("broadcast", [part, *kept], {"shape": (*shape[:axis], length, *shape[axis + 1 :])})
