"""Tensors that are filled and then written over as a whole before anybody reads them: nobody fills them.

    %y = full(%zero) {shape=(64,)}              %y: memory, as it is
    %a = index_set(%y, %x) {spec=(0:32)}        %a = index_set(%y, %x) {spec=(0:32)}
    %b = index_set(%a, %z) {spec=(32:64)}       %b = index_set(%a, %z) {spec=(32:64)}

1. Nobody reads the elements but writes of regions, one into the result of the other, that cover all of it together.
   Whoever asks for extents reads no element.
2. A loop that runs as often as an axis is long writes a slice of that axis in each iteration, and reads nothing else of
   it.
3. Branches: each of them writes over it.

Where a write raises instead, nobody gets to see the tensor: whoever does is a reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar import ScalarMax
from dy2st.ops.core.constant import Full
from dy2st.ops.core.regions import Region, Span, cover, region_of
from dy2st.ops.indexing.getitem import IndexSet
from dy2st.ops.shape.shape import Broadcast, DimOf
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_registers, is_native
from dy2st.shapes import Dim, Extent

_DEEPEST = 20
"""How many branches and loops, and tensors that several write to, are looked through."""


def unfilled(block: Block) -> frozenset[Value]:
    """Return the tensors of a block of which nobody reads what they are filled with."""
    fills = [o for o in block.operations if _is_fill(o)]
    if not fills or not any(isinstance(o.op, IndexSet) for o in _walk(block)):
        return frozenset()
    readers = _readers(block)
    return frozenset(o.results[0] for o in fills if readers.get(o.results[0]) and _ends(block, readers, o.results[0]))


def _walk(block: Block) -> Sequence[Operation]:
    return [inner for o in block.operations for inner in (o, *(i for b in o.blocks for i in _walk(b)))]


def _is_fill(operation: Operation) -> bool:
    op = operation.op
    if op.splat is None and not isinstance(op, (Full, Broadcast)):
        return False
    t = operation.results[0].type
    if not isinstance(t, TensorType) or in_registers(t) or not is_native(t.dtype):
        return False
    return not isinstance(op, Broadcast) or tensor_type(operation.operands[0]).rank == 0


Readers = dict[Value, list[tuple[Operation, int]]]
"""Who reads a value's elements, as which operand."""


def _readers(block: Block) -> Readers:
    found: Readers = {}
    for operation in block.operations:
        for i, value in enumerate(operation.operands):
            if not isinstance(operation.op, DimOf):
                found.setdefault(value, []).append((operation, i))
    return found


def _ends(block: Block, readers: Readers, value: Value, done: Sequence[Region] = (), depth: int = 0) -> bool:
    """Return whether all elements that are not `done` yet are written over before they are read."""
    regions = list(done)
    while value not in block.results and len(mine := readers.get(value, [])) == 1 and _is_base(mine[0]):  # 1
        region = _region(mine[0][0])
        if region is None:
            return False
        regions.append(region)
        value = mine[0][0].results[0]
    if cover(regions):
        return True
    if value in block.results or depth == _DEEPEST:
        return False
    return all(_is_written_over(block, readers, o, i, regions, depth + 1) for o, i in readers.get(value, []))


def _is_base(reader: tuple[Operation, int]) -> bool:
    return isinstance(reader[0].op, IndexSet) and reader[1] == 0


def _region(write: Operation) -> Region | None:
    return region_of(tensor_type(write.operands[0]).shape, write.attributes["spec"])


def _is_written_over(
    block: Block, readers: Readers, operation: Operation, i: int, done: Sequence[Region], depth: int
) -> bool:
    """Return whether an operation writes over what is left of its operand number `i`."""
    if isinstance(operation.op, IndexSet) and i == 0:
        region = _region(operation)
        return region is not None and _ends(block, readers, operation.results[0], [*done, region], depth)
    if operation.op.is_branch and i > 0:  # 3
        return all(_ends(b, _readers(b), b.arguments[i - 1], done, depth) for b in operation.blocks)
    if operation.op.is_counted and 0 < i <= operation.attributes["carried"]:
        return _fills_by_iterations(operation, i)
    return False


def _fills_by_iterations(loop: Operation, i: int) -> bool:
    """2."""
    (body,) = loop.blocks
    iteration, value = body.arguments[0], body.arguments[i]
    readers = _readers(body)
    if len(readers.get(value, [])) != 1 or value in body.results:
        return False
    write, at = readers[value][0]
    made = write.results[0]
    if not isinstance(write.op, IndexSet) or at != 0 or readers.get(made) or body.results.count(made) != 1:
        return False
    if body.results[i - 1] is not made:
        return False
    spec = write.attributes["spec"]
    named = [axis for axis, part in enumerate(spec) if part == ("int", "?")]
    rest = tuple(("slice", None, None, None) if axis in named else part for axis, part in enumerate(spec))
    shape = tensor_type(value).shape
    region = region_of(shape, rest)
    if len(named) != 1 or write.operands[2:] != [iteration] or any(part[0] == "new" for part in spec) or region is None:
        return False
    return _iterations(loop.operands[0]) == shape[named[0]] and all(span == Span() for span in region)


def _iterations(count: Value) -> Extent | None:
    """Return which extent a loop's count is; None where it is another number. An extent is never below 0."""
    made = count.operation
    if made is not None and isinstance(made.op, ScalarMax):
        numbers = [v.type.extent for v in made.operands if isinstance(v.type, ScalarType)]
        extents = [e for e in numbers if isinstance(e, Dim)]
        return extents[0] if len(extents) == 1 and 0 in numbers else None
    return count.type.extent if isinstance(count.type, ScalarType) else None
