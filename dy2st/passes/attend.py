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
"""

from __future__ import annotations

from collections import Counter

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.passes.base import Pass, each_block
from dy2st.shapes import Shape

_DTYPES = ("float32", "float64")


class Attend(Pass):
    """Replace product, mask, softmax and product by one operation."""

    name = "attend"

    def apply(self, program: Program) -> bool:
        return each_block(program, _attend)


def _attend(block: Block) -> bool:
    uses = Counter(v for operation in block.operations for v in operation.operands) + Counter(block.results)
    found = {o: parts for o in block.operations if (parts := _parts(o, uses)) is not None}
    if not found:
        return False
    dropped = {operation for _, chain in found.values() for operation in chain}
    values: dict[Value, Value] = {}
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        if operation in dropped:
            continue
        operation.operands = [values.get(v, v) for v in operation.operands]
        if operation not in found:
            b.adopt(operation)
            continue
        b.location = operation.location
        parts = [values.get(v, v) for v in found[operation][0]]
        lacking = tensor_type(parts[0]).rank - tensor_type(parts[-1]).rank
        if lacking:
            parts[-1] = b.expand_dims(parts[-1], axes=tuple(range(lacking)))
        values[operation.results[0]] = b.emit("attention", parts, {})
    block.results = [values.get(v, v) for v in block.results]
    return True


def _parts(last: Operation, uses: Counter[Value]) -> tuple[list[Value], list[Operation]] | None:
    """Return query, key, value and mask of what ends here, and the operations in front; None for another operation."""
    if last.op.name != "matmul" or any(last.attributes.values()):
        return None
    weights, value = last.operands
    softmax = _only(weights, "softmax", uses)
    if softmax is None or softmax.attributes["axis"] % tensor_type(weights).rank != tensor_type(weights).rank - 1:
        return None
    chain, scores, mask = [softmax], softmax.operands[0], list[Value]()
    added = _only(scores, "add", uses)
    if added is not None:
        pairs = (added.operands, added.operands[::-1])
        scores, term = next((p for p in pairs if _only(p[0], "matmul", uses)), pairs[0])
        spread = _only(term, "broadcast", uses)
        if spread is not None:
            chain.append(spread)
            term = spread.operands[0]
        chain.append(added)
        mask.append(term)
    first = _only(scores, "matmul", uses)
    if first is None or first.attributes != {"transpose_x": False, "transpose_y": True}:
        return None
    parts = [*first.operands, value, *mask]
    return (parts, [first, *chain]) if _fit([v.type for v in parts]) else None


def _only(value: Value, name: str, uses: Counter[Value]) -> Operation | None:
    """Return the operation of a name that makes a value for one use."""
    made = value.operation
    return made if made is not None and made.op.name == name and uses[value] == 1 else None


def _fit(types: list[object]) -> bool:
    """Say whether the types of query, key, value and mask fit each other."""
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) < len(types) or any(t.dtype is not tensors[0].dtype for t in tensors):
        return False
    q, k, v, *mask = tensors
    scores = (*q.shape[:-1], k.shape[-2]) if k.rank > 1 else ()
    fits = q.rank == k.rank == v.rank and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
    fits = fits and q.shape[-1] == k.shape[-1] and k.shape[-2] == v.shape[-2]
    return fits and q.dtype.name in _DTYPES and all(_spreads(m.shape, scores) for m in mask)


def _spreads(mask: Shape, scores: Shape) -> bool:
    """Say whether a mask broadcasts to the shape of the scores."""
    return 2 <= len(mask) <= len(scores) and all(e in (1, s) for e, s in zip(mask[::-1], scores[::-1], strict=False))
