"""Write what moves or adds complex numbers as operations on pairs of floats, which a code generator has loops for.

Before                                              After
    %y = transpose(%x) {perm=(1, 0)}                    %p = bitcast(expand_dims(%x)) {dtype=float64}
    %s = sum(%y) {axis=(0,)}                            %q = transpose(%p) {perm=(1, 0, 2)}
    return %s                                           %t = sum(%q) {axis=(0,)}
                                                        return squeeze(bitcast(%t) {dtype=complex128})

1. A complex tensor is a tensor of floats with one axis of 2 behind the others; that is a view.
2. Axes are counted from the front, so most operations stay as they are; shapes and permutations get the last axis too.
3. Real and imaginary part are places on that axis, a complex number two parts stacked.
4. Extents and symbols are those of the original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.dtypes import bool_
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import entering
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.elementwise.complex import PART_OF, Imag
from dy2st.ops.shape.concat_split import Stack
from dy2st.passes.core.base import Pass, each_block

Rule = Callable[[Builder, Operation, Sequence[Value]], Value | Sequence[Value]]
"""Emits an operation for the pairs that take the place of its complex operands; gives pairs, or what is real."""

_RULES: dict[str, Rule] = {}
_rule = entering(_RULES)


class ComplexToPairs(Pass):
    """Replace operations on complex numbers by operations on pairs of floats."""

    name = "complex_to_pairs"

    def apply(self, program: Program) -> bool:
        return each_block(program, _block)


def _block(block: Block) -> bool:
    if not any(map(_applies, block.operations)):
        return False
    operations, block.operations = block.operations, []
    b, values, known = Builder(block), dict[Value, Value](), dict[Value, Value]()
    for operation in operations:
        operation.operands = [values.get(v, v) for v in operation.operands]
        if not _applies(operation):
            b.adopt(operation)
            continue
        b.location = operation.location
        given = [_paired(b, v, known) if _is_complex(v) else v for v in operation.operands]
        made = _RULES[operation.op.name](b, operation, given)
        for old, new in zip(operation.results, [made] if isinstance(made, Value) else made, strict=True):
            values[old] = _result(b, old, new, known)
    block.results = [values.get(v, v) for v in block.results]
    return True


def _applies(operation: Operation) -> bool:
    return operation.op.name in _RULES and any(map(_is_complex, (*operation.operands, *operation.results)))


def _is_complex(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.is_complex


def _paired(b: Builder, value: Value, known: dict[Value, Value]) -> Value:
    """1. Emit the pairs of a complex tensor."""
    if value not in known:
        t = tensor_type(value)
        known[value] = b.bitcast(b.expand_dims(value, axes=(t.rank,)), dtype=PART_OF[t.dtype])
    return known[value]


def _result(b: Builder, old: Value, new: Value, known: dict[Value, Value]) -> Value:
    """4. Emit what takes the place of a result, which has its type."""
    t = tensor_type(old)
    if not t.dtype.is_complex:
        b.retype(new, t)
        return new
    b.retype(new, TensorType(PART_OF[t.dtype], (*t.shape, 2)))
    whole = b.squeeze(b.bitcast(new, dtype=t.dtype), axes=(t.rank,))
    b.retype(whole, t)
    known[whole] = new
    return whole


# ---- 2. ------------------------------------------------------------------------------------------------------------
@_rule("add", "sub", "neg", "zeros_like", "detach", "index", "index_set", "index_add", "gather_nd", "scatter_nd_add")
def _as_it_is(b: Builder, operation: Operation, given: Sequence[Value]) -> Sequence[Value]:
    return b.operation(operation.op, given, dict(operation.attributes)).results


@_rule("sum", "mean", "cumsum", "concat", "stack", "split", "flip", "roll", "take", "take_add")
def _from_the_front(b: Builder, operation: Operation, given: Sequence[Value]) -> Sequence[Value]:
    """Count the axis, or axes, from the front."""
    attributes, result = dict(operation.attributes), operation.results[0]
    rank = tensor_type(result if isinstance(operation.op, Stack) else operation.operands[0]).rank
    for name in attributes.keys() & {"axis", "axes"}:
        axes = attributes[name]
        attributes[name] = axes % rank if isinstance(axes, int) else tuple(axis % rank for axis in axes)
    return b.operation(operation.op, given, attributes).results


@_rule("broadcast", "sum_to", "reshape")
def _shaped(b: Builder, operation: Operation, given: Sequence[Value]) -> Sequence[Value]:
    attributes = {"shape": (*operation.attributes["shape"], 2)}
    return b.operation(operation.op, given, attributes).results


@_rule("transpose")
def _transpose(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    perm = operation.attributes["perm"]
    return b.transpose(given[0], perm=(*perm, len(perm)))


@_rule("where")
def _where(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    condition, x, y = given
    condition = b.expand_dims(condition, axes=(tensor_type(condition).rank,))
    return b.emit(operation.op, [b.broadcast_to(condition, tensor_type(x).shape), x, y])


@_rule("tril", "triu")
def _triangle(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    """Choose by the triangle of a matrix of truth, one for all matrices and for both parts."""
    (pairs,) = given
    every = b.shaped("full", [b.constant(True, bool_)], b.shape(pairs)[-3:-1])
    chosen = b.expand_dims(b.emit(operation.op, [every], dict(operation.attributes)), axes=(2,))
    return b.where(chosen, pairs, b.zeros_like(pairs))


@_rule("take_along_axis", "put_along_axis")
def _along_axis(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    """Take both parts from, or put them to, the same places."""
    x, places, *values = given
    t = tensor_type(places)
    places = b.broadcast_to(b.expand_dims(places, axes=(t.rank,)), (*t.shape, 2))
    attributes = {**operation.attributes, "axis": operation.attributes["axis"] % t.rank}
    return b.emit(operation.op, [x, places, *values], attributes)


# ---- 3. ------------------------------------------------------------------------------------------------------------
def _part(b: Builder, pairs: Value, at: int) -> Value:
    whole = (("slice", None, None, None),) * (tensor_type(pairs).rank - 1)
    return b.index(pairs, spec=(*whole, ("int", at)))


@_rule("real", "imag")
def _real(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    return _part(b, given[0], int(isinstance(operation.op, Imag)))


@_rule("complex")
def _complex(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    return b.stack(*given, axis=tensor_type(given[0]).rank)


@_rule("full")
def _full(b: Builder, operation: Operation, given: Sequence[Value]) -> Value:
    pair, *dims = given
    parts = [b.emit(operation.op, [_part(b, pair, at), *dims], dict(operation.attributes)) for at in range(2)]
    return b.stack(*parts, axis=tensor_type(parts[0]).rank)
