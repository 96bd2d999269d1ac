"""Bring the operations of attention together, so that weights, one for each pair of places, need not be written down.

Before                                              After
    %s = matmul(%q, %k) {transpose_y=true}              %y = attention(%q, %k, %v, %mask)
    %m = broadcast(%mask)                               return %y
    %t = add(%s, %m)
    %w = softmax(%t) {axis=-1}
    %y = matmul(%w, %v)
    return %y

1. Scores and weights are used by the next of these operations alone; a mask may be missing.
2. The types tell that all extents fit, so that none of the operations can raise.
3. Each extent of the mask, counted from the last, is that of the scores or 1; axes that it lacks are put in front.
4. All are float32 or float64.
5. Keys may come transposed: then they are transposed back, which moves nothing where a transpose made them.
6. Scores times or over one number are those of queries times or over that number.
7. A mask that lets a query see the keys up to its own place need not be there: that is an attribute.

Reverse mode does the same before it derives, so that training needs no weights either (autodiff/reverse.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType, Type
from dy2st.passes.base import Pass, each_block
from dy2st.passes.causal import is_causal
from dy2st.records import record
from dy2st.shapes import Shape

_DTYPES = ("float32", "float64")
_ACROSS = {"transpose_x": False, "transpose_y": True}
_PLAIN = {"transpose_x": False, "transpose_y": False}


class Attend(Pass):
    """Replace product, mask, softmax and product by one operation."""

    name = "attend"

    def apply(self, program: Program) -> bool:
        return each_block(program, _attend)


def bring_together(block: Block, needed: Collection[Value] = ()) -> list[Operation]:
    """Make attention of the last operation of each chain; return the others, which may be in use elsewhere.

    Values stay: what was the result of a product is that of the attention. No chain goes through `needed` values.
    """
    if not any(operation.op.name == "softmax" for operation in block.operations):
        return []
    uses = Counter(v for o in block.operations if o.op.name != "dim" for v in o.operands)
    uses.update((*block.results, *needed))
    found = {o: parts for o in block.operations if (parts := _parts(o, uses)) is not None}
    if not found:
        return []
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        if operation in found:
            b.location = operation.location
            operation.operands = found[operation].emitted(b)
            operation.op, operation.attributes = lookup("attention"), {"causal": found[operation].causal}
        b.adopt(operation)
    operations[:] = block.operations
    block.operations = operations  # who builds the block knows this list
    return [operation for parts in found.values() for operation in parts.chain]


def _attend(block: Block) -> bool:
    chain = set(bring_together(block))
    used = set(block.results)
    kept: list[Operation] = []
    for operation in reversed(block.operations):
        if operation not in chain or not used.isdisjoint(operation.results):
            kept.append(operation)
            used.update(operation.operands)
    block.operations = kept[::-1]
    return bool(chain)


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
        if mask is None:
            return [query, key, self.value]
        lacking = tensor_type(query).rank - tensor_type(mask).rank
        mask = b.expand_dims(mask, axes=tuple(range(lacking))) if lacking else mask
        return [query, key, self.value, mask]


def _parts(last: Operation, uses: Counter[Value]) -> _Parts | None:
    """Return what is attended to where an operation ends a chain; None for another operation."""
    if last.op.name != "matmul" or any(last.attributes.values()):
        return None
    chain: list[Operation] = []
    softmax = _only(last.operands[0], ("softmax",), uses, chain)
    value = _whole(last.operands[1])
    if softmax is None or softmax.attributes["axis"] % _rank(softmax) != _rank(softmax) - 1:
        return None
    scores, mask, scaled = softmax.operands[0], None, None
    added = _only(scores, ("add",), uses, chain)
    if added is not None:
        pairs = (added.operands, added.operands[::-1])
        scores, term = next((p for p in pairs if _only(p[0], ("matmul", "mul", "div"), uses, [])), pairs[0])
        mask = _before(term, "broadcast")
        chain += _makers(term, "broadcast")
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
    types = [v.type for v in (query, key, value, *([] if mask is None else [mask]))]
    if not _fit(types, turned):
        return None
    causal = mask is not None and is_causal(mask, (tensor_type(query).shape[-2], tensor_type(value).shape[-2]))
    return _Parts(query, key, value, None if causal else mask, scaled, causal, turned, chain)


def _only(value: Value, names: tuple[str, ...], uses: Counter[Value], chain: list[Operation]) -> Operation | None:
    """Return the operation of one of these names that makes a value for one use; it, and what leads there, joins."""
    passed: list[Operation] = []
    while (made := value.operation) is not None and uses[value] == 1:
        passed.append(made)
        if made.op.name in names:
            chain += passed
            return made
        if not _moves_nothing(made):
            return None
        value = made.operands[0]
    return None


def _moves_nothing(operation: Operation) -> bool:
    return operation.op.name == "broadcast" and operation.operands[0].type == operation.results[0].type


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
    if made is None or made.op.name != "transpose":
        return b.transpose(key, perm=perm)
    perm = tuple(made.attributes["perm"][i] for i in perm)
    return made.operands[0] if perm == tuple(range(rank)) else b.transpose(made.operands[0], perm=perm)


def _fit(types: Sequence[Type], turned: bool) -> bool:
    """Say whether the types of query, key, value and mask fit each other."""
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) < len(types) or any(t.dtype is not tensors[0].dtype for t in tensors):
        return False
    q, k, v, *mask = tensors
    if not q.rank == k.rank == v.rank or q.rank < 2:
        return False
    keys, features = k.shape[:-3:-1] if turned else k.shape[-2:]
    fits = q.shape[:-2] == k.shape[:-2] == v.shape[:-2] and q.shape[-1] == features and keys == v.shape[-2]
    return fits and q.dtype.name in _DTYPES and all(_spreads(m.shape, (*q.shape[:-1], keys)) for m in mask)


def _spreads(mask: Shape, scores: Shape) -> bool:
    """Say whether a mask broadcasts to the shape of the scores."""
    return 2 <= len(mask) <= len(scores) and all(e in (1, s) for e, s in zip(mask[::-1], scores[::-1], strict=False))
