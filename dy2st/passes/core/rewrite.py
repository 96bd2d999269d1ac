"""Replace values, and move what a sub-block holds into the block around it.

A value may take the place of another of a different type where the types differ in symbols alone that this run of the
Program makes itself: then the old symbol is rewritten everywhere in the function, because both name the same extent.
One that the operation in hand has made stands in what comes behind alone. There it is rewritten when an operation is
looked at, and everywhere in the end, so that a pass over a long function does not go through it for each symbol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from dy2st.ir.clone import clone_operation
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ListType, ScalarType, TensorType, TupleType, Type, VariantType, over_leaves
from dy2st.ops.control.control_flow import visible_symbols
from dy2st.shapes import Dim, Extent, substituted, symbol


class Replacements:
    """Values of the blocks of one function that others take the place of."""

    def __init__(self, function: Block):
        self.function = function
        self.pending: list[Operation] = []
        """Operations that were made for the function and do not stand in it yet."""
        self._values: dict[Value, Value] = {}
        self._given = visible_symbols([v.type for v in function.arguments])
        self._put_off = Renaming({})
        """What is rewritten where an operation is looked at, and in the end."""

    def now(self, value: Value) -> Value:
        """Return what stands in the place of `value`."""
        while value in self._values:
            value = self._values[value]
        return value

    def replace(self, old: Value, new: Value) -> bool:
        """Let `new` take the place of `old`; False when their types forbid it."""
        new = self.now(new)
        if not self.unify(old.type, new.type, old.operation):
            return False
        self._values[old] = new
        return True

    def unify(self, old: Type, new: Type, maker: Operation | None = None) -> bool:
        """Rewrite symbols of the function until `old` is `new`; False when that cannot be.

        `maker` is the operation that was looked at last, where `old` is the type of a result of it.
        """
        if old is new or old == new:
            return True
        renamed = renamings(self._put_off.type(old), self._put_off.type(new))
        if renamed is None or any(name in self._given for name in renamed):
            return False
        if (
            maker is not None
            and not self._put_off.is_about(renamed)
            and renamed.keys().isdisjoint(visible_symbols([v.type for v in maker.operands]))
        ):
            self._put_off.add(renamed)
        elif renamed:
            self._rename(self._put_off)
            self._rename(Renaming(renamed))
            self._put_off = Renaming({})
        return True

    def _rename(self, renaming: Renaming) -> None:
        if renaming:
            renaming.block(self.function)
            for operation in self.pending:
                renaming.operation(operation)

    def operands(self, operation: Operation) -> None:
        """Bring the operands of an operation up to date, and the types that it says."""
        if self._values:
            operation.operands = [self.now(v) for v in operation.operands]
        if self._put_off:
            self._put_off.said_by(operation)
            for inner in operation.blocks:
                self._put_off.taken_by(inner)

    def results(self, block: Block) -> None:
        """Bring the results of a block up to date."""
        if self._values:
            block.results = [self.now(v) for v in block.results]
        if block is self.function:
            self._rename(self._put_off)
            self._put_off = Renaming({})


def inline(block: Block, operands: Sequence[Value], into: Block) -> tuple[list[Operation], list[Value]]:
    """Return copies of a block's operations for `into`, on these operands, and what the block's results are there.

    Ask `may_inline` first.
    """
    names = _fitting(block, operands) or {}
    mapping = dict(zip(block.arguments, operands, strict=True))
    made = [clone_operation(operation, into, mapping) for operation in block.operations]
    if names:
        renaming = Renaming(names)
        for operation in made:
            renaming.operation(operation)
    return made, [mapping[v] for v in block.results]


def may_inline(block: Block, operands: Sequence[Value]) -> bool:
    """Return whether the types in a block can be told in terms of these operands."""
    return _fitting(block, operands) is not None


def _fitting(block: Block, operands: Sequence[Value]) -> dict[str, Extent] | None:
    """Return which extents the symbols of a block are outside; None when its arguments do not tell."""
    found: dict[str, Extent] = {}
    for argument, operand in zip(block.arguments, operands, strict=True):
        if not _match(argument.type, operand.type, found):
            return None
    return {name: extent for name, extent in found.items() if extent != symbol(name)}


def renamings(old: Type, new: Type) -> dict[str, Extent] | None:
    """Return which symbols of `old` must be what for it to become `new`; None when no renaming does it."""
    found: dict[str, Extent] = {}
    if not _match(old, new, found):
        return None
    found = {name: extent for name, extent in found.items() if extent != symbol(name)}
    loops = any(isinstance(e, Dim) and not found.keys().isdisjoint(e.symbols()) for e in found.values())
    return None if loops else found


def _match(old: Type, new: Type, found: dict[str, Extent]) -> bool:
    """Find what each symbol of `old` is in `new`."""
    if type(old) is not type(new):
        return False
    if isinstance(old, TensorType) and isinstance(new, TensorType):
        same = old.dtype is new.dtype and old.rank == new.rank
        return same and all(_extents(a, b, found) for a, b in zip(old.shape, new.shape, strict=True))
    if isinstance(old, ScalarType) and isinstance(new, ScalarType):
        return old.kind == new.kind and (old.extent is None or _extents(old.extent, new.extent, found))
    a, b = parts(old), parts(new)
    if not a:
        return old == new
    return len(a) == len(b) and all(_match(p, q, found) for p, q in zip(a, b, strict=True))


def _extents(old: Extent, new: Extent | None, found: dict[str, Extent]) -> bool:
    if new is None or not isinstance(old, Dim):
        return old == new
    if old.is_symbol:
        return found.setdefault(old.symbols()[0], new) == new
    return old == new and all(found.setdefault(name, symbol(name)) == symbol(name) for name in old.symbols())


def parts(t: Type) -> tuple[Type, ...]:
    """Return the types that a list, tuple or variant type is made of."""
    if isinstance(t, ListType):
        return (t.element,)
    if isinstance(t, TupleType):
        return t.items
    return t.alternatives if isinstance(t, VariantType) else ()


def rename_symbols(function: Block, names: dict[str, Extent]) -> None:
    """Write these extents for these symbols in every type of a function."""
    Renaming(names).block(function)


def renamed_type(t: Type, names: dict[str, Extent]) -> Type:
    """Return a type with these extents for these symbols."""
    return Renaming(names).type(t)


class Renaming:
    """Extents for symbols. What becomes of a tensor's type is found once: many values have the same."""

    def __init__(self, names: dict[str, Extent]):
        self._names = names
        self._known: set[str] = set()
        """The symbols in what names were added for."""
        self._made: dict[Type, Type] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, names: dict[str, Extent]) -> None:
        """Rename these too from now on."""
        if names:
            self._names.update(names)
            self._known.update(name for e in names.values() if isinstance(e, Dim) for name in e.symbols())
            self._made.clear()

    def is_about(self, names: Iterable[str]) -> bool:
        """Return whether one of these is renamed, or stands in what others are renamed to."""
        return any(name in self._names or name in self._known for name in names)

    def block(self, block: Block) -> None:
        """Rename in all types of a block."""
        self.taken_by(block)
        for operation in block.operations:
            self.operation(operation)

    def taken_by(self, block: Block) -> None:
        """Rename in the types of a block's arguments."""
        for value in block.arguments:
            value.type = self.type(value.type)

    def operation(self, operation: Operation) -> None:
        """Rename in what an operation says, and in its blocks."""
        self.said_by(operation)
        for inner in operation.blocks:
            self.block(inner)

    def said_by(self, operation: Operation) -> None:
        """Rename in the types of an operation's results, and in its attributes."""
        for value in operation.results:
            value.type = self.type(value.type)
        for name, attribute in operation.attributes.items():
            if isinstance(attribute, (Type, tuple)):
                operation.attributes[name] = self._attribute(attribute)

    def type(self, t: Type) -> Type:
        """Return a type with the extents."""
        return over_leaves(t, self._leaf)

    def _leaf(self, leaf: Type) -> Type:
        if isinstance(leaf, TensorType):
            made = self._made.get(leaf)
            if made is None:
                shape = tuple(map(self._extent, leaf.shape))
                made = self._made[leaf] = leaf if shape == leaf.shape else TensorType(leaf.dtype, shape)
            return made
        if isinstance(leaf, ScalarType) and isinstance(leaf.extent, Dim):
            return ScalarType(leaf.kind, self._extent(leaf.extent))
        return leaf

    def _extent(self, extent: Extent) -> Extent:
        if not isinstance(extent, Dim) or not any(name in self._names or "(" in name for name in extent.symbols()):
            return extent
        return substituted(extent, self._names)

    def _attribute(self, attribute: Any) -> Any:
        if isinstance(attribute, Type):
            return self.type(attribute)
        if isinstance(attribute, tuple):
            items = cast("Any", attribute)
            return tuple(map(self._attribute, items))
        return attribute
