"""Models that PaddlePaddle saved become layers: `.pdmodel` or `.json`, with `.pdiparams` beside it.

The layer's forward runs the graph and is traced into a Program, as that of any layer; so what comes of a file is what
`jit.load` returns of ours. Weights are parameters under their own names (`linear_0.w_0`); running statistics, and what
takes no gradient, are buffers.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from pathlib import Path
from typing import Any

from dy2st.errors import ConversionError, FileFormatError, TraceError
from dy2st.files import regular
from dy2st.functions.shape.from_data import to_tensor
from dy2st.ir.location import user_location
from dy2st.jit import to_static
from dy2st.jit.serialization.export import saved_layer
from dy2st.jit.serialization.translated_layer import TranslatedLayer, part_of, reserved
from dy2st.nn.layer import Layer
from dy2st.paddle_files.graph import Graph, Unreadable
from dy2st.paddle_files.pir_json import read_pir
from dy2st.paddle_files.program_desc import read_program_desc
from dy2st.paddle_files.rules import RULES
from dy2st.paddle_files.runner import Runner
from dy2st.paddle_files.weights_file import read_weights
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.tracer.input_spec import InputSpec

MODELS, WEIGHTS = (".json", ".pdmodel"), ".pdiparams"
MOST_BYTES = 256 << 20
"""Of a model without its weights."""
_STATISTICS = {"batch_norm": (1, 2)}
"""Operands that an operation updates by itself."""


class PaddleLayer(Layer):
    """What a model of PaddlePaddle computes."""

    def __init__(self, graph: Graph):
        super().__init__()
        self._run = Runner(graph)
        self._graph = graph
        self._weights: dict[Any, tuple[Layer, str]] = {}
        taken: set[str] = set()
        moving = self.moving(graph)
        for weight in graph.weights:
            owner, last = part_of(self, _path(weight.name, taken))
            assert weight.array is not None
            if weight.trainable and weight.value not in moving:
                owner.add_parameter(last, Parameter(weight.array))
            else:
                owner.register_buffer(last, to_tensor(weight.array))
            self._weights[weight.value] = owner, last

    @staticmethod
    def moving(graph: Graph) -> set[Any]:
        """Return the values of running statistics, which are no parameters."""
        return {op.operands[i] for op in graph.operations() for i in _STATISTICS.get(op.name, ())}

    def forward(self, *inputs: Any) -> Any:
        """Return the output, or a tuple of the outputs."""
        fed = {one.name: x for one, x in zip(self._graph.inputs, inputs, strict=True)}
        weights = {value: getattr(owner, last) for value, (owner, last) in self._weights.items()}
        made = tuple(self._run(fed, weights))
        return made[0] if len(made) == 1 else made


def _path(name: str, taken: set[str]) -> str:
    """Return where a weight stands in the layer: under its own name, as far as Python's attributes go."""
    parts = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in name.split(".") if part] or ["weight"]
    parts = [part if part.isidentifier() or part.isdecimal() else f"_{part}" for part in parts]
    path = ".".join(parts)
    if reserved(path) or any(".".join(parts[:k]) in taken for k in range(1, len(parts))):
        path = "w_" + "_".join(parts)
    while path in taken or any(one.startswith(path + ".") for one in taken):
        path += "_"
    taken.add(path)
    return path


def found(path: str | os.PathLike[str]) -> Path | None:
    """Return the model that a path names, with or without its suffix; None where there is none of PaddlePaddle's."""
    given = Path(path)
    if given.suffix in MODELS:
        return given if given.is_file() else None
    return next((p for s in MODELS if (p := given.with_name(given.name + s)).is_file()), None)


def read_graph(model: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> Graph:
    """Return the graph of a model, its weights read; FileFormatError says what is wrong with a file."""
    path = Path(model)
    with regular.errors_of(path), regular.opened(path) as (file, size):
        if size > MOST_BYTES:
            raise FileFormatError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} that are read")
        data = file.read(size)
        if path.suffix == ".json" or data[:1] == b"{":
            try:
                graph = read_pir(data.decode())
            except UnicodeDecodeError:
                raise FileFormatError("it is no text") from None
        else:
            graph = read_program_desc(data)
        if not graph.outputs:
            raise FileFormatError("it has no output")
        if len({one.name for one in graph.inputs}) != len(graph.inputs):
            raise FileFormatError("two inputs have one name")
        if unknown := {one.said for one in graph.operations() if one.name not in RULES}:
            raise Unreadable(f"there is no rule for {', '.join(sorted(unknown))}")
    beside = path.with_name(path.name.removesuffix(path.suffix) + WEIGHTS)
    read_weights(weights or (beside if beside.is_file() else None), graph.weights)
    return graph


def load(path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> Layer:
    """Load a model that PaddlePaddle saved; return a layer as `jit.load` does.

    FileFormatError names operations that are not known, or says what is wrong with a file; FileNotFoundError names one
    that is not there.
    """
    model = found(path)
    if model is None:
        raise FileNotFoundError(f"there is no model {path}")
    return layer_of(read_graph(model, weights), str(model))


def layer_of(graph: Graph, name: str) -> Layer:
    """Return the layer of a graph whose weights were read; a PaddleLayer, with one warning, where it is no Program."""
    with regular.errors_of(name):
        layer = PaddleLayer(graph)
        layer.eval()
        given = [one.name if one.name.isidentifier() else f"input_{i}" for i, one in enumerate(graph.inputs)]
        while len(set(given)) != len(given):
            given = [f"input_{i}" for i in range(len(given))]
        specs = [InputSpec([None if e < 0 else e for e in one.shape], one.dtype, one.name) for one in graph.inputs]
        run = layer.forward

        signature = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in given])

        def forward(*inputs: Any, **by_name: Any) -> Any:
            return run(*signature.bind(*inputs, **by_name).args)

        forward.__signature__ = signature  # type: ignore[attr-defined]
        layer.forward = to_static(forward, input_spec=specs, full_graph=True)  # type: ignore[method-assign]
        try:
            return TranslatedLayer(saved_layer(layer, specs, reserved))
        except Exception as error:  # an operation on operands that it does not take raises what our function raises
            at = layer._run.at
            said = at.said if at else "the model"
            if not isinstance(error.__cause__, (ConversionError, TraceError)):
                raise FileFormatError(f"{said}: {error}") from error
            reason = str(error.__cause__).partition("\n")[0]
            _warn(f"{name} runs operation by operation, because {said} can be in no Program: {reason}")
            layer.forward = forward  # type: ignore[method-assign]
            return layer


def _warn(text: str) -> None:
    """Warn at the line that loads."""
    place = user_location()
    if place is None:
        warnings.warn(text, UserWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, UserWarning, place.file, place.line)
