"""Cut products with a matrix that stays in a loop, where their left operand is joined of parts, or is a product itself.

Before                                                  After
    while_loop(..., %m, %w) {                               %upper = index(%w)            # rows 0 to 2
        (..., %m1, %w1) ->                                  %mw = matmul(%m, index(%w))   # rows 2 to 5
        %c = matmul(%p, %m1)        # [n, 3]                while_loop(..., %upper, %mw) {
        %j = concat(%x, %c)         # [n, 2] and [n, 3]         (..., %upper1, %mw1) ->
        %z = matmul(%j, %w1)                                    %z = add(matmul(%x, %upper1), matmul(%p, %mw1))
    }                                                       }

1. The first or last part of what is joined is cut off where it is a product with a matrix that stays, or a row of a
   tensor that stays, whose products are made for many iterations at once (input_projection_batching.py), or stays
   itself.
2. (p m) w is p (m w), and m w stays: one product an iteration and not two. That pays where m w has fewer elements than
   m and w together; where it is known only at run time how many rows m has, it chooses.
3. Nothing is done where the products could raise: all extents that meet are equal by their types.

Sums are made in another order, so strict code is made without this pass. What stays is moved in front of the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.shape.concat_split import Concat, ExpandDims, Squeeze
from dy2st.passes.core.base import Pass
from dy2st.passes.core.effects import Effects
from dy2st.passes.loops.licm import hoist_out_of_loops
from dy2st.records import record
from dy2st.shapes import Extent

_DTYPES = ("float32", "float64")
_PLAIN = {"transpose_x": False, "transpose_y": False}
_FIRST = {"axes": (0,)}


class SplitMatmul(Pass):
    """Replace products in loops by those of their left operand's parts."""

    name = "split_matmul"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            found = sum(_Body(o).split() for o in function.walk() if o.op.is_loop)
            if found:
                hoist_out_of_loops(function, Effects(program))
            changed |= found > 0
        return changed


@record
class Product:
    """A product of matrices: of `left` with `right`, which stays and may be transposed."""

    left: Value
    right: Value
    transposed: bool


class _Body:
    """The body of one loop."""

    def __init__(self, loop: Operation):
        self.block: Block = loop.blocks[0]
        first = loop.attributes["carried"] + (loop.op.is_counted)
        self.stays = set(self.block.arguments[first:])
        uses = (v for operation in self.block.walk() for v in operation.operands)
        self.uses = Counter(uses) + Counter(self.block.results)

    def split(self) -> bool:
        """Cut the products of the body; return whether there were any to cut."""
        cut = {o: groups for o in self.block.operations if (groups := self.groups(o)) is not None}
        if not cut:
            return False
        values: dict[Value, Value] = {}
        operations, self.block.operations = self.block.operations, []
        b = Builder(self.block)
        for operation in operations:
            operation.operands = [values.get(v, v) for v in operation.operands]
            if operation in cut:
                b.location = operation.location
                values[operation.results[0]] = self.made(b, operation, cut[operation])
            else:
                b.adopt(operation)
        self.block.results = [values.get(v, v) for v in self.block.results]
        return True

    # ---- what is cut -----------------------------------------------------------------------------------------------
    def groups(self, product: Operation) -> list[list[Value]] | None:
        """Return the parts of a left operand, grouped as they are multiplied; None for what is left as it is."""
        if (
            not isinstance(product.op, MatMul)
            or dict(product.attributes) != _PLAIN
            or product.operands[1] not in self.stays
        ):
            return None
        right = tensor_type(product.operands[1])
        if right.rank != 2 or right.dtype.name not in _DTYPES or tensor_type(product.operands[0]).rank != 2:
            return None
        parts = self.parts(self.row_of(product.operands[0]))
        lengths = [tensor_type(part).shape[-1] for part in parts]
        if (
            not all(isinstance(n, int) for n in (*lengths, *right.shape))
            or sum(map(_number, lengths)) != right.shape[0]
        ):
            return None  # 3.
        before: list[list[Value]] = []
        after: list[list[Value]] = []
        while parts and self.is_better_apart(parts[0], right):
            before.append([parts.pop(0)])
        while parts and self.is_better_apart(parts[-1], right):
            after.insert(0, [parts.pop()])
        if not before and not after:
            return None
        groups = [*before, *([parts] if parts else []), *after]
        one = groups[0][0]
        return None if len(groups) == 1 and self.product_of(one, right) is None else groups

    def row_of(self, value: Value) -> Value:
        """Return the vector that a matrix of one row was made of, where it was; else the matrix."""
        made = value.operation
        is_row = made is not None and isinstance(made.op, ExpandDims) and dict(made.attributes) == _FIRST
        return made.operands[0] if is_row and made is not None and self.uses[value] == 1 else value

    def parts(self, value: Value) -> list[Value]:
        """Return what was joined to this value, along its last axis; or the value."""
        made = value.operation
        if made is None or not isinstance(made.op, Concat) or self.uses[value] != 1:
            return [value]
        return list(made.operands) if made.attributes["axis"] == tensor_type(value).rank - 1 else [value]

    def is_better_apart(self, part: Value, right: TensorType) -> bool:
        """1."""
        if part in self.stays or self.product_of(part, right) is not None:
            return True
        made = part.operation
        is_row = made is not None and isinstance(made.op, Index) and made.attributes["spec"] == (("int", "?"),)
        return made is not None and is_row and made.operands[0] in self.stays and tensor_type(part).rank == 2

    def product_of(self, part: Value, right: TensorType) -> Product | None:
        """Return the product that a part is, where the matrix that stays may be multiplied first (2.)."""
        matrix, made = part, part.operation
        if (
            made is not None
            and isinstance(made.op, Squeeze)
            and dict(made.attributes) == _FIRST
            and self.uses[part] == 1
        ):
            matrix, made = made.operands[0], made.operands[0].operation
        if made is None or not isinstance(made.op, MatMul) or made.attributes["transpose_x"] or self.uses[matrix] != 1:
            return None
        left, stays = made.operands
        transposed = bool(made.attributes["transpose_y"])
        shape = tensor_type(stays).shape
        if stays not in self.stays or len(shape) != 2 or tensor_type(left).rank != 2:
            return None
        rows, columns = reversed(shape) if transposed else shape
        if rows != tensor_type(left).shape[1] or not _pays(rows, columns, right.shape[1]):  # 3. and 2.
            return None
        return Product(left, stays, transposed)

    # ---- what is made of it ----------------------------------------------------------------------------------------
    def made(self, b: Builder, product: Operation, groups: list[list[Value]]) -> Value:
        """Emit the sum of the products of the groups with their rows of the right operand."""
        right, total, at = product.operands[1], None, 0
        for group in groups:
            length = sum(_number(tensor_type(part).shape[-1]) for part in group)
            spec = (("slice", at, at + length, None),)
            rows = right if len(groups) == 1 else b.emit("index", [right], {"spec": spec})
            term = self.term(b, group, rows)
            total = term if total is None else b.emit("add", [total, term])
            at += length
        assert total is not None
        return total

    def term(self, b: Builder, group: list[Value], rows: Value) -> Value:
        product = self.product_of(group[0], tensor_type(rows)) if len(group) == 1 else None
        if product is not None:
            return _reordered(b, product, rows)
        rank = tensor_type(group[0]).rank
        left = group[0] if len(group) == 1 else b.emit("concat", group, {"axis": rank - 1})
        return b.emit("matmul", [b.emit("expand_dims", [left], _FIRST) if rank == 1 else left, rows], _PLAIN)


