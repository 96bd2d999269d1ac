"""Bring the operations of attention together, so that weights, one for each pair of places, need not be written down.

Before                                              After
    %s = matmul(%q, %k) {transpose_y=true}              %y = attention(%q, %k, %v, %mask)
    %m = broadcast(%mask)                               return %y
    %t = add(%s, %m)
    %w = softmax(%t) {axis=-1}
    %y = matmul(%w, %v)
    return %y

1. Scores and weights are used by the next of these operations alone; a mask may be missing.
2. The types tell that the extents fit, so that none of the operations can raise; or both products stand on one line of
   the user's, whose error an attention of what does not fit is then. Extents that broadcast are those of the weights.
3. Each extent of the mask, counted from the last, is that of the scores or 1; axes that it lacks are put in front. A
   mask of which the types do not tell that goes in as it is added.
4. All are float32 or float64.
5. Keys may come transposed: then they are transposed back, which moves nothing where a transpose made them.
6. Scores times or over one number are those of queries times or over that number.
7. A mask that lets a query see the keys up to its own place need not be there: that is an attribute. So is a
   `where` that does so, with or without a mask before it.
8. A mask that attention takes as it is added goes in as in 3. where later types tell more; its cotangent, which is only
   added up to what that was before the broadcast, is so then.
9. Weights of which some are dropped at random, by constants, go in with the numbers of the draw (match_dropout.py).

Reverse mode does the same before it derives, so that training needs no weights either (autodiff/reverse.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import cast

from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType, Type
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.nn.attention import AttentionMaskGrad, AttentionOp, mask_of
from dy2st.ops.reduce.softmax import Softmax
from dy2st.ops.shape.shape import Broadcast, DimOf, SumTo, Transpose
from dy2st.passes.core.base import Pass, each_block
from dy2st.passes.simplify.match_causal_mask import is_causal, is_causal_where
from dy2st.passes.simplify.match_dropout import MatchedDropout, drop_of
from dy2st.records import record
from dy2st.shapes import Extent, Shape

_DTYPES = ("float32", "float64")
_ACROSS = {"transpose_x": False, "transpose_y": True}
_PLAIN = {"transpose_x": False, "transpose_y": False}


class FuseAttention(Pass):
    """Replace product, mask, softmax and product by one operation."""

    name = "fuse_attention"

    def apply(self, program: Program) -> bool:
        return each_block(program, _attend)


def bring_together(block: Block, needed: Collection[Value] = ()) -> list[Operation]:
    """Make attention of the last operation of each chain; return the others, which may be in use elsewhere.

    Values stay: what was the result of a product is that of the attention. No chain goes through `needed` values.
    """
    if not any(isinstance(operation.op, Softmax) for operation in block.operations):
        return []
    uses = Counter(v for o in block.operations if not isinstance(o.op, DimOf) for v in o.operands)
    uses.update((*block.results, *needed))
    found = {o: parts for o in block.operations if (parts := _parts(o, uses)) is not None}
    if not found:
        return []
    chains = {v for parts in found.values() for o in parts.chain for v in o.results}
    _measure_elsewhere(block, chains)
    operations, block.operations = block.operations, []
    b = Builder(block)
    first = {parts.first: parts for parts in found.values()}
    for operation in operations:
        if operation in first and not first[operation].fits:
            _silence(b, operation)
        if operation in found:
            b.location = operation.location
            operation.operands = found[operation].emitted(b)
            operation.op, operation.attributes = lookup("attention"), {"causal": found[operation].causal}
        b.adopt(operation)
    operations[:] = block.operations
    block.operations = operations  # who builds the block knows this list
    return [operation for parts in found.values() for operation in parts.chain]


def _silence(b: Builder, product: Operation) -> None:
    """Make a product whose error is that of the attention an operation that cannot raise: nobody needs its elements."""
    made = tensor_type(product.results[0])
    zero, shape = b.constant(0.0, made.dtype), b.shape(made)
    product.op, product.attributes = lookup("broadcast"), {"shape": tuple(e if type(e) is int else None for e in shape)}
    product.operands = [zero, *(e for e in shape if isinstance(e, Value))]


def _measure_elsewhere(block: Block, chains: Collection[Value]) -> None:
    """Take extents that are measured of the values of chains of earlier values that have them too."""
    places: dict[Extent, tuple[Value, int]] = {}
    seen: list[Value] = list(block.arguments)
    for operation in block.operations:
        if isinstance(operation.op, DimOf) and operation.operands[0] in chains:
            value, axis = operation.operands[0], cast("int", operation.attributes["axis"])
            for known in seen:
                if known not in chains and isinstance(known.type, TensorType):
                    places |= {e: (known, i) for i, e in enumerate(known.type.shape) if e not in places}
            seen.clear()
            if (place := places.get(tensor_type(value).shape[axis])) is not None:
                operation.operands, operation.attributes = [place[0]], {"axis": place[1]}
        seen += operation.results


def _attend(block: Block) -> bool:
    narrowed = _narrow_masks(block)
    chain = set(bring_together(block))
    used = set(block.results)
    kept: list[Operation] = []
    for operation in reversed(block.operations):
        if operation not in chain or not used.isdisjoint(operation.results):
            kept.append(operation)
            used.update(operation.operands)
    block.operations = kept[::-1]
    return bool(chain) or narrowed


def _narrow_masks(block: Block) -> bool:
    """Give attention its masks as they were before a broadcast (8.)."""
    masks = {
        o: (mask, o.op.mask_at)
        for o in block.operations
        if isinstance(o.op, AttentionOp) and (mask := _narrower(o, o.op, block)) is not None
    }
    if masks:
        operations, block.operations = block.operations, []
        b = Builder(block)
        for operation in operations:
            if operation in masks:
                mask, at = masks[operation]
                rank = tensor_type(operation.operands[0]).rank
                operation.operands[at] = mask = _of_rank(b, mask, rank)
                if isinstance(operation.op, AttentionMaskGrad):
                    operation.results[0].type = mask.type
            b.adopt(operation)
        used = {v for o in block.operations if not isinstance(o.op, DimOf) for v in o.operands}.union(block.results)
        spread = {v for o in block.operations if isinstance(o.op, Broadcast) for v in o.results}
        _measure_elsewhere(block, spread - used)
    return bool(masks)


def _narrower(operation: Operation, op: AttentionOp, block: Block) -> Value | None:
    """Return what the mask of an attention is a broadcast of, where that fits as well."""
    given = mask_of(operation.operands[op.mask_at :], tensor_type(operation.operands[0]).rank)
    mask = _before(given[0], "broadcast") if given else None
    if mask is None or mask is given[0]:
        return None
    q, k = (tensor_type(x).shape for x in operation.operands[:2])
    if not _spreads(tensor_type(mask).shape, (*q[:-1], k[-2])):
        return None
    if isinstance(operation.op, AttentionMaskGrad) and not _is_added_up(operation.results[0], tensor_type(mask), block):
        return None
    return mask


def _is_added_up(value: Value, to: TensorType, block: Block) -> bool:
    """Return whether a value is only added up to a shape."""
    users = [o for o in block.operations if not isinstance(o.op, DimOf) and value in o.operands]
    return value not in block.results and all(isinstance(o.op, SumTo) and o.results[0].type == to for o in users)


@record(frozen=True)
class _Parts:
    """What an attention is of."""

    query: Value
    key: Value
    value: Value
    mask: Value | None
    scaled: Operation | None
    """The operation that scales the scores by its second operand."""
    causal: bool
    """Whether queries see keys up to their own place."""
    turned: bool
    """Whether keys come transposed."""
    drop: MatchedDropout | None
    weights: Shape
    """The extents of the weights."""
    first: Operation
    """The product that makes the scores."""
    fits: bool
    """Whether the types tell that the features of queries and keys are as many."""
    chain: list[Operation]
    """The operations whose results it does not need."""

    def emitted(self, b: Builder) -> list[Value]:
        """Emit what there is not yet, and return the operands."""
        query, key, mask = self.query, self.key, self.mask
        if self.scaled is not None:
            factor = _before(self.scaled.operands[1], "broadcast")
            factor = b.broadcast_to(factor, tensor_type(query).shape)
            query = b.emit(self.scaled.op, [query, factor])
        if self.turned:
            key = _turned(b, key)
        *batch, queries, keys = self.weights
        query = b.broadcast_to(query, (*batch, queries, tensor_type(query).shape[-1]))
        key = b.broadcast_to(key, (*batch, keys, tensor_type(key).shape[-1]))
        drop = [] if self.drop is None else self.drop.emitted(b)
        if mask is None:
            return [query, key, self.value, *drop]
        fits = _spreads(tensor_type(mask).shape, self.weights)
        mask = _of_rank(b, mask, len(self.weights)) if fits else b.broadcast_to(mask, self.weights)
        return [query, key, self.value, mask, *drop]


def _parts(last: Operation, uses: Counter[Value]) -> _Parts | None:
    """Return what is attended to where an operation ends a chain; None for another operation."""
    if not isinstance(last.op, MatMul) or any(last.attributes.values()):
        return None
    chain: list[Operation] = []
    drop = drop_of(last.operands[0], uses)
    chain += [] if drop is None else drop.chain
    softmax = _only(last.operands[0] if drop is None else drop.weights, ("softmax",), uses, chain)
    value = _whole(last.operands[1])
    if softmax is None or softmax.attributes["axis"] % _rank(softmax) != _rank(softmax) - 1:
        return None
    scores, mask, scaled, term = softmax.operands[0], None, None, None
    hidden = _only(scores, ("where",), uses, chain)
    if hidden is not None:
        if not is_causal_where(hidden.operands, tensor_type(scores).shape[-2:]):
            return None
        chain += [m for x in hidden.operands[::2] for m in _makers(x, "broadcast")]
        scores = hidden.operands[1]
    added = _only(scores, ("add",), uses, chain)
    if added is not None:
        pairs = (added.operands, added.operands[::-1])
        scores, term = next((p for p in pairs if _only(p[0], ("matmul", "mul", "div"), uses, [])), pairs[0])
        mask = _before(term, "broadcast")
    found = _only(scores, ("mul", "div"), uses, chain)
    if found is not None and _is_number(_before(found.operands[1], "broadcast")):
        scores, scaled = found.operands[0], found
        chain += _makers(found.operands[1], "broadcast")
    elif found is not None:
        return None
    first = _only(scores, ("matmul",), uses, chain)
    if first is None or first.attributes not in (_ACROSS, _PLAIN):
        return None
    query, key = map(_whole, first.operands)
    turned = first.attributes == _PLAIN
    chain += _makers(key, "transpose") if turned else []
    weights, scores = tensor_type(last.operands[0]).shape, tensor_type(softmax.operands[0]).shape
    if mask is not None and not _spreads(tensor_type(mask).shape, scores):
        mask = term
    elif term is not None:
        chain += _makers(term, "broadcast")
    types = [v.type for v in (query, key, value, *([] if mask is None else [mask]))]
    on_one_line = first.location is not None and first.location == last.location
    if not _fit(types, weights, turned, on_one_line):
        return None
    causal = mask is not None and is_causal(mask, scores[-2:])
    fits = tensor_type(query).shape[-1] == tensor_type(key).shape[-2 if turned else -1]
    mask = None if causal else mask
    causal = causal or hidden is not None
    return _Parts(query, key, value, mask, scaled, causal, turned, drop, weights, first, fits, chain)


def _only(value: Value, names: tuple[str, ...], uses: Counter[Value], chain: list[Operation]) -> Operation | None:
    """Return the operation of one of these names that makes a value for one use; it, and what leads there, joins."""
    passed: list[Operation] = []
    while (made := value.operation) is not None and uses[value] == 1:
        passed.append(made)
        if made.op.name in names:
            chain += passed
            return made
        if not isinstance(made.op, Broadcast):
            return None
        value = made.operands[0]
    return None


def _moves_nothing(operation: Operation) -> bool:
    return isinstance(operation.op, Broadcast) and operation.operands[0].type == operation.results[0].type


def _whole(value: Value) -> Value:
    """Return what a value was before broadcasts that move nothing."""
    while (made := value.operation) is not None and _moves_nothing(made):
        value = made.operands[0]
    return value


def _before(value: Value, name: str) -> Value:
    """Return what an operation of that name made a value of; the value where another made it."""
    made = value.operation
    return made.operands[0] if made is not None and made.op.name == name else value


def _makers(value: Value, name: str) -> list[Operation]:
    """Return the operation that makes a value where it has that name."""
    return [value.operation] if value.operation is not None and value.operation.op.name == name else []


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.rank == 0


def _rank(operation: Operation) -> int:
    return tensor_type(operation.results[0]).rank


def _turned(b: Builder, key: Value) -> Value:
    """Emit a transpose of the last two axes, of what was transposed where that is so."""
    made, rank = key.operation, tensor_type(key).rank
    perm: tuple[int, ...] = (*range(rank - 2), rank - 1, rank - 2)
    if made is None or not isinstance(made.op, Transpose):
        return b.transpose(key, perm=perm)
    perm = tuple(made.attributes["perm"][i] for i in perm)
    return made.operands[0] if perm == tuple(range(rank)) else b.transpose(made.operands[0], perm=perm)


def _of_rank(b: Builder, mask: Value, rank: int) -> Value:
    """Emit a mask with axes in front that it lacks."""
    lacking = rank - tensor_type(mask).rank
    return b.expand_dims(mask, axes=tuple(range(lacking))) if lacking else mask


def _fit(types: Sequence[Type], weights: Shape, turned: bool, on_one_line: bool) -> bool:
    """Return whether the types of query, key, value and mask fit each other, or may where that is told on one line."""
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) < len(types) or any(t.dtype is not tensors[0].dtype for t in tensors):
        return False
    q, k, v = tensors[:3]
    if not q.rank == k.rank == v.rank == len(weights) or q.rank < 2 or v.shape[:-2] != weights[:-2]:
        return False
    met = [(q.shape[-1], k.shape[-2 if turned else -1]), (weights[-1], v.shape[-2])]
    fits = all(a == b or (on_one_line and not (isinstance(a, int) and isinstance(b, int))) for a, b in met)
    return fits and q.dtype.name in _DTYPES


def _spreads(mask: Shape, scores: Shape) -> bool:
    """Return whether a mask broadcasts to the shape of the scores."""
    return 2 <= len(mask) <= len(scores) and all(e in (1, s) for e, s in zip(mask[::-1], scores[::-1], strict=False))
