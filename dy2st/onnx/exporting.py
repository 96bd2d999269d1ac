"""`paddle.onnx.export`: a Layer, a function or a saved model becomes an ONNX file (opset 21, IR version 10).

Arguments are inputs under their names, with the names of symbolic extents; results are `output`, or `output_0`,
`output_1`, ...; the state is initializers. State that a call writes is an input that may be left out, with what it is
now, and an output `next.NAME`: whoever runs the model gives that to the next call. Each node has the line that it comes
from in its metadata, under `source`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import Dy2stError
from dy2st.files import atomic
from dy2st.ir.clone import clone_program
from dy2st.ir.location import Location
from dy2st.ir.program import Program
from dy2st.ir.types import Type
from dy2st.jit.serialization.loaded_method import reachable
from dy2st.jit.serialization.one_program import saved_model, the_call
from dy2st.jit.serialization.schema import SavedCall, SavedLayer
from dy2st.onnx.package import onnx_package
from dy2st.onnx.writing import rules
from dy2st.onnx.writing.leaves import Refused, leaves
from dy2st.onnx.writing.writer import Writer
from dy2st.passes.core.base import run_pipeline
from dy2st.passes.lowering.bool_indices_to_int import BoolIndicesToInt
from dy2st.passes.lowering.decompose import Decompose
from dy2st.passes.pipelines import converge
from dy2st.records import record
from dy2st.version import dy2st as VERSION

OPSET, IR_VERSION = 21, 10
SUFFIX = ".onnx"
EXTERNAL = 1 << 30
"""From so many bytes of state on, it stands in a file beside the model: protobuf ends at twice as many."""
_ALIGNED = 64
_SMALL = 1024
"""Bytes up to which a tensor stays in the model."""


@record(frozen=True)
class StateInput:
    """A tensor that a Program reads beside its inputs, and whether a call writes it."""

    name: str
    array: np.ndarray[Any, Any]
    is_written: bool


class NotExportable(Dy2stError, TypeError):
    """A Program with operations that ONNX has no form for; the text names each of them with its line."""

    def __init__(self, found: Sequence[tuple[str, Location | None, str]]):
        self.operations = tuple(found)
        lines = dict.fromkeys(f"  {name} at {place or 'an unknown line'}: {why}" for name, place, why in found)
        super().__init__("\n".join(["ONNX has no form for:", *lines]))


def export(
    layer: Any,
    path: str | os.PathLike[str],
    input_spec: Sequence[Any] | None = None,
    opset_version: int = OPSET,
    *,
    external_data: bool | None = None,
) -> Path:
    """Write a Layer, a function, or a model that `jit.save` wrote (its path) as an ONNX model; return its path.

    Inputs are what `input_spec` (or that of `to_static`) declares, or those of the calls so far. A Layer is written in
    the mode in which it is: call `eval()` first for use. `external_data` puts the state into a file beside the model;
    without it, that is done from 1 GB on. Raises NotExportable where ONNX has no form for an operation,
    MissingExtraError where the package `onnx` is not installed.

    >>> import tempfile, dy2st as paddle
    >>> from dy2st.static import InputSpec
    >>> folder = tempfile.TemporaryDirectory()
    >>> print(export(paddle.nn.ReLU(), folder.name + "/relu", [InputSpec([None, 2])]).name)
    relu.onnx
    >>> folder.cleanup()
    """
    if opset_version != OPSET:
        raise ValueError(f"models are written for opset {OPSET}, not {opset_version}")
    package = onnx_package()
    saved = saved_model(layer, input_spec)
    call = the_call(saved)
    target = Path(path) if str(path).endswith(SUFFIX) else Path(f"{os.fspath(path)}{SUFFIX}")
    program = Program(reachable(saved.program, call.function), call.function)
    model, arrays = model_of(package, program, _state(saved, call), _output_names(call))
    _write(package, model, arrays, target, external_data)
    return target


def prepared(program: Program) -> Program:
    """Return a Program of the operations that rules are for."""
    made = clone_program(program)
    converge(made)
    run_pipeline(made, [BoolIndicesToInt(), Decompose(kept=rules.WHOLE)])
    converge(made)
    return made


def model_of(
    package: Any, program: Program, state: Sequence[StateInput], outputs: Sequence[str]
) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """Return the model without its initializers, and those by name; the state is what the last arguments take."""
    made = prepared(program)
    writer = Writer(package, made)
    inputs: list[Any] = []
    free = len(made.block.arguments) - len(state)
    for i, argument in enumerate(made.block.arguments):
        held = state[i - free] if i >= free else None
        parts, name = writer.kinds(argument, "an input"), held.name if held else argument.name or f"input_{i}"
        names = [name] if len(parts) == 1 else [f"{name}_{k}" for k in range(len(parts))]
        writer.bind(argument, names)
        if held is not None:
            writer.initializers[name] = held.array
        if held is None or held.is_written:
            inputs += [writer.value_info(n, leaf, named=True) for n, leaf in zip(names, parts, strict=True)]
    writer.block(made.block)
    kinds = [writer.kinds(v, "an output") for v in made.block.results]
    if writer.refused:
        raise NotExportable(writer.refused)
    found = [name for v in made.block.results for name in writer.names(v)]
    pairs = list(zip(found, (leaf for parts in kinds for leaf in parts), strict=True))
    names = writer.outputs([name for name, _ in pairs], outputs)
    infos = [writer.value_info(n, leaf, named=True) for n, (_, leaf) in zip(names, pairs, strict=True)]
    graph, reads = writer.finished(writer.graph, inputs, infos, program.entry)
    reads |= {i.name for i in inputs}
    model = package.helper.make_model(
        graph,
        opset_imports=[package.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="dy2st",
        producer_version=VERSION,
    )
    return model, {name: array for name, array in writer.initializers.items() if name in reads}


def _state(saved: SavedLayer, call: SavedCall) -> list[StateInput]:
    """Return the state that a call reads; the generator's numbers begin at 0."""
    written = {target.name for target, _ in call.writes}
    return [
        StateInput(
            name.lstrip("?"), np.asarray(0, np.int64) if name[0] == "?" else saved.state[name].array, name in written
        )
        for name in call.state
    ]


