"""Writes ONNX nodes for the operations of a Program.

Every name is given once in a model. Constants are initializers of the main graph, which all graphs inside of it see.
Nodes have no effects, so one that is written twice is written once, and what nobody reads is left out in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.location import Location
from dy2st.ir.opdef import entering
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.onnx.writing.leaves import Leaf, Refused, leaves

Names = tuple[str, ...]
Rule = Callable[["Writer", Operation], "str | Sequence[str]"]
RULES: dict[str, Rule] = {}
"""How each op is written; `rules/` fills it."""
rule = entering(RULES)
WHOLE: set[str] = set()
"""Ops with a rule that are not taken apart before."""
REASONS: dict[str, str] = {}
"""Why an op has no rule; `rules/without.py` fills it."""
SOURCE = "source"
"""The key of a node's metadata under which its line stands."""


class Lost(Refused):
    """A value is read that could not be written."""


class Graph:
    """Nodes that are being written, and what was written already."""

    def __init__(self, parent: Graph | None):
        self.parent = parent
        self.nodes: list[Any] = []
        self.reads: list[set[str]] = []
        """What each node reads, its graphs included."""
        self.made: set[str] = set()
        self.known: dict[Any, Names] = {}

    def find(self, key: Any) -> Names | None:
        """Return what was written for a key here or around."""
        graph: Graph | None = self
        while graph is not None:
            if (found := graph.known.get(key)) is not None:
                return found
            graph = graph.parent
        return None


