"""The Builder appends operations to a block; sub-blocks are built by child builders that capture what they use.

Rules of ops write `b.mul(x, y)`: any registered op by name. Python numbers become constants of the other operands'
dtype, and operands of elementwise ops are brought to one shape by explicit `broadcast` operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from dy2st.dtypes import DType
from dy2st.errors import TraceError
from dy2st.ir.location import Location, user_location
from dy2st.ir.opdef import OpDef, lookup
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.shapes import Dim, Extent, Shape, broadcast, symbol

Mark: TypeAlias = (
    "tuple[Operation | None, dict[Any, Value], dict[str, tuple[Value, int]], dict[Dim, tuple[Value, int]]]"
)


Guard: TypeAlias = "Callable[[Builder, OpDef, list[Value], dict[str, Any]], Operation | None]"


class Names:
    """Hands out the fresh symbols of one function."""

    def __init__(self, start: int = 0):
        self.count = start

    def symbol(self) -> Dim:
        self.count += 1
        return symbol(f"n{self.count - 1}")


class Builder:
    """Append operations to `block`. A child (`parent` given) captures outer values as arguments of its block."""

    def __init__(self, block: Block | None = None, parent: Builder | None = None, names: Names | None = None):
        self.block = block if block is not None else Block()
        self.parent = parent
        self.names = names or (parent.names if parent else Names())
        self.functions: dict[str, Block] | None = parent.functions if parent else None
        """The functions of the Program, where the derivatives of calls need them."""
        self.guard: Guard | None = parent.guard if parent else None
        """What puts an operation that may raise into a `try` instead; asked before each operation."""
        self.captures: dict[Value, Value] = {}
        self.location: Location | None = parent.location if parent else None
        self._extents: dict[str, tuple[Value, int]] = {}
        self._composed: dict[Dim, tuple[Value, int]] = {}
        """Where extents stand that are no symbols, for blocks in which no value tells their symbols."""
        self._scalars: dict[Any, Value] = {}
        for argument in self.block.arguments:
            self._register(argument)
        for operation in self.block.operations:
            for result in operation.results:
                self._register(result)

    # ---- values ----------------------------------------------------------------------------------------------------
    def argument(self, type: Type, name: str | None = None) -> Value:
        """Add an argument to the block."""
        value = self.block.add_argument(type, name)
        self._register(value)
        return value

    def sees(self, value: Value) -> bool:
        """Return whether `value` is defined in this block or in one around it."""
        builder: Builder | None = self
        while builder is not None:
            if value.block is builder.block:
                return True
            builder = builder.parent
        return False

    def use(self, value: Value) -> Value:
        """Return `value` as this block sees it: itself, or the argument that captures it."""
        if value.block is self.block:
            return value
        found = self.captures.get(value)
        if found is None:
            if self.parent is None:
                raise TraceError(
                    f"a tensor ({value.type}) that belongs to another Program was used here; it was probably kept in "
                    "an attribute, global or list while that Program was traced"
                )
            self.parent.use(value)
            found = self.argument(value.type, value.name)
            self.captures[value] = found
        return found

    def holds(self, value: Value) -> bool:
        """Return whether this block has the value already: as its own, or captured."""
        return value.block is self.block or value in self.captures

    def capture(self, value: Value, type: Type) -> Value:
        """Capture an outer value under another type, which says more (or in other symbols) of its extents."""
        assert self.parent is not None
        self.parent.use(value)
        found = self.captures[value] = self.argument(type, value.name)
        return found

    def retype(self, value: Value, type: Type) -> None:
        """Say of a value of this block what its op could not: what its extents, known to none so far, are equal to."""
        value.type = type
        self._register(value)

    def extent(self, extent: Extent) -> int | Value:
        """Return the run-time value of an extent: an int, or a scalar computed from a value whose shape names it."""
        if isinstance(extent, int):
            return extent
        if not extent.is_symbol:
            whole = self._composed.get(extent)
            if whole is None or all(self.knows(symbol(atom)) for monomial, _ in extent.terms for atom in monomial):
                return self._polynomial(extent)
            if extent not in self._scalars:
                self._scalars[extent] = self.emit("dim", [whole[0]], {"axis": whole[1]})
            return self._scalars[extent]
        name = extent.terms[0][0][0]
        key = ("extent", name)
        if key not in self._scalars:
            self._scalars[key] = self._find_extent(name, extent)
        return self._scalars[key]

    def shape(self, of: Value | Type | Shape) -> list[int | Value]:
        """Return the run-time extents of a tensor value, type or shape."""
        of = of.type if isinstance(of, Value) else of
        return [self.extent(e) for e in (of.shape if isinstance(of, TensorType) else of)]  # type: ignore[union-attr]

    def knows(self, extent: Dim) -> bool:
        """Return whether a value in reach tells this symbol."""
        name = str(extent)
        if name in self._extents or ("extent", name) in self._scalars:
            return True
        return self.parent is not None and self.parent.knows(extent)

    def provide(self, extent: Extent, scalar: Value) -> None:
        """Say that `scalar` holds `extent` at run time."""
        if isinstance(extent, Dim) and extent.is_symbol:
            self._scalars.setdefault(("extent", extent.terms[0][0][0]), scalar)

    def _find_extent(self, name: str, extent: Extent) -> Value:
        if name in self._extents:
            value, axis = self._extents[name]
            return self.emit("dim", [value], {"axis": axis})
        if self.parent is None:
            raise TraceError(f"no value in reach tells the extent {extent}")
        return self.use(self.parent.scalar(self.parent.extent(extent)))

    def _polynomial(self, extent: Dim) -> Value:
        if extent in self._scalars:
            return self._scalars[extent]
        total: int | Value = 0
        for monomial, coefficient in extent.terms:
            term: int | Value = coefficient
            for atom in monomial:
                term = self._arithmetic("scalar_mul", term, self.extent(symbol(atom)))
            total = self._arithmetic("scalar_add", total, term)
        self._scalars[extent] = total  # type: ignore[assignment]
        return total  # type: ignore[return-value]

    def _arithmetic(self, name: str, a: int | Value, b: int | Value) -> int | Value:
        if isinstance(a, int) and isinstance(b, int):
            return a * b if name == "scalar_mul" else a + b
        if isinstance(a, int) and a == (1 if name == "scalar_mul" else 0):
            return b
        return self.emit(name, [self.scalar(a), self.scalar(b)])

    def adopt(self, operation: Operation) -> None:
        """Append an operation that was made elsewhere for this block."""
        self.block.operations.append(operation)
        for result in operation.results:
            self._register(result)

    def _register(self, value: Value) -> None:
        """Remember which values tell the symbolic extents of this block."""
        if isinstance(value.type, TensorType):
            for axis, extent in enumerate(value.type.shape):
                if isinstance(extent, Dim) and extent.is_symbol:
                    self._extents.setdefault(extent.terms[0][0][0], (value, axis))
                elif isinstance(extent, Dim):
                    self._composed.setdefault(extent, (value, axis))
        elif isinstance(value.type, ScalarType) and isinstance(value.type.extent, Dim):
            self.provide(value.type.extent, value)

    # ---- constants -------------------------------------------------------------------------------------------------
    def scalar(self, number: object) -> Value:
        """Return a Python number as a scalar value."""
        if isinstance(number, Value):
            return number
        key = ("scalar", type(number), repr(number))
        if key not in self._scalars:
            self._scalars[key] = self.emit("scalar_constant", [], {"value": number})
        return self._scalars[key]

    def constant(self, number: Any, dtype: DType) -> Value:
        """Return a number as a 0-D constant of this dtype, or an array as a constant tensor."""
        array: np.ndarray[Any, Any] = np.asarray(number).astype(dtype.numpy, copy=False)
        if array.ndim:
            return self.emit("constant", [], {"value": array})
        key = ("constant", dtype, array.tobytes())
        if key not in self._scalars:
            self._scalars[key] = self.emit("constant", [], {"value": array})
        return self._scalars[key]

    # ---- operations ------------------------------------------------------------------------------------------------
    def operation(
        self,
        op: OpDef | str,
        operands: Sequence[Value],
        attributes: dict[str, Any] | None = None,
        blocks: Sequence[Block] = (),
        location: Location | None = None,
    ) -> Operation:
        """Append an operation and return it."""
        op = lookup(op) if isinstance(op, str) else op
        attributes = attributes or {}
        used = [self.use(v) for v in operands]
        if self.guard is not None and (guarded := self.guard(self, op, used, attributes)) is not None:
            return guarded
        inferred: Any = op.infer_operation([v.type for v in used], attributes, blocks)
        made = Operation(op, used, attributes, list(blocks), location or self.location or user_location())
        for type in cast("tuple[Any, ...]", inferred) if isinstance(inferred, tuple) else (inferred,):
            value = Value(self.named(type), self.block, made)
            made.results.append(value)
            self._register(value)
        self.block.operations.append(made)
        return made

    def emit(
        self,
        op: OpDef | str,
        operands: Sequence[Value],
        attributes: dict[str, Any] | None = None,
        blocks: Sequence[Block] = (),
        location: Location | None = None,
    ) -> Any:
        """Append an operation; return its result, or the list of its results when it has several or none."""
        results = self.operation(op, operands, attributes, blocks, location).results
        return results[0] if len(results) == 1 else results

    def named(self, type: Type) -> Type:
        """Give every extent known only at run time (None) a fresh symbol.

        Not in lists: their elements may differ in extents, so each element gets symbols when it is read.
        """
        if isinstance(type, TensorType):
            if None in type.shape:
                shape = cast("tuple[Extent | None, ...]", type.shape)
                return TensorType(type.dtype, tuple(self.names.symbol() if e is None else e for e in shape))
        elif isinstance(type, TupleType):
            return TupleType(tuple(map(self.named, type.items)))
        elif isinstance(type, VariantType):
            return VariantType(tuple(map(self.named, type.alternatives)))
        return type

    def child(self) -> Builder:
        """Return a builder of a new closed block inside this one."""
        return Builder(Block(), self)

    def checkpoint(self) -> Mark:
        """Remember where the block ends, for `rollback`."""
        operations = self.block.operations
        last = operations[-1] if operations else None
        return last, dict(self._scalars), dict(self._extents), dict(self._composed)

    def since(self, mark: Mark) -> list[Operation]:
        """Return the operations that came after `mark`."""
        operations = self.block.operations
        return operations[operations.index(mark[0]) + 1 if mark[0] is not None else 0 :]

    def rollback(self, mark: Mark) -> None:
        """Forget the operations since `mark`; what a derivative put before an older one stays."""
        count = len(self.since(mark))
        del self.block.operations[len(self.block.operations) - count :]
        self._scalars, self._extents, self._composed = dict(mark[1]), dict(mark[2]), dict(mark[3])
        for argument in self.block.arguments:  # those that came since stay
            self._register(argument)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        op = lookup(name)

        def build(*operands: Any, **attributes: Any) -> Any:
            return self.apply(op, operands, attributes)

        return build

    def apply(self, op: OpDef, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Append an op, turning Python numbers into constants and broadcasting the operands of elementwise ops."""
        values = list(operands)
        dtype = next((v.type.dtype for v in values if isinstance(v, Value) and isinstance(v.type, TensorType)), None)
        elementwise = op.elementwise
        for i, value in enumerate(values):
            if not isinstance(value, Value):
                as_tensor = elementwise and dtype is not None
                values[i] = self.constant(value, dtype) if as_tensor else self.scalar(value)  # type: ignore[arg-type]
        if elementwise:
            values = self.broadcast_all(values)
        return self.emit(op, values, attributes)

    def broadcast_all(self, values: list[Value]) -> list[Value]:
        """Bring tensors to their common shape by explicit `broadcast` operations."""
        shapes = [tensor_type(v).shape for v in values]
        if all(s == shapes[0] for s in shapes):
            return values
        common = self._common_shape(values)
        return [self.broadcast_to(v, common) for v in values]

    def broadcast_to(self, value: Value, shape: Shape | list[int | Value], extents: Shape | None = None) -> Value:
        """Broadcast to a shape of extents (or of run-time ints)."""
        if tuple(shape) == tensor_type(value).shape:
            return value
        runtime = [self.extent(e) if isinstance(e, Dim) else e for e in shape]
        return self.shaped("broadcast", [value], runtime)

    def shaped(self, op: str, operands: Sequence[Value], shape: Sequence[int | Value], **attributes: Any) -> Any:
        """Emit an op with a shape template: ints in `shape`, None where an operand gives the extent."""
        dims = [e for e in shape if isinstance(e, Value)]
        known = [e.type.extent if isinstance(e, Value) and isinstance(e.type, ScalarType) else e for e in shape]
        if dims and all(isinstance(e, int) for e in known):
            dims, shape = [], known  # type: ignore[assignment]
        template = tuple(None if isinstance(e, Value) else int(e) for e in shape)
        return self.emit(op, [*operands, *dims], {"shape": template, **attributes})

    def _common_shape(self, values: list[Value]) -> Shape:
        """Return the shape that the values broadcast to; unknown pairs of extents are checked by the run."""
        shapes = [tensor_type(v).shape for v in values]
        rank = max(map(len, shapes))
        common: list[Extent] = []
        for axis in range(-rank, 0):
            common.append(self._common_extent([shape[axis] for shape in shapes if len(shape) >= -axis]))
        return tuple(common)

    def _common_extent(self, extents: list[Extent]) -> Extent:
        fixed = sorted({e for e in extents if isinstance(e, int) and e != 1})
        loose = list(dict.fromkeys(e for e in extents if isinstance(e, Dim)))
        if len(fixed) > 1:
            raise ValueError(
                f"operands could not be broadcast together: extents {' and '.join(map(str, fixed))} differ"
            )
        if not loose:
            return fixed[0] if fixed else 1
        if not fixed and len(loose) == 1:
            return loose[0]
        met = loose[0] if not fixed else fixed[0]
        for other in loose if fixed else loose[1:]:
            if isinstance(met, Dim) and (joined := broadcast(met, other)) in (met, other):
                met = joined  # these two have met before: the run that got here has checked them
                continue
            scalars = [self.scalar(self.extent(met)), self.scalar(self.extent(other))]
            value = self.emit("broadcast_extent", scalars)
            met = value.type.extent
            self.provide(met, value)
        return met
