"""Builders of backward blocks: what they need of the forward block becomes a residual.

A backward block belongs to one forward block, `source`, which is extended while the backward block is built. A forward
value that the backward block uses is, in this order of preference,

1. the operand of the control operation that entered the forward block as an argument (nothing is stored),
2. for a number that is an extent which is known outside: that extent,
3. computed again, when it is a constant or depends on such operands only (nothing is stored that is not there anyway),
4. made again of another forward value that takes no more memory: a view, a cast to a wider dtype,
5. a residual: stored by the forward block, an argument of the backward block. A number that is an extent of a tensor
   which is there anyway is read from that one in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.opdef import OpDef, lookup
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.ops.control.control_flow import outward, visible_symbols
from dy2st.ops.core.constant import Cast, Detach
from dy2st.ops.indexing.getitem import Index
from dy2st.ops.shape.concat_split import ExpandDims
from dy2st.ops.shape.shape import Broadcast, DimOf, Reshape, Transpose
from dy2st.shapes import Dim, Extent, symbol


class BackwardBuilder(Builder):
    """Build the backward block of `source`; `entering` maps arguments of the forward block to values outside."""

    def __init__(self, source: Builder, parent: Builder | None, entering: dict[Value, Value]):
        super().__init__(Block(), parent, names=source.names)
        self.source, self.entering = source, entering
        self.location = source.location or (parent.location if parent is not None else None)
        self.residuals: dict[Value, Value] = {}
        """Forward value -> argument of this block that holds it."""
        self._again: dict[Value, Value] = {}

    def use(self, value: Value) -> Value:
        if value.block is not self.source.block:
            return super().use(value)
        found = self._again.get(value) or self.residuals.get(value)
        if found is None:
            found = self._fetch(value)
        return found

    def _fetch(self, value: Value) -> Value:
        if value in self.entering:
            return self._entered(value, self.entering[value])
        if self._told_outside(value.type):
            found = self._again[value] = self.scalar(self.extent(value.type.extent))  # type: ignore[union-attr]
            return found
        if self._invariant(value):
            return self._run_again(value)
        if self._is_widened(value) or self._is_part(value):
            return self._run_again(value)
        argument = self.argument(value.type, value.name)
        self.residuals[value] = argument
        return argument

    def _run_again(self, value: Value) -> Value:
        """Emit the operation that makes a forward value here too."""
        made = value.operation
        assert made is not None
        copies = super().operation(made.op, made.operands, made.attributes, (), made.location).results
        for old, new in zip(made.results, copies, strict=True):
            self.retype(new, old.type)
            self._again[old] = new
        return self._again[value]

    def _is_widened(self, value: Value) -> bool:
        """Return whether a value is a view, or a cast to a wider dtype, of one that takes no more memory."""
        made = value.operation
        if made is None or not made.operands or made.operands[0].block is not self.source.block:
            return False
        before, after = made.operands[0].type, value.type
        if isinstance(made.op, Cast) and isinstance(before, TensorType) and isinstance(after, TensorType):
            return before.dtype.itemsize < after.dtype.itemsize
        return isinstance(made.op, (Broadcast, Detach, ExpandDims, Reshape, Transpose))

    def _is_part(self, value: Value) -> bool:
        """Return whether a value is a part, at places that are known here, of a tensor that need not be kept for it."""
        made = value.operation
        if made is None or not isinstance(made.op, Index) or not made.op.makes_view(**made.attributes):  # type: ignore[attr-defined]
            return False
        whole, *places = made.operands
        return self._at_hand(whole) and all(v in self.entering or v in self._again for v in places)

    def _at_hand(self, value: Value) -> bool:
        """Return whether a forward value is there anyway: that an iteration changes, it would be kept for every
        iteration.
        """
        if value in self._again or value in self.residuals:
            return True
        outer, parent = self.entering.get(value), self.parent
        if outer is None:
            return parent is None
        inside = isinstance(parent, BackwardBuilder) and outer.block is parent.source.block
        return not inside or parent._at_hand(outer)  # type: ignore[union-attr]

    def _told_outside(self, type: Type) -> bool:
        """Return whether a number is an extent that is the same around this block, so that no iteration need store
        it.
        """
        if not isinstance(type, ScalarType) or type.extent is None or self.parent is None:
            return False
        return isinstance(type.extent, int) or all(self.parent.knows(symbol(s)) for s in type.extent.symbols())

    def _entered(self, value: Value, outer: Value) -> Value:
        """Return an operand from outside in the type that it has in the forward block: its extents are named there."""
        if outer.type == value.type or not isinstance(value.type, TensorType):
            return super().use(outer)
        if not self.holds(outer):
            return self.capture(outer, value.type)
        found = super().use(outer)
        if found.type != value.type:
            found = self._again[value] = self.shaped("reshape", [found], self.shape(value.type))
        return found

    def rename(self, value: Value, here: Value) -> None:
        """Say that `here` is what the forward value is in this block."""
        self._again[value] = here

    def outside(self, operation: Operation, type: Type) -> Type:
        """Return the type of a value from inside a block of `operation` as it is seen around it."""
        return self.named(self.around(operation, type))

    def around(self, operation: Operation, type: Type) -> Type:
        """Return that type with None for the extents that are seen inside only."""
        return outward(type, visible_symbols([v.type for v in operation.operands]))

    def _invariant(self, value: Value, depth: int = 8) -> bool:
        """Return whether `value` can be computed again from what enters: cheap, pure and never failing."""
        made = value.operation
        if made is None:
            return value in self.entering or value in self._again
        if made.op.is_constant:
            return True
        raises = made.op.can_raise([v.type for v in made.operands], made.attributes)
        if depth == 0 or raises or not (made.op.is_scalar or made.op.rematerializes):
            return False
        if isinstance(made.op, DimOf):  # a number is kept in place of the tensor that it is told of
            return self._told_outside(value.type) or self._at_hand(made.operands[0])
        return all(v.block is self.source.block and self._invariant(v, depth - 1) for v in made.operands)

    def extent(self, extent: Extent) -> int | Value:
        if isinstance(extent, Dim) and extent.is_symbol and not super().knows(extent) and self.source.knows(extent):
            self.provide(extent, self.use(self.source.scalar(self.source.extent(extent))))
        return super().extent(extent)

    def knows(self, extent: Dim) -> bool:
        return super().knows(extent) or self.source.knows(extent)


class LinearTrace(Builder):
    """Record the linear operations that the jvp rule of one op emits; all others go to the backward block.

    Lengths and places of lists are taken where they are told: right behind the operation in the forward block. So a
    number is kept for the way back, not the list, and the list can still be changed in place.
    """

    def __init__(self, outer: Builder, pulled: Operation):
        super().__init__(Block(), outer)
        self.outer, self.pulled = outer, pulled
        self.outs = [v.type for v in pulled.results]
        self.after = pulled

    def use(self, value: Value) -> Value:
        return value

    def operation(
        self,
        op: OpDef | str,
        operands: Sequence[Value],
        attributes: dict[str, Any] | None = None,
        blocks: Sequence[Block] = (),
        location: Any = None,
    ) -> Operation:
        if any(v.block is self.block for v in operands):
            return super().operation(op, operands, attributes, blocks, location)
        name = op if isinstance(op, str) else op.name
        if name in ("list_len", "list_index", "list_popped") and all(v.block is self.home for v in operands):
            return self._behind(name, operands, attributes)
        return self.outer.operation(op, operands, attributes, blocks, location)

    @property
    def home(self) -> Block:
        """The block of the operation that is pulled back."""
        return self.pulled.operands[0].block if self.pulled.operands else self.block

    def _behind(self, name: str, operands: Sequence[Value], attributes: dict[str, Any] | None) -> Operation:
        """Put an operation that gives a number into the forward block, behind what is pulled back."""
        op, given = lookup(name), attributes or {}
        made = Operation(op, list(operands), given, [], self.pulled.location)
        made.results.append(Value(op.infer_operation([v.type for v in operands], given, ()), self.home, made))
        operations = self.home.operations
        operations.insert(operations.index(self.after) + 1, made)
        self.after = made
        return made

    def tangent(self, type: Type) -> Value:
        return self.block.add_argument(type)

    def named(self, type: Type) -> Type:
        """Extents known only at run time are those of the primal result of the same dtype and rank."""
        if isinstance(type, TensorType) and None in type.shape:
            for out in self.outs:
                if isinstance(out, TensorType) and out.dtype is type.dtype and out.rank == type.rank:
                    return out
        return super().named(type)

    def extent(self, extent: Extent) -> int | Value:
        return self.outer.extent(extent)

    def provide(self, extent: Extent, scalar: Value) -> None:
        self.outer.provide(extent, scalar)

    def scalar(self, number: Any) -> Value:
        return self.outer.scalar(number)

    def constant(self, number: Any, dtype: Any) -> Value:
        return self.outer.constant(number, dtype)
