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


RULES: dict[str, Rule] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
}