def _number(extent: Extent) -> int:
    assert isinstance(extent, int)
    return extent


def _pays(rows: Extent, columns: Extent, made: Extent) -> bool:
    """Return whether rows x made elements may be fewer than those of rows x columns and columns x made."""
    if not isinstance(columns, int) or not isinstance(made, int):
        return False
    return rows * made < rows * columns + columns * made if isinstance(rows, int) else columns * made > 0


def _reordered(b: Builder, product: Product, right: Value) -> Value:
    """2. Emit (left stays) right as left (stays right), where that is less work."""
    left, stays = product.left, product.right
    shape, made = tensor_type(stays).shape, _number(tensor_type(right).shape[1])
    columns = _number(shape[0 if product.transposed else 1])
    axis = 1 if product.transposed else 0
    together = {"transpose_x": product.transposed, "transpose_y": False}
    apart = {"transpose_x": False, "transpose_y": product.transposed}
    if isinstance(shape[axis], int) or made <= columns:
        return b.emit("matmul", [left, b.emit("matmul", [stays, right], together)], _PLAIN)
    rows = b.emit("dim", [stays], {"axis": axis})
    more = b.emit("scalar_mul", [rows, b.scalar(made - columns)])
    is_less = b.emit("scalar_lt", [more, b.scalar(columns * made)])

    def of_both(inner: Builder, given: list[Value]) -> Value:
        return inner.emit("matmul", given, together)

    def nothing(inner: Builder, given: list[Value]) -> Value:
        zero = inner.constant(0, tensor_type(given[1]).dtype)
        return inner.shaped("broadcast", [zero], [inner.emit("dim", given[:1], {"axis": axis}), made])

    def one_product(inner: Builder, given: list[Value]) -> Value:
        return inner.emit("matmul", [given[0], given[3]], _PLAIN)

    def two_products(inner: Builder, given: list[Value]) -> Value:
        return inner.emit("matmul", [inner.emit("matmul", given[:2], apart), given[2]], _PLAIN)

    before = _choice(b, is_less, [stays, right], of_both, nothing)
    return _choice(b, is_less, [left, stays, right, before], one_product, two_products)


def _choice(b: Builder, condition: Value, operands: list[Value],
            *sides: Callable[[Builder, list[Value]], Value]) -> Value:  # fmt: skip
    """Emit `cond` with a block for each side, made of its arguments."""
    blocks: list[Block] = []
    for side in sides:
        inner = Builder(Block(), b)
        inner.location = b.location
        inner.block.results = [side(inner, [inner.argument(v.type) for v in operands])]
        blocks.append(inner.block)
    return b.operation("cond", [condition, *operands], {}, blocks).results[0]
