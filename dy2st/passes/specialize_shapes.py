"""Write a Program for inputs of which more is known: which extents are equal, and which are 1.

Before                                                 narrowed(program, {"W": symbol("N")})
    func main(%x: float32[N], %w: float32[W]) {            func main(%x: float32[N], %w: float32[N]) {
      %0: float32[bcast(N, W)] = broadcast(%x, ...)          %0: float32[N] = broadcast(%x, ...)
      %1: float32[n2] = while_loop(%p, %0, %w) {             %1: float32[N] = while_loop(%p, %0, %w) {
        body(%2: float32[n1], %w: float32[W]) {                body(%2: float32[N], %w: float32[N]) {

1.  The symbols of the entry function are replaced in all its types.
2.  Types are inferred anew, in order, and say the more definite of what they said and what is inferred.
3.  A loop is taken to carry the types that it begins with; where the body does not give them back, what the Program
    says holds, until the body gives back what it takes.
4.  What a symbol that a loop or a branch has made turns out to be, it is in all that follows: in the types of what a
    backward pass reads from lists, for one.

The argument types of the result say what it demands of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from dy2st.ir.clone import clone_program
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import INT, ListType, ScalarType, TensorType, TupleType, Type, VariantType
from dy2st.ops.control.control_flow import visible_symbols
from dy2st.passes.core.rewrite import Renaming, parts, rename_symbols
from dy2st.shapes import Dim, Extent

_ROUNDS = 3
"""How often the body of a loop is looked at before all that it changes is taken as the Program says it."""


def narrowed(program: Program, known: Mapping[str, Extent]) -> Program:
    """Return a Program for inputs whose extents are as `known` says.

    ValueError or TypeError where an operation cannot be done on such inputs; the Program itself says so when it runs.
    """
    copy = clone_program(program)
    rename_symbols(copy.block, dict(known))  # 1
    _Narrowing().function(copy.block)
    return copy


class _Narrowing:
    def __init__(self) -> None:
        self.declared: dict[Value, Type] = {}
        """What the Program said of values, which holds in any case."""

    def function(self, block: Block) -> None:
        """Infer the types of the entry function anew."""
        given = set(visible_symbols([v.type for v in block.arguments]))
        self.block(block, [v.type for v in block.arguments], given)

    def block(self, block: Block, given: Sequence[Type], told: set[str] | None = None) -> None:
        """Infer the types of a block anew, for arguments of these types."""
        for argument, type in zip(block.arguments, given, strict=True):
            self._set(argument, type)
        for operation in block.operations:
            self._operation(operation)
            if told is not None and operation.blocks:
                self._hand_on(block, operation, told)

    def _hand_on(self, function: Block, operation: Operation, given: set[str]) -> None:  # 4
        """Write what was found out of symbols inside of an operation for them in the whole function."""
        values = [*operation.results, *(v for block in operation.blocks for v in block.arguments)]
        for block in operation.blocks:
            for inner in block.walk():
                values += [*inner.results, *(v for b in inner.blocks for v in b.arguments)]
        found: dict[str, Extent] = {}
        for value in values:
            for old, new in _extents_of(self.declared[value], value.type):
                told = isinstance(new, int) or given.issuperset(new.symbols())
                if told and isinstance(old, Dim) and old.is_symbol and str(old) not in given and old != new:
                    found[str(old)] = new
        if found:
            renaming = Renaming(found)
            renaming.block(function)
            self.declared = {value: renaming.type(t) for value, t in self.declared.items()}

    def _set(self, value: Value, type: Type) -> None:
        value.type = _sharper(self.declared.setdefault(value, value.type), type)

    def _operation(self, operation: Operation) -> None:
        types = [v.type for v in operation.operands]
        if operation.op.is_loop:
            self._loop(operation, types)
        elif operation.op.is_branch:
            for block in operation.blocks:
                self.block(block, types[1:])
        else:
            for block in operation.blocks:
                own = len(block.arguments) - len(types)  # what a handler of `try` is handed over
                self.block(block, [*(v.type for v in block.arguments[: max(own, 0)]), *types])
        inferred = operation.op.infer_operation(types, operation.attributes, operation.blocks)
        found = cast("tuple[Type, ...]", inferred if isinstance(inferred, tuple) else (inferred,))
        for value, type in zip(operation.results, found, strict=True):  # 2
            self._set(value, type)

    def _loop(self, operation: Operation, types: Sequence[Type]) -> None:
        (body,) = operation.blocks
        iteration = [INT] if operation.op.is_counted else []
        arguments = body.arguments[len(iteration) :]
        for argument in arguments:
            self.declared.setdefault(argument, argument.type)
        carried: int = operation.attributes["carried"]
        entering = [
            self.declared[a] if isinstance(t, ScalarType) and i < carried else t
            for i, (a, t) in enumerate(zip(arguments, types[1:], strict=True))
        ]
        for left in reversed(range(_ROUNDS + 1)):  # 3
            self.block(body, [*iteration, *entering])
            leaving = [v.type for v in body.results[-carried:]] if carried else []
            kept = [_common(self.declared[a], a.type, t) for a, t in zip(arguments, leaving, strict=False)]
            changed = [i for i, t in enumerate(kept) if t != arguments[i].type]
            for i in changed:
                entering[i] = kept[i] if left > 1 else self.declared[arguments[i]]
            if not changed:
                return


def _extents_of(old: Type, new: Type) -> Iterator[tuple[Extent, Extent]]:
    """Yield the extents at the same places of two types, where both know one."""
    if isinstance(old, TensorType) and isinstance(new, TensorType):
        pairs: Iterable[tuple[Extent | None, Extent | None]] = zip(old.shape, new.shape, strict=True)
    elif isinstance(old, ScalarType) and isinstance(new, ScalarType):
        pairs = [(old.extent, new.extent)]
    else:
        pairs = ()
        for a, b in zip(parts(old), parts(new), strict=True):
            yield from _extents_of(a, b)
    for a, b in pairs:
        if a is not None and b is not None:
            yield a, b


def _sharper(old: Type, new: Type) -> Type:
    """Return what both types say of a value; of an extent, the more definite."""
    if old is new:
        return old
    return _over_extents(_more_definite, old, new)


def _more_definite(old: Extent | None, new: Extent | None) -> Extent | None:
    if old is None or new is None or isinstance(old, int):
        return old
    if isinstance(new, int):
        return new
    return old if _met(old) < _met(new) else new


def _met(extent: Dim) -> int:
    """Return how many symbols of an extent are themselves made of others."""
    return sum("(" in name for name in extent.symbols())


def _common(declared: Type, a: Type, b: Type) -> Type:
    """Return the type of values that are of one of two types, which `declared` holds for too."""
    return _over_extents(_equal, declared, a, b)


def _equal(known: Extent | None, p: Extent | None, q: Extent | None) -> Extent | None:
    return p if p == q else known


def _over_extents(pick: Callable[..., Extent | None], first: Type, *others: Type) -> Type:
    """Return `first` with the extents that `pick` chooses from those that types of one form have at a place."""
    if any(type(t) is not type(first) for t in others):
        return first
    if isinstance(first, TensorType):
        shapes = [t.shape for t in (first, *others) if isinstance(t, TensorType) and t.rank == first.rank]
        if len(shapes) <= len(others):
            return first
        return TensorType(first.dtype, tuple(map(pick, *shapes)))  # type: ignore[arg-type]
    if isinstance(first, ScalarType):
        extents = (t.extent for t in (first, *others) if isinstance(t, ScalarType))
        return ScalarType(first.kind, pick(*extents))
    inner = [parts(t) for t in (first, *others)]
    if any(len(p) != len(inner[0]) for p in inner):
        return first
    made = tuple(_over_extents(pick, *items) for items in zip(*inner, strict=True))
    if isinstance(first, ListType):
        return ListType(*made)
    if isinstance(first, TupleType):
        return TupleType(made)
    return VariantType(made) if isinstance(first, VariantType) else first
