"""Write large operations in terms of small ones, which a code generator can put into loops of its own.

Before                                    After
    %y = softmax(%x) {axis=1}                 %top = top(%x) {axis=(1,), keepdim=true}
    return %y                                 %e = exp(%x - %top), broadcasts apart
                                              return %e * (1 / sum(%e))

Sums and products of float16 numbers become those of float32 numbers between casts, and what LAPACK computes of float32
numbers that of float64 numbers, as NumPy has it.

Only where the types say that the operation cannot raise, but for labels that are no class. Results are equal to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from dy2st.dtypes import DType, dtype, float16, float32
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import entering
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.reduce.reduction import Prod
from dy2st.passes.core.base import Pass
from dy2st.passes.lowering.matrix_exponential import exponential, slope
from dy2st.passes.lowering.polygamma import polygamma
from dy2st.passes.lowering.quantized_weights import numbers, product

Rule = Callable[[Builder, Operation], Sequence[Value] | None]

RULES: dict[str, Rule] = {}
_rule = entering(RULES)


class Decompose(Pass):
    """Replace large operations by small ones, but those that are `kept`."""

    name = "decompose"

    def __init__(self, kept: Container[str] = ()):
        self._kept = kept

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _block(function, {}, self._kept)
        return changed


def _block(block: Block, values: dict[Value, Value], kept: Container[str]) -> bool:
    changed = False
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        operation.operands = [values.get(v, v) for v in operation.operands]
        for inner in operation.blocks:
            changed |= _block(inner, {}, kept)
        rule = None if operation.op.name in kept else RULES.get(operation.op.name)
        rule = _widened if _wide(operation) is not None else rule
        b.location = operation.location
        made = rule(b, operation) if rule is not None else None
        if made is None:
            b.adopt(operation)
            continue
        changed = True
        values.update(zip(operation.results, made, strict=True))
    block.results = [values.get(v, v) for v in block.results]
    return changed


def _wide(operation: Operation) -> DType | None:
    """Return the dtype that an operation computes in where it is not that of its operands."""
    if operation.op.computes_in is None:
        return None
    narrow, wide = map(dtype, operation.op.computes_in)
    return wide if tensor_type(operation.operands[0]).dtype is narrow else None


def _widened(b: Builder, operation: Operation) -> Sequence[Value]:
    """Write casts around an operation that computes in a wider dtype, as its `eval` has them."""
    wide = [b.cast(v, dtype=_wide(operation)) for v in operation.operands]
    attributes = operation.attributes
    if (
        isinstance(operation.op, Prod) and not attributes["keepdim"] and attributes["axis"]
    ):  # no number of float16 alone
        made = b.cast(b.prod(wide[0], axis=attributes["axis"], keepdim=True), dtype=float16)
        return [b.squeeze(made, axes=attributes["axis"])]
    made = b.operation(operation.op, wide, attributes)
    for value, old in zip(made.results, operation.results, strict=True):
        b.retype(value, TensorType(tensor_type(value).dtype, tensor_type(old).shape))
    return [b.cast(v, dtype=tensor_type(operation.operands[0]).dtype) for v in made.results]


def _axis(operation: Operation) -> int | None:
    """Return along which axis an operation works; None for a tensor without axes."""
    t = tensor_type(operation.operands[0])
    return operation.attributes["axis"] % t.rank if t.rank > 0 else None


def _is_half(x: Value) -> bool:
    return tensor_type(x).dtype is float16


def _wide_of(b: Builder, x: Value) -> Value:
    """Emit x as numbers that sums are added up in."""
    return b.cast(x, dtype=float32) if _is_half(x) else x


def _back(b: Builder, made: Value, x: Value) -> Value:
    """Emit what was computed with wide numbers as numbers of the dtype of x."""
    return b.cast(made, dtype=float16) if _is_half(x) else made


def _over(b: Builder, name: str, x: Value, axes: Sequence[int]) -> Value:
    """Emit a reduction that keeps its axes and the dtype of x."""
    return _back(b, b.emit(name, [_wide_of(b, x)], {"axis": tuple(axes), "keepdim": True}), x)


def _shifted(b: Builder, x: Value, axis: int) -> Value:
    return b.sub(x, _over(b, "top", x, (axis,)))


def _total(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Emit a sum that keeps its axes, of float16 in float32."""
    return b.sum(_wide_of(b, x), axis=tuple(axes), keepdim=True)


@_rule("softmax")
def _softmax(b: Builder, operation: Operation) -> Sequence[Value] | None:
    axis, x = _axis(operation), operation.operands[0]
    if axis is None:
        return None
    e = b.exp(_shifted(b, x, axis))
    if _is_half(x):
        return [_back(b, b.div(_wide_of(b, e), _total(b, e, (axis,))), x)]
    return [b.mul(e, b.reciprocal(_total(b, e, (axis,))))]


@_rule("log_softmax")
def _log_softmax(b: Builder, operation: Operation) -> Sequence[Value] | None:
    axis = _axis(operation)
    if axis is None:
        return None
    x = _shifted(b, operation.operands[0], axis)
    return [_back(b, b.sub(_wide_of(b, x), b.log(_total(b, b.exp(x), (axis,)))), x)]


@_rule("logsumexp")
def _logsumexp(b: Builder, operation: Operation) -> Sequence[Value] | None:
    x, axes = operation.operands[0], operation.attributes["axis"]
    if not axes or tensor_type(x).dtype.is_complex:  # which have no largest one
        return None
    top = _over(b, "top", x, axes)
    finite = b.where(b.isfinite(top), top, b.zeros_like(top))
    made = b.add(b.log(_over(b, "sum", b.exp(b.sub(x, finite)), axes)), finite)
    return [made if operation.attributes["keepdim"] else b.squeeze(made, axes=axes)]