class Writer:
    """Writes one model."""

    def __init__(self, package: Any, program: Program):
        self.onnx, self.helper, self.program = package, package.helper, program
        self.graph = Graph(None)
        self.initializers: dict[str, np.ndarray[Any, Any]] = {}
        self.refused: list[tuple[str, Location | None, str]] = []
        self.location: Location | None = None
        self.calls: list[str] = []
        """The functions whose operations are being written, outermost first."""
        self._names: dict[Value, Names] = {}
        self._lost: set[Value] = set()
        """Values that could not be written: what reads them is not written either, and not noted a second time."""
        self._constants: dict[Any, str] = {}
        self._count = 0

    # ---- names -----------------------------------------------------------------------------------------------------
    def fresh(self, word: str) -> str:
        """Return a name that nothing has."""
        self._count += 1
        return f"{word}_{self._count}"

    def bind(self, value: Value, names: Sequence[str]) -> None:
        """Say what stands for a value."""
        self._names[value] = tuple(names)

    def names(self, value: Value) -> Names:
        """Return what stands for a value, one name for each leaf."""
        if value in self._lost:
            raise Lost
        return self._names[value]

    def share(self, argument: Value, value: Value) -> None:
        """Let the argument of a block be a value from around it."""
        if value in self._lost:
            self._lost.add(argument)
        else:
            self.bind(argument, self.names(value))

    def one(self, value: Value) -> str:
        """Return what stands for a tensor, a number or a list with one leaf."""
        (name,) = self.names(value)
        return name

    def inputs(self, operation: Operation) -> list[str]:
        """Return what stands for the operands, each of which has one leaf."""
        return [self.one(v) for v in operation.operands]

    def kinds(self, value: Value, what: str) -> tuple[Leaf, ...]:
        """Return the leaves of an input or an output; note where ONNX has none for it."""
        try:
            return leaves(value.type)
        except Refused as reason:
            self.refused.append((what, None, str(reason)))
            self._lost.add(value)
            return ()

    # ---- constants -------------------------------------------------------------------------------------------------
    def constant(self, value: Any, dtype: DType | np.dtype[Any] | type | None = None) -> str:
        """Return an initializer with these elements."""
        array = np.asarray(value, dtype.numpy if isinstance(dtype, DType) else dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.fresh("constant")
            self.initializers[name] = array
        return self._constants[key]

    def ints(self, *values: int) -> str:
        """Return a vector of int64."""
        return self.constant(list(values), np.int64)

    def number(self, value: float, like: Value) -> str:
        """Return a number without axes in the dtype of a value."""
        return self.constant(value, tensor_type(like).dtype)

    def type_number(self, dtype: DType) -> int:
        """Return ONNX's number of a dtype."""
        return int(self.helper.np_dtype_to_tensor_dtype(dtype.numpy))

    # ---- nodes -----------------------------------------------------------------------------------------------------
    def emit(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Write a node with one output."""
        return self.several(op, inputs, 1, **attributes)[0]

    def several(self, op: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> Names:
        """Write a node; one that was written already is not written again."""
        key = (op, tuple(inputs), outputs, repr(sorted(attributes.items())))
        found = self.graph.find(key)
        if found is None:
            found = self.graph.known[key] = self.node(op, inputs, outputs, set(), **attributes)
        return found

    def node(self, op: str, inputs: Sequence[str], outputs: int, reads: set[str], **attributes: Any) -> Names:
        """Write a node that reads more than its inputs."""
        names = tuple(self.fresh(op) for _ in range(outputs))
        made = self.helper.make_node(op, list(inputs), list(names), name=names[0], **attributes)
        if self.location is not None:
            entry = made.metadata_props.add()
            entry.key, entry.value = SOURCE, str(self.location)
        self.graph.nodes.append(made)
        self.graph.reads.append({name for name in inputs if name} | reads)
        self.graph.made.update(names)
        return names

    def cast(self, x: str, dtype: DType) -> str:
        """Write a cast."""
        return self.emit("Cast", x, to=self.type_number(dtype))

    def vector(self, scalar: str) -> str:
        """Write a number as a vector of one element."""
        return self.emit("Unsqueeze", scalar, self.ints(0))

    def divisor(self, y: str, dtype: DType) -> str:
        """Write an integer with 1 for 0: a division by 0 ends a process that runs onnxruntime."""
        known = self.initializers.get(y)
        if known is not None and np.all(known):
            return y
        one = self.constant(1, dtype)
        return self.emit("Where", self.emit("Equal", y, self.constant(0, dtype)), one, y)

    def extent(self, x: str, axis: int) -> str:
        """Write the extent of an axis as a vector of one element."""
        return self.emit("Shape", x, start=axis, end=axis + 1)

    def shape(self, template: Sequence[int | None], dims: Sequence[Value]) -> str:
        """Write the vector of a shape: a template whose places of None are given by scalars."""
        if all(e is not None for e in template):
            return self.ints(*(e for e in template if e is not None))
        rest = iter(dims)
        return self.joined([self.ints(e) if e is not None else self.vector(self.one(next(rest))) for e in template])

    def joined(self, vectors: Sequence[str]) -> str:
        """Write vectors one after the other."""
        return vectors[0] if len(vectors) == 1 else self.emit("Concat", *vectors, axis=0)

    # ---- operations ------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        """Write the operations of a block."""
        for operation in block.operations:
            self.operation(operation)

    def operation(self, operation: Operation) -> None:
        """Write an operation, or note why there is no form for it."""
        self.location = operation.location or self.location
        try:
            found = RULES.get(operation.op.name)
            if found is None:
                raise Refused(REASONS.get(operation.op.name, "its shapes do not tell how it is taken apart"))
            made = found(self, operation)
            names = [made] if isinstance(made, str) else list(made)
            counts = [len(leaves(v.type)) for v in operation.results]
        except Refused as reason:
            if not isinstance(reason, Lost):
                self.refused.append((operation.op.name, operation.location, str(reason)))
            self._lost.update(operation.results)
            return
        assert sum(counts) == len(names), f"{operation}: {len(names)} names for {counts} leaves"
        for value, count in zip(operation.results, counts, strict=True):
            self.bind(value, names[:count])
            del names[:count]

    # ---- graphs ----------------------------------------------------------------------------------------------------
    def outputs(self, names: Sequence[str], wanted: Sequence[str] | None = None) -> list[str]:
        """Return names that can be outputs of the graph: made in it, each once; or of these `wanted` names."""
        made: list[str] = []
        for i, name in enumerate(names):
            if wanted is not None:
                self.node("Identity", [name], 1, set())
                self.graph.nodes[-1].output[0] = wanted[i]
                self.graph.made.add(wanted[i])
                made.append(wanted[i])
            elif name in self.graph.made and name not in made:
                made.append(name)
            else:
                made += self.node("Identity", [name], 1, set())
        return made

    def value_info(self, name: str, leaf: Leaf, named: bool = False) -> Any:
        """Return the description of an input or output; `named` says that symbols are those of the caller."""
        shape = None if leaf.sequence or leaf.shape is None else [_extent(e, named) for e in leaf.shape]
        make = self.helper.make_tensor_sequence_value_info if leaf.sequence else self.helper.make_tensor_value_info
        return make(name, self.type_number(leaf.dtype), shape)

    def finished(self, graph: Graph, inputs: list[Any], outputs: list[Any], name: str) -> tuple[Any, set[str]]:
        """Return a graph without what nobody reads, and what it reads from around it."""
        wanted = {o.name for o in outputs}
        kept: list[Any] = []
        for node, reads in zip(reversed(graph.nodes), reversed(graph.reads), strict=True):
            if not wanted.isdisjoint(node.output):
                kept.append(node)
                wanted |= reads
        kept.reverse()
        made = self.helper.make_graph(kept, name, inputs, outputs)
        own = {i.name for i in inputs}.union(*(node.output for node in kept))
        return made, wanted - own


def _extent(extent: Any, named: bool) -> int | str | None:
    if isinstance(extent, int):
        return extent
    return str(extent) if named and extent is not None else None
