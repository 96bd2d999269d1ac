"""Value, Operation, Block, Program: the SSA graph.

A Program is named functions; a function is a closed Block. Sub-blocks are closed too: everything that they use is an
argument of theirs. Control flow:

    cond(pred, *operands)                       two blocks over the same operands; results are theirs
    while_loop(pred, *carried, *invariants)     one block: (carried, invariants) -> (pred, carried). The test is
                                                rotated: it stands once before the loop and once at the end of the body
    counted_while(n, *carried, *invariants)     one block: (i, carried, invariants) -> carried; counted, both directions
    call(*operands) {function = "f"}            a function of this Program
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from dy2st.ir.location import Location
from dy2st.ir.opdef import OpDef
from dy2st.ir.types import TensorType, Type


class Value:
    """A result of an operation or an argument of a block: a type, and where it is defined."""

    __slots__ = ("__weakref__", "block", "name", "operation", "type")

    def __init__(self, type: Type, block: Block, operation: Operation | None = None, name: str | None = None):
        self.type, self.block, self.operation, self.name = type, block, operation, name

    def __repr__(self) -> str:
        return f"<value {self.name or ''}: {self.type}>"


def tensor_type(value: Value | None) -> TensorType:
    """Return the type of a value that is a tensor; TypeError for any other."""
    if value is None or not isinstance(value.type, TensorType):
        raise TypeError(f"a tensor is needed here, not {value}")
    return value.type


class Operation:
    """One op applied to operands."""

    __slots__ = ("attributes", "blocks", "location", "op", "operands", "results")

    def __init__(
        self,
        op: OpDef,
        operands: list[Value],
        attributes: dict[str, Any],
        blocks: list[Block],
        location: Location | None,
    ):
        self.op, self.operands, self.attributes, self.blocks, self.location = op, operands, attributes, blocks, location
        self.results: list[Value] = []

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def type(self) -> str:
        """The op's name, as Paddle's `Operator.type`."""
        return self.op.name

    def __repr__(self) -> str:
        return f"<{self.op.name} at {self.location}>"


class Block:
    """Arguments, operations in order, results."""

    __slots__ = ("__weakref__", "arguments", "operations", "results")

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.operations: list[Operation] = []
        self.results: list[Value] = []

    def add_argument(self, type: Type, name: str | None = None) -> Value:
        value = Value(type, self, None, name)
        self.arguments.append(value)
        return value

    @property
    def ops(self) -> list[Operation]:
        """The operations, by Paddle's name."""
        return self.operations

    def walk(self) -> Iterator[Operation]:
        """Yield every operation, those of sub-blocks after the operation that holds them."""
        for operation in self.operations:
            yield operation
            for block in operation.blocks:
                yield from block.walk()


class Program:
    """Named functions and the name of the one that runs first."""

    picture: ClassVar[Callable[[Program], str] | None] = None
    """Draws a Program for notebooks; `dy2st/__init__.py` sets it, because pictures are made far above the IR."""

    def __init__(self, functions: dict[str, Block] | None = None, entry: str = "main"):
        self.functions: dict[str, Block] = functions if functions is not None else {entry: Block()}
        self.entry = entry
        self.renewed: tuple[tuple[int, int], ...] = ()
        """Results, by number, each with the argument whose tensor holds it after a run: a caller who says that nobody
        else holds that may get the result in its memory (buffer_donation.py)."""
        self.kept: int | None = None
        """From which number on results are for a derivative alone: native code keeps those that are lists and variants
        (kept_values.py); None where there are none."""
        self.made_as: str | None = None
        """What stands for it in place of its fingerprint where all of it follows from another Program that has one
        (program_artifacts.py); None for one that is changed."""

    @property
    def block(self) -> Block:
        """The entry function's block."""
        return self.functions[self.entry]

    @property
    def argument_types(self) -> list[Type]:
        """The types of what the entry function takes."""
        return [v.type for v in self.block.arguments]

    @property
    def result_types(self) -> list[Type]:
        """The types of what the entry function gives."""
        return [v.type for v in self.block.results]

    @property
    def count(self) -> int:
        """How many operations there are, those of sub-blocks included."""
        return sum(1 for _ in self.walk())

    def walk(self) -> Iterator[Operation]:
        for block in self.functions.values():
            yield from block.walk()

    def __str__(self) -> str:
        from dy2st.ir.printer import to_text

        return to_text(self)

    def svg(self) -> str | None:
        """Return the picture that notebooks show."""
        draw = type(self).picture
        return None if draw is None else draw(self)

    _repr_svg_ = svg
