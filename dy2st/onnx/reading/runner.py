"""Runs the graph of an ONNX model with our functions, on eager tensors or on those of a trace.

What is known without an input (constants, and what is computed of constants) is known in a trace too: it is computed
there and then, so that shapes and axes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.context import replaced
from dy2st.ir.opdef import entering
from dy2st.onnx.package import onnx_package
from dy2st.onnx.reading.model_file import array_of
from dy2st.runtime.eager.tensor import Tensor

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""What an operator does: a function of the Node and its inputs."""
operator = entering(RULES)


GRAPHS = {"body", "then_branch", "else_branch"}


class Unreadable(FileFormatError):
    """A model with an operator that there is no rule for, or used in a way that there is none for."""


class Node:
    """A node that is being run: its attributes, its opset, what stands around it."""

    def __init__(self, run: Runner, proto: Any):
        self.run, self.proto, self.opset = run, proto, run.opset
        self.attributes = {a.name: a for a in proto.attribute}
        self.known: dict[str, Any] = {}
        self.raw: list[Any] = []
        """The inputs, constants among them as arrays."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute as Python has it."""
        found = self.attributes.get(name)
        if found is None:
            return default
        value = onnx_package().helper.get_attribute_value(found)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        return list(value) if isinstance(value, (list, tuple)) else value

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return an attribute that is a tensor."""
        return array_of(self.attributes[name].t, self.run.folder)

    def ints(self, number: int, name: str = "") -> list[Any] | None:
        """Return the numbers of an input, or of the attribute that stood for it in older opsets."""
        if number < len(self.raw) and self.raw[number] is not None:
            return ints(self.raw[number])
        return self.get(name) if name else None

    @property
    def outputs(self) -> int:
        """How many outputs are wanted."""
        return len(self.proto.output)

    def fail(self, why: str) -> Unreadable:
        """Return the error for what cannot be read."""
        return Unreadable(f"{self.proto.op_type} {self.proto.name!r:.60}: {why}")


class Runner:
    """Runs one graph; `outer` has the values around it."""

    def __init__(self, graph: Any, opset: int, folder: Path | None, outer: dict[str, Any] | None = None):
        self.graph, self.opset, self.folder, self.outer = graph, opset, folder, outer or {}

    def __call__(self, values: dict[str, Any]) -> list[Any]:
        """Return the outputs for inputs by name."""
        known: dict[str, Any] = {**self.outer, **values}
        for tensor in self.graph.initializer:
            if tensor.name not in known or self.outer:
                known[tensor.name] = array_of(tensor, self.folder)
        for proto in self.graph.node:
            self.node(proto, known)
        return [known[o.name] for o in self.graph.output]

    def node(self, proto: Any, known: dict[str, Any]) -> None:
        """Run one node."""
        rule = RULES.get(proto.op_type) if proto.domain in ("", "ai.onnx") else None
        node = Node(self, proto)
        if rule is None:
            raise node.fail(f"there is no rule for it (domain {proto.domain or 'ai.onnx'})")
        try:
            inputs = [known[name] if name else None for name in proto.input]
        except KeyError as missing:
            raise node.fail(f"its input {missing.args[0]!r:.60} is nowhere") from None
        node.known, node.raw = known, inputs
        if all(x is None or isinstance(x, np.ndarray) for x in inputs) and not node.attributes.keys() & GRAPHS:
            with replaced(trace=None):
                made = _folded(rule(node, *map(tensor, inputs)))
        else:
            made = rule(node, *map(tensor, inputs))
        results = made if isinstance(made, tuple) else (made,)
        known.update((name, value) for name, value in zip(proto.output, results, strict=False) if name)

    def inner(self, graph: Any, known: dict[str, Any]) -> Runner:
        """Return what runs a graph inside of a node."""
        return Runner(graph, self.opset, self.folder, known)


def tensor(x: Any) -> Any:
    """Return a constant as a tensor; what is one stays."""
    return to_tensor(x) if isinstance(x, np.ndarray) and x.dtype != object else x


def _folded(made: Any) -> Any:
    if isinstance(made, tuple):
        return tuple(map(_folded, made))
    return made.numpy() if isinstance(made, Tensor) else made


def ints(x: Any) -> list[Any]:
    """Return the numbers of a vector: known ones, or those of a trace."""
    if isinstance(x, np.ndarray):
        return [int(e) for e in x.reshape(-1)]
    if x.ndim == 0:
        return [x.item()]
    return [x[i].item() for i in range(int(x.shape[0]))]
