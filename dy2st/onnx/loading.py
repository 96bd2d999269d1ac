"""`paddle.onnx.load`: an ONNX model becomes a Layer, whose forward runs the graph and is traced into a Program.

Its floating initializers are parameters under their own names, so the layer trains and saves like any other. Operators
without a rule that ONNX itself defines by others are written out first.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.functions.shape.from_data import to_tensor
from dy2st.jit import to_static
from dy2st.jit.serialization.translated_layer import part_of
from dy2st.nn.layer import Layer
from dy2st.onnx.package import onnx_package
from dy2st.onnx.reading import rules
from dy2st.onnx.reading.model_file import array_of, read_model
from dy2st.onnx.reading.runner import Runner
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.tracer.input_spec import InputSpec

_NUMBERS_OF = ("Resize", "Upsample", "Range", "Clip", "OneHot", "Pad", "QuantizeLinear", "DequantizeLinear")
"""Operators whose floating constants are no weights."""


class OnnxLayer(Layer):
    """What an ONNX model computes."""

    def __init__(self, model: Any, folder: Path | None = None):
        super().__init__()
        graph = model.graph
        versions = {opset.domain or "ai.onnx": opset.version for opset in model.opset_import}
        self._run = Runner(graph, versions["ai.onnx"], folder)
        held = {tensor.name for tensor in graph.initializer}
        self._names = [i.name for i in graph.input if i.name not in held]
        self._weights: dict[str, tuple[Layer, str]] = {}
        self._paths: set[str] = set()
        """Where weights stand: none is also a part that holds others."""
        self._constants: dict[str, np.ndarray[Any, Any]] = {}
        fixed = {name for node in graph.node if node.op_type in _NUMBERS_OF for name in node.input}
        moving = {name for node in graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
        for tensor in graph.initializer:
            array = array_of(tensor, folder)
            if array.dtype.kind != "f" or not array.ndim or tensor.name in fixed:
                self._constants[tensor.name] = array
                continue
            owner, last = self._owner(tensor.name)
            if tensor.name in moving:
                owner.register_buffer(last, to_tensor(array))
            else:
                owner.add_parameter(last, Parameter(np.array(array)))
            self._weights[tensor.name] = owner, last

    def _owner(self, name: str) -> tuple[Layer, str]:
        """Return the layer and the attribute for an initializer: its own name, as far as Python's attributes go."""
        parts = [re.sub(r"\W", "_", part) for part in name.split(".") if part] or ["weight"]
        parts = [part if part.isidentifier() or part.isdecimal() else f"_{part}" for part in parts]
        apart = all(".".join(parts[:k]) not in self._paths for k in range(1, len(parts)))
        path = ".".join(parts) if apart else "_".join(parts)
        self._paths.add(path)
        owner, last = part_of(self, path)
        while hasattr(owner, last):
            last += "_"
        return owner, last

    def forward(self, *inputs: Any) -> Any:
        """Return the output, or a tuple of the outputs."""
        if len(inputs) != len(self._names):
            raise TypeError(f"the model takes {', '.join(self._names)}, and {len(inputs)} were given")
        values: dict[str, Any] = dict(zip(self._names, inputs, strict=True))
        values.update(self._constants)
        values.update((name, getattr(owner, last)) for name, (owner, last) in self._weights.items())
        made = self._run(values)
        results = tuple(to_tensor(x) if isinstance(x, np.ndarray) else x for x in made)
        return results[0] if len(results) == 1 else results


def load(path: str | os.PathLike[str]) -> Layer:
    """Load an ONNX model of opset 7 to 28; return a Layer with its weights as parameters.

    FileFormatError names an operator that is not known, or says what is wrong with a file; MissingExtraError says what
    to install where the package `onnx` is missing.

    >>> import tempfile, dy2st as paddle
    >>> from dy2st.static import InputSpec
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = paddle.onnx.export(paddle.nn.ReLU(), folder.name + "/relu", [InputSpec([None])])
    >>> load(path)(paddle.to_tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    >>> folder.cleanup()
    """
    source = Path(path)
    return layer_of(read_model(source), source.parent)


def layer_of(model: Any, folder: Path | None = None) -> Layer:
    """Return the layer of a model that was read."""
    model = _written_out(model)
    layer = OnnxLayer(model, folder)
    layer.eval()
    specs = [_spec(i) for i in model.graph.input if i.name in layer._names]
    if any(spec is None for spec in specs):
        return layer
    names = [name if name.isidentifier() else f"input_{i}" for i, name in enumerate(layer._names)]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    run = layer.forward

    def forward(*inputs: Any) -> Any:
        return run(*inputs)

    if len(set(names)) == len(names):
        forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    layer.forward = to_static(forward, input_spec=specs)  # type: ignore[method-assign]
    return layer


def _spec(info: Any) -> InputSpec | None:
    """Return the declaration of an input; None where it is no tensor of a known rank."""
    if info.type.WhichOneof("value") != "tensor_type" or not info.type.tensor_type.HasField("shape"):
        return None
    dims = info.type.tensor_type.shape.dim
    shape = [d.dim_value if d.HasField("dim_value") else None for d in dims]
    try:
        kind = np.dtype(onnx_package().helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)).name
        return InputSpec(shape, kind, info.name)
    except (KeyError, TypeError, ValueError):
        return None


def _written_out(model: Any) -> Any:
    """Return the model with its own functions, and operators that others define, written out where no rule is."""
    package = onnx_package()
    try:
        if model.functions:
            model = package.inliner.inline_local_functions(model)
        for _ in range(3):
            unknown = {(node.domain, node.op_type) for node in model.graph.node if node.op_type not in rules.RULES}
            if not unknown:
                break
            model = package.inliner.inline_selected_functions(model, sorted(unknown), inline_schema_functions=True)
    except Exception as error:  # the package raises many kinds for models that are none
        raise FileFormatError(f"the model cannot be read: {error}") from None
    return model
