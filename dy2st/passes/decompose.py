"""Write large operations in terms of small ones, which a code generator can put into loops of its own.

Before                                    After
    %y = softmax(%x) {axis=1}                 %top = max(%x) {axis=(1,), keepdim=true}
    return %y                                 %e = exp(%x - %top), broadcasts apart
                                              return %e / sum(%e)

Only where the types say that the operation cannot raise and that it works along the last axes. Results are equal to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.passes.base import Pass

Rule = Callable[[Builder, Operation], Sequence[Value] | None]


class Decompose(Pass):
    """Replace large operations by small ones."""

    name = "decompose"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _block(function, {})
        return changed


def _block(block: Block, values: dict[Value, Value]) -> bool:
    changed = False
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        operation.operands = [values.get(v, v) for v in operation.operands]
        for inner in operation.blocks:
            changed |= _block(inner, {})
        rule = RULES.get(operation.op.name)
        b.location = operation.location
        made = rule(b, operation) if rule is not None else None
        if made is None:
            b.adopt(operation)
            continue
        changed = True
        values.update(zip(operation.results, made, strict=True))
    block.results = [values.get(v, v) for v in block.results]
    return changed


def _is_last(operation: Operation) -> bool:
    t = tensor_type(operation.operands[0])
    return t.rank > 0 and t.dtype.bits >= 32 and operation.attributes["axis"] % t.rank == t.rank - 1


def _shifted(b: Builder, x: Value) -> Value:
    axis = tensor_type(x).rank - 1
    return b.sub(x, b.max(x, axis=(axis,), keepdim=True))


def _total(b: Builder, x: Value) -> Value:
    return b.sum(x, axis=(tensor_type(x).rank - 1,), keepdim=True)


def _softmax(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if not _is_last(operation):
        return None
    e = b.exp(_shifted(b, operation.operands[0]))
    return [b.div(e, _total(b, e))]


def _log_softmax(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if not _is_last(operation):
        return None
    x = _shifted(b, operation.operands[0])
    return [b.sub(x, b.log(_total(b, b.exp(x))))]


def _layer_norm(b: Builder, operation: Operation) -> Sequence[Value] | None:
    x, scale, bias = operation.operands
    t, rank = tensor_type(x), operation.attributes["rank"]
    last = t.shape[t.rank - rank :]
    if tensor_type(scale).shape != last or tensor_type(bias).shape != last or t.dtype.bits < 32:
        return None
    axis = tuple(range(t.rank - rank, t.rank))
    mean = b.mean(x, axis=axis, keepdim=True)
    off = b.sub(x, mean)
    variance = b.mean(b.mul(off, off), axis=axis, keepdim=True)
    slope = b.reciprocal(b.sqrt(b.add(variance, operation.attributes["epsilon"])))
    return [b.add(b.mul(b.mul(off, slope), scale), bias), mean, variance]


def _fits_channels(operation: Operation) -> bool:
    """Say whether each operand but the first has, by its type, one element for each channel."""
    x, *parts = map(tensor_type, operation.operands)
    channels = x.shape[operation.attributes["axis"] : operation.attributes["axis"] + 1]
    return x.dtype.bits >= 32 and all(p.shape == channels and p.dtype is x.dtype for p in parts)


def _others(operation: Operation) -> tuple[int, ...]:
    rank, axis = tensor_type(operation.operands[0]).rank, operation.attributes["axis"]
    return tuple(i for i in range(rank) if i != axis)


def _normalised(b: Builder, operation: Operation, off: Value, variance: Value) -> Value:
    """Emit off / sqrt(variance + epsilon) * scale + bias; the factor of a channel is computed once."""
    others = _others(operation)
    _, scale, bias, *_ = operation.operands
    slope = b.mul(b.rsqrt(b.add(variance, operation.attributes["epsilon"])), scale)
    return b.add(b.mul(off, b.expand_dims(slope, axes=others)), b.expand_dims(bias, axes=others))


def _batch_norm_infer(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if not _fits_channels(operation):
        return None
    x, _, _, mean, variance = operation.operands
    return [_normalised(b, operation, b.sub(x, b.expand_dims(mean, axes=_others(operation))), variance)]


def _batch_norm_train(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if not _fits_channels(operation):
        return None
    x, others = operation.operands[0], _others(operation)
    mean = _reduced(b, "mean", x, others)
    off = b.sub(x, b.expand_dims(mean, axes=others))
    variance = _reduced(b, "mean", b.mul(off, off), others)
    return [_normalised(b, operation, off, variance), mean, variance]


def _reduced(b: Builder, name: str, x: Value, axes: Sequence[int], keepdim: bool = False) -> Value:
    """Emit a reduction, over the last axes first where axes before and behind the kept ones go."""
    rank = tensor_type(x).rank
    kept = [a for a in range(rank) if a not in axes]
    before, behind = [a for a in axes if a < kept[0]], [a for a in axes if a > kept[-1]]
    if before and behind and len(before) + len(behind) == len(axes):
        x = b.emit(name, [x], {"axis": tuple(behind), "keepdim": keepdim})
        axes = before
    return b.emit(name, [x], {"axis": tuple(axes), "keepdim": keepdim})


def _apart(operation: Operation, axes: Sequence[int]) -> bool:
    """Say whether a reduction is over axes before and behind the ones that are kept, and no others."""
    t = tensor_type(operation.operands[0])
    kept = [a for a in range(t.rank) if a not in axes]
    return t.dtype.bits >= 32 and bool(kept) and kept == [*range(kept[0], kept[-1] + 1)] and {0, t.rank - 1} <= {*axes}


def _reduction(b: Builder, operation: Operation) -> Sequence[Value] | None:
    axes = operation.attributes["axis"]
    if not _apart(operation, axes):
        return None
    return [_reduced(b, operation.op.name, operation.operands[0], axes, operation.attributes["keepdim"])]


def _sum_to(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Write a sum to [1, C, 1, 1] as two sums, where the types tell which axes go."""
    before, after = tensor_type(operation.operands[0]).shape, tensor_type(operation.results[0]).shape
    if len(before) != len(after) or any(n not in (1, m) for n, m in zip(after, before, strict=True)):
        return None
    axes = [i for i, (n, m) in enumerate(zip(after, before, strict=True)) if n != m]
    return [_reduced(b, "sum", operation.operands[0], axes, keepdim=True)] if _apart(operation, axes) else None


RULES: dict[str, Rule] = {
    "batch_norm_infer": _batch_norm_infer,
    "batch_norm_train": _batch_norm_train,
    "sum": _reduction,
    "mean": _reduction,
    "sum_to": _sum_to,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
}