def _output_names(call: SavedCall) -> list[str]:
    count = sum(map(_count, call.output.types()))
    names = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
    for target, template in call.writes:
        parts = sum(map(_count, template.types()))
        stem = f"next.{target.name or target.kind}" + (".gradient" if target.kind == "gradient" else "")
        names += [stem] if parts == 1 else [f"{stem}_{i}" for i in range(parts)]
    return names


def _count(t: Type) -> int:
    """Return how many leaves a type has; 0 where ONNX has no form for it, which is refused elsewhere."""
    try:
        return len(leaves(t))
    except Refused:
        return 0


def _write(
    package: Any, model: Any, arrays: dict[str, np.ndarray[Any, Any]], target: Path, external: bool | None
) -> None:
    """Add the initializers, check the model, and write it: whole, or not at all."""
    if external is None:
        external = sum(array.nbytes for array in arrays.values()) >= EXTERNAL
    outside: list[memoryview | bytes] = []
    offset, location = 0, target.name + ".data"
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        if not external or array.nbytes <= _SMALL:
            model.graph.initializer.append(package.numpy_helper.from_array(little, name))
            continue
        kind = package.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = model.graph.initializer.add(name=name, data_type=kind, dims=array.shape)
        tensor.data_location = package.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        padding = -array.nbytes % _ALIGNED
        outside += [little.reshape(-1).view(np.uint8).data, bytes(padding)]
        offset += array.nbytes + padding
    target.parent.mkdir(parents=True, exist_ok=True)
    if outside:
        atomic.replace(target.with_name(location), outside)
    else:
        package.checker.check_model(model, full_check=True)
    atomic.replace(target, [model.SerializeToString()])
    if outside:
        package.checker.check_model(str(target), full_check=True)
