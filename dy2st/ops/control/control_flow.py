"""Control flow: `cond`, `while_loop`, `counted_while`, `call`; effects: `print`, `assert`, `raise`.

Sub-blocks are closed and take what they use as arguments. The derivative rules of these ops are in `autodiff/`, which
has the context that sub-blocks need; the interpreter runs them itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.formatting import Part, render
from dy2st.ir.program import Block
from dy2st.ir.types import (
    ListType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    VariantType,
    matches,
    over_leaves,
)
from dy2st.ops.core.base import Op, Sample
from dy2st.shapes import Dim, Extent


class Cond(Op):
    """Run the first block where the predicate is true, else the second; both take the same operands."""

    name = "cond"
    block_names = ("then", "else")
    is_branch = True
    blocks = 2

    def infer_operation(self, types: Sequence[Type], attributes: dict[str, Any], blocks: Sequence[Block]) -> Any:
        check_arguments(self.name, types[1:], blocks[0])
        check_arguments(self.name, types[1:], blocks[1])
        then, other = ([v.type for v in block.results] for block in blocks)
        if len(then) != len(other):
            raise TypeError(f"cond: one branch has {len(then)} results, the other {len(other)}")
        seen = visible_symbols(types)
        return tuple(outward(join(a, b), seen) for a, b in zip(then, other, strict=True))


class WhileLoop(Op):
    """Repeat the block while the predicate is true.

    Operands are the predicate, `carried` values and invariants; the block takes the carried values and the invariants
    and gives the next predicate and the next carried values. `checkpoint` says what reverse mode keeps of the
    iterations (`ir/checkpoint.py`); without it, all that it needs.
    """

    name = "while_loop"
    block_names = ("body",)
    is_loop = True
    attributes = ("carried", "checkpoint")
    may_lack = ("checkpoint",)
    blocks = 1

    def infer_operation(self, types: Sequence[Type], attributes: dict[str, Any], blocks: Sequence[Block]) -> Any:
        carried, (body,) = attributes["carried"], blocks
        check_arguments(self.name, types[1:], body)
        return _carried_types(self.name, types, body.results[1:], body, carried, 0)


class CountedWhile(Op):
    """Repeat the block `n` times.

    Operands are the count, `carried` values and invariants; the block takes the iteration's number (0 .. n-1, or n-1 ..
    0 with `reverse`), the carried values and the invariants, and gives the next carried values. `checkpoint` is that of
    `while_loop`.
    """

    name = "counted_while"
    block_names = ("body",)
    is_loop = True
    is_counted = True
    attributes = ("carried", "reverse", "checkpoint")
    may_lack = ("checkpoint",)
    blocks = 1

    def infer_operation(self, types: Sequence[Type], attributes: dict[str, Any], blocks: Sequence[Block]) -> Any:
        carried, (body,) = attributes["carried"], blocks
        check_arguments(self.name, [ScalarType("int"), *types[1:]], body)
        return _carried_types(self.name, types, body.results, body, carried, 1)


class Call(Op):
    """Call a function of this Program by name; `types` are its result types."""

    name = "call"
    is_call = True
    attributes = ("function", "types")

    def infer(self, *operands: Type, function: str, types: tuple[Type, ...]) -> tuple[Type, ...]:
        return types


class Print(Op):
    """Print what Python's `print` would; `template` has a part for each argument (see `formatting.Part`)."""

    name = "print"
    is_hushed = True
    attributes = ("template", "sep", "end")
    differentiable = False
    effect = True

    def infer(self, *operands: Type, template: tuple[Part, ...], sep: str, end: str) -> tuple[Type, ...]:
        return ()

    def eval(self, xp: Any, *operands: Any, template: tuple[Part, ...], sep: str, end: str) -> Any:
        builtins.print(*render(template, operands), sep=sep, end=end)
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


class Assert(Op):
    """Raise AssertionError when the first operand is false; `template` makes its text of the other operands."""

    name = "assert"
    raises = (AssertionError,)
    attributes = ("template",)
    differentiable = False
    may_raise = True

    def infer(self, predicate: Type, *operands: Type, template: tuple[Part, ...] | None) -> tuple[Type, ...]:
        return ()

    def eval(self, xp: Any, predicate: Any, *operands: Any, template: tuple[Part, ...] | None) -> Any:
        if not predicate:
            raise AssertionError(*(() if template is None else ("".join(render(template, operands)),)))
        return ()

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((True,), {"template": None})


