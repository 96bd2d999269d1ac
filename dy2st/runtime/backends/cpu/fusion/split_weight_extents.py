"""Extents of weights whose products are cut into parts: `z = x @ w; z[:, :n], z[:, n : 2 * n]`.

How long a part is, the types cannot say: a slice ends where its axis ends. So the parts could not share a loop nest.
Weights seldom change their extents, so the first version of a Program takes those that are cut as they are; and those
that a loop multiplies by what was joined, `concat([x, c]) @ w`, which may be cut too (split_matmul.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dy2st.ir.program import Block, Operation, Program, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.shape.concat_split import Concat, ExpandDims, Split
from dy2st.shapes import Dim, Extent

Origins = Callable[[Extent], Iterable[str]]
"""Tells the symbols that an extent may come from."""


def cut_widths(program: Program, origins: Origins) -> set[str]:
    """Return the symbols of the extents of weights that slices and splits cut, and of where they cut."""
    operations = list(program.block.walk())
    weights = {name for o in operations if isinstance(o.op, MatMul) for e in tensor_type(o.operands[1]).shape
               for name in origins(e)}  # fmt: skip
    found: set[str] = set()
    for operation in operations:
        for axis in _cut(operation):
            extent = tensor_type(operation.operands[0]).shape[axis]
            names = set(origins(extent)) if isinstance(extent, Dim) else set[str]()
            if isinstance(extent, int) or names & weights:
                found |= names | {name for bound in _bounds(operation) for name in origins(bound)}
    for loop in (o for o in operations if o.op.is_loop):
        for extent in _joined(loop.blocks[0]):
            found |= set(origins(extent)) | {name for part in _symbols(extent) for name in origins(part)}
    return found


def _joined(body: Block) -> Iterator[Extent]:
    """Yield the lengths of what a body joins and multiplies by a matrix, and the extents of the matrix."""
    for product in body.operations:
        left = product.operands[0] if isinstance(product.op, MatMul) else None
        if left is not None and left.operation is not None and isinstance(left.operation.op, ExpandDims):
            left = left.operation.operands[0]
        made = None if left is None else left.operation
        if made is not None and isinstance(made.op, Concat) and made.attributes["axis"] == tensor_type(left).rank - 1:
            yield from (tensor_type(part).shape[-1] for part in made.operands)
            yield from tensor_type(product.operands[1]).shape


def _symbols(extent: Extent) -> Iterator[Dim]:
    """Yield the symbols that an extent is made of."""
    if isinstance(extent, Dim):
        yield from (Dim((((name,), 1),)) for name in extent.symbols())


def _cut(operation: Operation) -> Iterator[int]:
    """Yield the axes of the first operand that an operation cuts at numbers of the run."""
    if isinstance(operation.op, Split) and None in operation.attributes["sections"]:
        yield operation.attributes["axis"]
    if not isinstance(operation.op, Index) or not isinstance(operation.operands[0].type, TensorType):
        return
    axis = 0
    for part in operation.attributes["spec"]:
        if part[0] == "slice" and "?" in part:
            yield axis
        axis += {"new": 0, "mask": tensor_type(operation.operands[0]).rank}.get(part[0], 1)


def _bounds(operation: Operation) -> Iterator[Extent]:
    """Yield the symbols in the extents that the numbers among the operands are."""
    for value in operation.operands[1:]:
        extent = value.type.extent if isinstance(value.type, ScalarType) else None
        if extent is not None:
            yield from _symbols(extent)
