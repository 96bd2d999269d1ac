"""Write ONNX models node by node, with the `onnx` package."""

import importlib
from itertools import count
from typing import Any

import numpy as np

OPSET, IR_VERSION = 20, 9


class Graph:
    """A graph that grows by `add`; values are named by strings."""

    def __init__(self, name: str):
        self.name = name
        self.onnx = importlib.import_module("onnx")
        self.helper = self.onnx.helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._numbers = count()

    def input(self, name: str, like: np.ndarray, shape: Any = None) -> str:
        """Take an input with the dtype and rank of an array; its extents are open unless given."""
        extents = [f"{name}_{axis}" for axis in range(like.ndim)] if shape is None else shape
        self.inputs.append(self.helper.make_tensor_value_info(name, self._dtype(like.dtype), extents))
        return name

    def constant(self, value: Any) -> str:
        """Put an array into the model."""
        name = self._fresh("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op: str, *operands: str, results: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its result, or of all where there are several."""
        names = [self._fresh(op) for _ in range(results)]
        self.nodes.append(self.helper.make_node(op, list(operands), names, **attributes))
        return names[0] if results == 1 else names

    def result(self, name: str, dtype: Any = np.float32) -> None:
        """Give a value back, of any shape."""
        self.outputs.append(self.helper.make_tensor_value_info(name, self._dtype(dtype), None))

    def proto(self) -> Any:
        """Return the graph, to be a branch or the body of a loop."""
        return self.helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)

    def model(self) -> Any:
        """Return the whole model."""
        opset = [self.helper.make_opsetid("", OPSET)]
        return self.helper.make_model(self.proto(), opset_imports=opset, ir_version=IR_VERSION)

    def _dtype(self, dtype: Any) -> int:
        return self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def _fresh(self, stem: str) -> str:
        return f"{self.name}_{stem}_{next(self._numbers)}"


def graph(name: str) -> Graph:
    """Start a graph."""
    return Graph(name)