RAISABLE: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}


class Raise(Op):
    """Raise an exception of a built-in `kind`; `template` makes its text of the operands.

    With a `label` (a number) the text is complete, and the error carries label and operands, so that the process which
    traced the Program can raise the user's own exception instead.
    """

    name = "raise"
    is_hushed = True
    raises = ()
    is_raise = True
    attributes = ("kind", "template", "label")
    differentiable = False
    may_raise = True
    effect = True

    def infer(
        self, *operands: Type, kind: str, template: tuple[Part, ...] | None, label: int | None = None
    ) -> tuple[Type, ...]:
        if kind not in RAISABLE:
            raise TypeError(f"{kind} is not a built-in exception")
        return ()

    def eval(
        self, xp: Any, *operands: Any, kind: str, template: tuple[Part, ...] | None, label: int | None = None
    ) -> Any:
        error = RAISABLE[kind](*(() if template is None else ("".join(render(template, operands)),)))
        if label is not None:
            error.raised = (label, operands)  # type: ignore[attr-defined]
        raise error

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        return iter(())


def join(a: Type, b: Type) -> Type:
    """Return the type that holds values of both: equal but for extents, which become unknown (None) where they differ.

    TypeError when the types differ in more than extents.
    """
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype is b.dtype and a.rank == b.rank:
        return TensorType(a.dtype, tuple(p if p == q else None for p, q in zip(a.shape, b.shape, strict=True)))  # type: ignore[misc]
    if isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.kind == b.kind:
        return ScalarType(a.kind)
    if isinstance(a, ListType) and isinstance(b, ListType):
        return ListType(join(a.element, b.element))
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.items) == len(b.items):
        return TupleType(tuple(map(join, a.items, b.items)))
    if isinstance(a, VariantType) and isinstance(b, VariantType) and len(a.alternatives) == len(b.alternatives):
        return VariantType(tuple(map(join, a.alternatives, b.alternatives)))
    raise TypeError(f"types {a} and {b} cannot be joined")


def visible_symbols(types: Sequence[Type]) -> set[str]:
    """Return the symbols of extents that occur in these types."""
    found: set[str] = set()
    for t in types:
        if isinstance(t, TensorType):
            found.update(s for e in t.shape if isinstance(e, Dim) for s in e.symbols())
        elif isinstance(t, ScalarType) and isinstance(t.extent, Dim):
            found.update(t.extent.symbols())
        elif isinstance(t, ListType):
            found |= visible_symbols([t.element])
        elif isinstance(t, (TupleType, VariantType)):
            found |= visible_symbols(t.items if isinstance(t, TupleType) else t.alternatives)
    return found


def outward(t: Type, seen: set[str]) -> Type:
    """Return a block's result type as it is seen outside: symbols that are known only inside become unknown."""

    def keep(e: Extent | None) -> Extent | None:
        return e if not isinstance(e, Dim) or seen.issuperset(e.symbols()) else None

    def seen_outside(leaf: Type) -> Type:
        if isinstance(leaf, TensorType):
            return TensorType(leaf.dtype, tuple(map(keep, leaf.shape)))  # type: ignore[arg-type]
        return ScalarType(leaf.kind, keep(leaf.extent)) if isinstance(leaf, ScalarType) else leaf

    return over_leaves(t, seen_outside)


def check_arguments(name: str, types: Sequence[Type], block: Block) -> None:
    """Raise TypeError where operands of these types are not what a block takes."""
    if len(types) != len(block.arguments):
        raise TypeError(f"{name}: {len(types)} operands for a block of {len(block.arguments)} arguments")
    for i, (given, argument) in enumerate(zip(types, block.arguments, strict=True)):
        if not matches(argument.type, given):
            raise TypeError(f"{name}: operand {i} is {given}, the block takes {argument.type}")


def _carried_types(
    name: str, types: Sequence[Type], results: Sequence[Any], body: Block, carried: int, offset: int
) -> tuple[Type, ...]:
    if len(results) != carried:
        raise TypeError(f"{name}: the block gives {len(results)} carried values, not {carried}")
    arguments = body.arguments[offset : offset + carried]
    for i, (argument, result) in enumerate(zip(arguments, results, strict=True)):
        if not matches(argument.type, result.type):
            raise TypeError(f"{name}: carried value {i} enters as {argument.type} and leaves as {result.type}")
    seen = visible_symbols(types)
    return tuple(outward(argument.type, seen) for argument in arguments)