@_rule("layer_norm")
def _layer_norm(b: Builder, operation: Operation) -> Sequence[Value] | None:
    x, scale, bias = operation.operands
    t, rank = tensor_type(x), operation.attributes["rank"]
    last = t.shape[t.rank - rank :]
    if tensor_type(scale).shape != last or tensor_type(bias).shape != last:
        return None
    if any(tensor_type(v).dtype is not t.dtype for v in (scale, bias)):
        return None
    axis = tuple(range(t.rank - rank, t.rank))
    wide, scale, bias = (_wide_of(b, v) for v in (x, scale, bias))  # squares of float16 overflow past 255
    mean = _over(b, "mean", wide, axis)
    off = b.sub(wide, mean)
    variance = _over(b, "mean", b.mul(off, off), axis)
    slope = b.reciprocal(b.sqrt(b.add(variance, operation.attributes["epsilon"])))
    made = b.add(b.mul(b.mul(off, slope), scale), bias)
    return [_back(b, v, x) for v in (made, mean, variance)]


def _fits_channels(operation: Operation) -> bool:
    """Return whether each operand but the first has, by its type, one element for each channel."""
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


@_rule("batch_norm_infer")
def _batch_norm_infer(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if not _fits_channels(operation):
        return None
    x, _, _, mean, variance = operation.operands
    return [_normalised(b, operation, b.sub(x, b.expand_dims(mean, axes=_others(operation))), variance)]


@_rule("batch_norm_train")
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
    """Return whether a reduction is over axes before and behind the ones that are kept, and no others."""
    t = tensor_type(operation.operands[0])
    kept = [a for a in range(t.rank) if a not in axes]
    return t.dtype.bits >= 32 and bool(kept) and kept == [*range(kept[0], kept[-1] + 1)] and {0, t.rank - 1} <= {*axes}


@_rule("sum", "mean")
def _reduction(b: Builder, operation: Operation) -> Sequence[Value] | None:
    axes = operation.attributes["axis"]
    if not _apart(operation, axes):
        return None
    return [_reduced(b, operation.op.name, operation.operands[0], axes, operation.attributes["keepdim"])]


@_rule("sum_to")
def _sum_to(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Write a sum to [1, C, 1, 1] as two sums, and one over axes in the middle as a sum, where the types tell them.

    A sum of one term is the term itself.
    """
    before, after = tensor_type(operation.operands[0]).shape, tensor_type(operation.results[0]).shape
    lead = len(before) - len(after)
    if lead > 0 and before == (*(1,) * lead, *after):
        return [b.squeeze(operation.operands[0], axes=tuple(range(lead)))]
    if len(before) != len(after) or any(n not in (1, m) for n, m in zip(after, before, strict=True)):
        return None
    axes = [i for i, (n, m) in enumerate(zip(after, before, strict=True)) if n != m]
    if not axes or len(axes) == len(before) or not tensor_type(operation.operands[0]).dtype.is_floating:
        return None
    x = operation.operands[0]
    return [_back(b, _reduced(b, "sum", _wide_of(b, x), axes, keepdim=True), x)]


@_rule("softmax_cross_entropy")
def _softmax_cross_entropy(b: Builder, operation: Operation) -> Sequence[Value] | None:
    logits, labels = operation.operands
    axis, shape = _axis(operation), tensor_type(logits).shape
    if axis is None or tensor_type(labels).shape != (*shape[:axis], 1, *shape[axis + 1 :]):
        return None
    ignored: int = operation.attributes["ignore_index"]
    at = b.class_places(labels, b.dim(logits, axis=axis), ignore_index=ignored)
    x = _shifted(b, logits, axis)
    chosen = _total(b, b.keep_at(_wide_of(b, x), at, axis=axis), (axis,))
    loss = _back(b, b.sub(b.log(_total(b, b.exp(x), (axis,))), chosen), logits)
    return [b.where(b.eq(labels, ignored), b.zeros_like(loss), loss)]


@_rule("random_uniform")
def _half_uniform(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Write numbers of 11 bits as the upper bits of those of 24."""
    if operation.attributes["dtype"] is not float16:
        return None
    u = b.operation(operation.op, operation.operands, {**operation.attributes, "dtype": float32}).results[0]
    return [b.cast(b.mul(b.floor(b.mul(u, 2.0**11)), 2.0**-11), dtype=float16)]


@_rule("random_normal", "random_exponential")
def _half_normal(b: Builder, operation: Operation) -> Sequence[Value] | None:
    if operation.attributes["dtype"] is not float16:
        return None
    made = b.operation(operation.op, operation.operands, {**operation.attributes, "dtype": float32}).results[0]
    return [b.cast(made, dtype=float16)]


@_rule("random_bernoulli")
def _half_bernoulli(b: Builder, operation: Operation) -> Sequence[Value] | None:
    """Write k / 2**11 < p, for the upper 11 bits k of a word, as a comparison of all 24: u < ceil(2**11 p) / 2**11."""
    seed, draw, p = operation.operands
    if not _is_half(p):
        return None
    wide = b.mul(b.ceil(b.mul(_wide_of(b, p), 2.0**11)), 2.0**-11)
    return [b.cast(b.random_bernoulli(seed, draw, wide), dtype=float16)]


@_rule("keep_at")
def _half_keep_at(b: Builder, operation: Operation) -> Sequence[Value] | None:
    x, places = operation.operands
    if not _is_half(x):
        return None
    return [_back(b, b.keep_at(_wide_of(b, x), places, **operation.attributes), x)]


_rule("polygamma")(polygamma)
_rule("matrix_exp")(exponential)
_rule("matrix_exp_slope")(slope)
_rule("dequantize")(numbers)
_rule("quantized_matmul")(product)
