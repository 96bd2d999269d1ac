"""Which values of a block a plan may overwrite: arrays and lists that the run made and nobody else can see.

A value is owned where it is made as a new array or list, or comes as an argument that the caller gives up. It stays
owned until an operation may keep it. An operation that is the last to use an owned value may write its result over it,
unless a view of the value is still used. Constants, inputs, views and what stands in lists and results are never owned.
A variant is owned where its payload is: what wraps or unwraps an owned value, as its last use, hands it over.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ListType, ScalarType, TupleType, Type, VariantType
from dy2st.ops.control.lists import ListNew
from dy2st.ops.control.optional import VariantNew
from dy2st.ops.shape.shape import Broadcast
from dy2st.shapes import Shape, broadcast

_ALIASES = ("detach",)


class ValueLifetimes:
    """The values of a block with what only renames them resolved, and the place where each is used last.

    `skipped` are the operations that need not run: renamings, broadcasts that only feed elementwise operations which
    broadcast their operands to that shape on their own, and what only these need.
    """

    def __init__(self, block: Block):
        self.skipped: set[Operation] = set()
        self._source: dict[Value, Value] = {}
        fused = _implicit_broadcasts(block)
        for operation in block.operations:
            if operation.op.name in _ALIASES or operation in fused:
                self.skipped.add(operation)
                self._source[operation.results[0]] = self.of(operation.operands[0])
        self.results = [self.of(v) for v in block.results]
        self._skip_unused(block)
        self.last: dict[Value, int] = {}
        for at, operation in enumerate(block.operations):
            if operation not in self.skipped:
                self.last.update((v, at) for v in self.operands(operation))
        self.last.update((v, len(block.operations)) for v in self.results)

    def _skip_unused(self, block: Block) -> None:
        """Skip what is computed for skipped broadcasts only: the extents of their shapes."""
        live = set(self.results)
        for operation in reversed(block.operations):
            if operation in self.skipped:
                continue
            if not live.isdisjoint(operation.results) or not _only_computes(operation):
                live.update(self.operands(operation))
            else:
                self.skipped.add(operation)

    def of(self, value: Value) -> Value:
        """Return the value whose register holds `value`."""
        return self._source.get(value, value)

    def operands(self, operation: Operation) -> list[Value]:
        """Return the operands of an operation as registers hold them."""
        return [self.of(v) for v in operation.operands]


def _only_computes(operation: Operation) -> bool:
    op = operation.op
    if op.blocks or op.effect or op.is_call:
        return False
    return not op.can_raise([v.type for v in operation.operands], operation.attributes)


def _implicit_broadcasts(block: Block) -> set[Operation]:
    """Return the broadcasts whose every use is an elementwise operation that NumPy broadcasts to the same shape."""
    users: dict[Value, list[Operation]] = {}
    for operation in block.operations:
        for value in operation.operands:
            users.setdefault(value, []).append(operation)
    kept = set(block.results)
    fused: set[Operation] = set()
    sources: dict[Value, Value] = {}
    for operation in block.operations:
        if not isinstance(operation.op, Broadcast) or operation.results[0] in kept:
            continue
        made = operation.results[0]
        tried = {**sources, made: operation.operands[0]}
        if all(_broadcasts_itself(user, made, tried) for user in users.get(made, ())):
            fused.add(operation)
            sources = tried
    return fused


def _broadcasts_itself(user: Operation, made: Value, sources: dict[Value, Value]) -> bool:
    """Return whether the operands, or what they are broadcasts of, broadcast to the shape of one of them."""
    if not user.op.elementwise or user.blocks:
        return False
    shapes = [sources.get(v, v).type.shape for v in user.operands]  # type: ignore[union-attr]
    try:
        return reduce(_broadcast_shapes, shapes) == made.type.shape  # type: ignore[union-attr]
    except ValueError:  # it will raise
        return False


def _broadcast_shapes(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(broadcast(p, q) for p, q in pairs)


def is_container(t: Type) -> bool:
    """Return whether values of this type hold other values."""
    return isinstance(t, (ListType, TupleType, VariantType))


class OwnedValues:
    """The owned values of a block while it is compiled, and which other values may be views of them."""

    def __init__(self, lives: ValueLifetimes, values: Iterable[Value]):
        self._lives, self._values = lives, set(values)
        self._views: dict[Value, set[Value]] = {}
        self._bases: dict[Value, set[Value]] = {}

    def __contains__(self, value: Value) -> bool:
        return value in self._values

    def add(self, values: Iterable[Value]) -> None:
        """Note values that nothing else refers to."""
        self._values.update(values)

    def lose(self, value: Value) -> None:
        """Note that something else may refer to a value, or to what it is a view of, from now on."""
        self._values.difference_update(self._seen_in(value))

    def view(self, value: Value, results: Iterable[Value]) -> None:
        """Note that results may be views of a value."""
        for base in self._seen_in(value):
            for result in results:
                self._views.setdefault(base, set()).add(result)
                self._bases.setdefault(result, set()).add(base)

    def is_free(self, value: Value, at: int) -> bool:
        """Return whether a value is owned and no view of it is used by operation number `at` or later."""
        views = self._views.get(value, ())
        return value in self._values and all(self._lives.last.get(view, -1) < at for view in views)

    def _seen_in(self, value: Value) -> set[Value]:
        return {value, *self._bases.get(value, ())} & self._values


def keeps(operation: Operation, position: int, ufunc: bool) -> bool:
    """Return whether results of an operation, or the world outside, may share memory with this operand afterwards."""
    op, operand = operation.op, operation.operands[position]
    if isinstance(operand.type, ScalarType):
        return False
    if op.effect:
        return True
    if ufunc or op.fresh:
        return False
    results = [v.type for v in operation.results]
    if isinstance(operand.type, ListType):
        copied = position == 0 and hasattr(op, "eval_in_place")
        return not copied and any(map(is_container, results))
    return not all(isinstance(t, ScalarType) for t in results)


def shows(operation: Operation) -> bool:
    """Return whether what an operation keeps is seen in its results alone."""
    return not operation.op.effect and not any(is_container(v.type) for v in operation.results)


def makes(operation: Operation, index: int, ufunc: bool) -> bool:
    """Return whether this result is an array or a list that nothing else refers to."""
    op = operation.op
    if ufunc or op.fresh:
        return True
    if isinstance(op, VariantNew):
        return not operation.operands
    return isinstance(op, ListNew) or (index == 0 and hasattr(op, "eval_in_place"))


def hands_over(operation: Operation) -> bool:
    """Return whether the result is the operand, wrapped or unwrapped."""
    return operation.op.rewraps and len(operation.operands) == 1


def is_written(block: Block, value: Value) -> bool:
    """Return whether an operation of a block writes into an array in place, where it may: worth a copy before a
    loop.
    """
    for operation in block.operations:
        if value not in operation.operands:
            continue
        if hasattr(operation.op, "eval_in_place") and operation.operands[0] is value:
            return True
        for inner in operation.blocks:
            passed = zip(reversed(inner.arguments), reversed(operation.operands), strict=False)
            if any(operand is value and is_written(inner, argument) for argument, operand in passed):
                return True
    return False


def once(value: Value, among: Iterable[Value]) -> bool:
    """Return whether `value` is there exactly once."""
    return sum(other is value for other in among) == 1
