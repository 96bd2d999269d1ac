"""Runs the graph of a model with our functions, on eager tensors or on those of a trace.

Small numbers that are known without an input (constants, and what is computed of constants) are known in a trace too:
they are computed there and then, so that shapes and axes are numbers. What is larger is an operation of the Program, so
that nothing is allocated on a file's word while it is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import replaced
from dy2st.ir.opdef import entering
from dy2st.paddle_files.graph import BY_NUMBER, WIDTHS, Block, Given, Graph, Operation, Unreadable
from dy2st.runtime.eager.tensor import Tensor

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""What an operation does: a function of the Node and its operands."""
operator = entering(RULES)

MOST_KNOWN = 4096
"""How many elements a known array has at most."""
_FOLDED = frozenset(
    [
        "full",
        "full_int_array",
        "full_with_tensor",
        "assign_value",
        "cast",
        "concat",
        "stack",
        "builtin.combine",
        "builtin.split",
        "slice",
        "scale",
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "maximum",
        "minimum",
        "reshape",
        "squeeze",
        "unsqueeze",
        "gather",
        "logical_not",
        "logical_and",
        "logical_or",
        "equal",
        "not_equal",
        "less_than",
        "less_equal",
        "greater_than",
        "greater_equal",
        "assign",
        "increment",
        "where",
        "shape",
        "shape64",
        "numel",
        "prod",
        "sum",
        "max",
        "min",
    ]
)
"""Operations whose results are not larger than their operands, or are checked."""


class Node:
    """An operation that is being run."""

    def __init__(self, run: Runner, operation: Operation, known: dict[Any, Any]):
        self.run, self.operation, self.known = run, operation, known
        self.raw: list[Any] = []
        """The operands, constants among them as arrays or as the file has them."""

    def get(self, *names: str, default: Any = None) -> Any:
        """Return the first of these attributes that is there."""
        for name in names:
            if (value := self.operation.attributes.get(name)) is not None:
                return value
        return default

    def ints(self, number: int) -> list[Any] | None:
        """Return the whole numbers of an operand: ints, or numbers of the trace; None where it is absent."""
        return _numbers(self.raw[number]) if number < len(self.raw) and self.raw[number] is not None else None

    def dtype(self, *names: str) -> str | None:
        """Return the dtype that an attribute names; None where it leaves that open."""
        said = self.get(*(names or ("dtype",)))
        name = BY_NUMBER.get(said) if type(said) is int else said
        if said is None or said == -1 or (type(name) is str and name.startswith("Undefined")):
            return None
        if name not in WIDTHS:
            raise self.fail(f"there are no tensors of the dtype {said!r:.40} here")
        return str(name)

    def fail(self, why: str) -> Unreadable:
        """Return the error for what cannot be read."""
        return Unreadable(f"{self.operation.said}: {why}")


class Runner:
    """Runs one graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.read = set(graph.block.results)
        """What anybody reads."""
        self.at: Operation | None = None
        """The operation that runs, for errors."""
        self.selections: list[Operation] = []
        """What chooses between the values of branches in a ProgramDesc."""
        for operation in graph.operations():
            if operation.name == "select_input":
                self.selections.append(operation)
            self.read.update(names(operation.operands))
            for block in operation.blocks:
                self.read.update(names(block.results))

    def __call__(self, inputs: dict[str, Any], weights: dict[Any, Any]) -> list[Any]:
        """Return the outputs of the model for inputs by name and weights by value."""
        known: dict[Any, Any] = {**inputs, **weights, ("fed",): inputs, **dict.fromkeys(self.graph.absent)}
        known.update((name, []) for name in self.graph.arrays)
        self.block(self.graph.block, known)
        return [tensor(self.value(v, known)) for v in self.graph.block.results]

    def block(self, block: Block, known: dict[Any, Any]) -> None:
        """Run the operations of a block, which add what they define to what is known."""
        for operation in block.operations:
            self.operation(operation, known)

    def inner(self, block: Block, known: dict[Any, Any], arguments: Iterable[Any], wanted: Iterable[Any]) -> list[Any]:
        """Run a block of an operation on its arguments; return values that it defines or that are around it."""
        inside = {**known, **dict(zip(block.arguments, arguments, strict=True))}
        self.block(block, inside)
        return [tensor(self.value(v, inside)) for v in wanted]

    def value(self, name: Any, known: dict[Any, Any]) -> Any:
        """Return a value by name, or values by names."""
        if isinstance(name, list):
            return [self.value(one, known) for one in name]
        if name is None or isinstance(name, Given):
            return name
        if name not in known:
            raise Unreadable(f"the value {name!r:.60} is nowhere")
        return known[name]

    def operation(self, operation: Operation, known: dict[Any, Any]) -> None:
        """Run one operation."""
        self.at = operation
        node = Node(self, operation, known)
        node.raw = [self.value(one, known) for one in operation.operands]
        rule = RULES[operation.name]
        if operation.name in _FOLDED and all(_known(x) for x in node.raw) and _fill_is_small(node):
            with replaced(trace=None):
                made = _folded(rule(node, *map(tensor, node.raw)))
        else:
            made = rule(node, *map(tensor, node.raw))
        results = made if isinstance(made, tuple) else (made,)
        for name, value in zip(operation.results, results, strict=False):
            if isinstance(name, list):
                known.update(zip(name, value, strict=True))
            elif name is not None:
                known[name] = value


def names(operands: Iterable[Any]) -> Iterable[Any]:
    """Yield the names of values among operands."""
    for one in operands:
        if isinstance(one, list):
            yield from names(one)
        elif one is not None and not isinstance(one, Given):
            yield one


def tensor(x: Any) -> Any:
    """Return an operand as rules take it: known arrays as tensors, what the file says as it is."""
    if isinstance(x, list):  # a tensor array stays the list that it is
        return [tensor(one) for one in x] if any(isinstance(one, (np.ndarray, Given)) for one in x) else x
    if isinstance(x, Given):
        return x.value
    return to_tensor(x) if isinstance(x, np.ndarray) else x


def _known(x: Any) -> bool:
    return all(map(_known, x)) if isinstance(x, list) else x is None or isinstance(x, (np.ndarray, Given))


def _fill_is_small(node: Node) -> bool:
    """Return whether what fills a shape of the file with a number makes few elements of it; True for the others."""
    shape = node.get("shape", default=[]) if node.operation.name == "full" else []
    if node.operation.name == "full_with_tensor":
        shape = node.ints(1) or []
    return math.prod(shape) <= MOST_KNOWN


def _folded(made: Any) -> Any:
    if isinstance(made, (tuple, list)):
        return type(made)(_folded(one) for one in made)
    return made.numpy() if isinstance(made, Tensor) and made.size <= MOST_KNOWN else made


def _numbers(x: Any) -> list[Any]:
    if isinstance(x, Given):
        return list(x.value) if isinstance(x.value, list) else [x.value]
    if isinstance(x, np.ndarray):
        return [int(e) for e in x.reshape(-1)]
    if isinstance(x, list):
        return [e for one in x for e in _numbers(one)]
    if x.ndim == 0:
        return [x.item()]
    return [x[i].item() for i in range(int(x.shape[0]))] if x.ndim == 1 else _numbers(x.reshape([-1]))
