"""Reads an ONNX file of a stranger: how large it is, how deep and how many nodes are looked at before anything is done.

Tensors in files beside the model are read from the model's own folder alone: their names are plain, and no link leads
out of it. Every fault is one FileFormatError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.onnx.package import onnx_package

MOST_BYTES = 2 << 30
MOST_NODES, MOST_DEPTH, MOST_ELEMENTS = 200_000, 16, 1 << 33
OPSETS = range(7, 29)


def read_model(path: Path) -> Any:
    """Return the model of a file, its limits checked."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size > MOST_BYTES:
        raise FileFormatError(f"{path}: a model of more than {MOST_BYTES:,} bytes; protobuf has no larger ones")
    return parsed(path.read_bytes(), str(path))


def parsed(data: bytes, name: str) -> Any:
    """Return the model that bytes are, its limits and its form checked."""
    package = onnx_package()
    try:
        model = package.ModelProto.FromString(data)
    except Exception as error:  # protobuf's own class of errors differs between its versions
        raise FileFormatError(f"{name}: no ONNX model ({error})") from None
    _check_sizes(model.graph, name)
    versions = {opset.domain or "ai.onnx": opset.version for opset in model.opset_import}
    if versions.get("ai.onnx") not in OPSETS:
        raise FileFormatError(f"{name}: opset {versions.get('ai.onnx')} is not one of {OPSETS[0]} to {OPSETS[-1]}")
    return model


def _check_sizes(graph: Any, name: str) -> None:
    count = 0
    for depth, inner in _graphs(graph, 0):
        if depth > MOST_DEPTH:
            raise FileFormatError(f"{name}: graphs stand more than {MOST_DEPTH} deep in each other")
        count += len(inner.node)
        if count > MOST_NODES:
            raise FileFormatError(f"{name}: more than {MOST_NODES:,} nodes")
        for tensor in inner.initializer:
            _check_extents(tensor, name)
        if not all(type(one) is str for one in _names(inner)):
            raise FileFormatError(f"{name}: a name that is no text")


def _names(graph: Any) -> Iterator[Any]:
    """Yield the names in a graph: text, or bytes where they are none."""
    for part in (graph.initializer, graph.input, graph.output):
        yield from (one.name for one in part)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def _check_extents(tensor: Any, name: str) -> None:
    total = 1
    for extent in tensor.dims:
        if extent < 0:
            raise FileFormatError(f"{name}: the tensor {tensor.name!r:.60} has the extent {extent}")
        total *= extent
    if total > MOST_ELEMENTS:
        raise FileFormatError(f"{name}: the tensor {tensor.name!r:.60} has {total:,} elements")


def _graphs(graph: Any, depth: int) -> Iterator[tuple[int, Any]]:
    yield depth, graph
    if depth > MOST_DEPTH:
        return
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.output:
                    yield from _graphs(inner, depth + 1)


def array_of(tensor: Any, folder: Path | None) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor of the file, or of a file in its folder."""
    package = onnx_package()
    name = f"the tensor {tensor.name!r:.60}"
    _check_extents(tensor, "the model")
    try:
        if tensor.data_location != package.TensorProto.EXTERNAL:
            return np.asarray(package.numpy_helper.to_array(tensor))
        kind = package.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except Exception as error:  # the package raises many kinds for a tensor that does not fit its own description
        raise FileFormatError(f"{name} cannot be read: {error}") from None
    said = {entry.key: entry.value for entry in tensor.external_data}
    source = _beside(folder, said.get("location", ""), name)
    offset, shape = _number(said.get("offset", "0"), name), tuple(tensor.dims)
    count = int(np.prod(shape, dtype=np.int64))
    if offset + count * kind.itemsize > source.stat().st_size:
        raise FileFormatError(f"{name} reaches over the end of {source.name}")
    with source.open("rb") as file:
        file.seek(offset)
        return np.frombuffer(file.read(count * kind.itemsize), kind).reshape(shape)


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise FileFormatError(f"{name}: {text!r:.40} is no place in a file")
    return int(text)


def _beside(folder: Path | None, location: str, name: str) -> Path:
    """Return the file that a tensor stands in: one inside of the model's folder, which no link leads out of."""
    if folder is None or not location or "\0" in location or os.path.isabs(location):
        raise FileFormatError(f"{name} stands in the file {location!r:.60}, which is not beside the model")
    root = folder.resolve()
    found = (root / location).resolve()
    if root not in found.parents or not found.is_file():
        raise FileFormatError(f"{name} stands in the file {location!r:.60}, which is not beside the model")
    return found
