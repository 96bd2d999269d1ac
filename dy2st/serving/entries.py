"""What can be asked of a saved model: each kind of call of each of its methods, from named arrays to named arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import dtype
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.jit.serialization.io import load
from dy2st.jit.serialization.loaded_method import LoadedMethod
from dy2st.records import record
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import AbstractValue, Items
from dy2st.serving.independent_rows import meeting_rows
from dy2st.serving.protocol import Refused, datatype_of

_NUMBERS = {"int": ("int64", int), "float": ("float64", float), "bool": ("bool", bool)}


@record(frozen=True)
class Slot:
    """An input or an output: its name, the name of its dtype, and its shape (-1 for an extent of any size)."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    kind: type | None = None
    """int, float or bool, where it is a Python number."""

    def to_json(self) -> dict[str, Any]:
        """Return what the metadata of a model say of it."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


class Entry:
    """One kind of call of a loaded method. `apart` says why requests are not put together; "" where they may be."""

    def __init__(self, name: str, method: LoadedMethod, number: int):
        self.name = name
        self._method, self._number = method, number
        call, program = method.programs()[number]
        self.inputs = [
            _slot(v.name or f"input_{i}", v.type) for i, v in enumerate(program.block.arguments[: call.inputs])
        ]
        self.outputs = [_slot(n, t) for n, t in _named_types(call.output, "output")]
        self.apart = "it draws random numbers" if any(n[0] == "?" for n in call.state) else ""
        self.apart = self.apart or ("it writes to its state" if call.writes else "")
        self.apart = self.apart or meeting_rows(program, call.inputs, call.outputs())

    def checked(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the arrays in order; Refused says what is missing, not known, or of another dtype or shape."""
        for name in given.keys() - {slot.name for slot in self.inputs}:
            raise Refused(400, f"there is no input {name!r:.60}; there are {', '.join(s.name for s in self.inputs)}")
        arrays: list[np.ndarray] = []
        for slot in self.inputs:
            if slot.name not in given:
                raise Refused(400, f"input {slot.name!r} is missing")
            array = given[slot.name]
            found = datatype_of(dtype(array.dtype))
            if found != slot.datatype:
                raise Refused(400, f"input {slot.name!r} is {found}, and {slot.datatype} is taken")
            shape = array.shape[1:] if slot.kind is not None and array.shape == (1,) else array.shape
            if len(shape) != len(slot.shape) or any(n not in (-1, m) for n, m in zip(slot.shape, shape, strict=True)):
                raise Refused(
                    400, f"input {slot.name!r} has shape {list(array.shape)}, and {list(slot.shape)} is taken"
                )
            arrays.append(array)
        return arrays

    def run(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs for arrays in the order of the inputs."""
        pairs = zip(self.inputs, arrays, strict=True)
        leaves = [Tensor(a) if s.kind is None else s.kind(a.item()) for s, a in pairs]
        with no_grad():
            found = named_outputs(self._method.run(self._number, leaves), "output")
            return {
                name: array for name, array in found if array.dtype.kind not in "OUS"
            }  # None and texts are left out


def load_entries(name: str, path: str | os.PathLike[str]) -> dict[str, Entry]:
    """Load a model for evaluation; return its entries: NAME is `forward`, NAME.METHOD another method.

    A method that was saved for several kinds of calls has one entry for each: NAME, NAME.1, ... ValueError names what
    the protocol has no form for.
    """
    layer = load(path)
    layer.eval()
    found: dict[str, Entry] = {}
    for title, method in layer._methods.items():
        stem = name if title == "forward" else f"{name}.{title}"
        kinds = [i for i, (call, _) in enumerate(method.programs()) if call.mode in (None, "eval")]
        for count, number in enumerate(kinds or range(len(method.programs()))):
            key = f"{stem}.{count}" if count else stem
            try:
                found[key] = Entry(key, method, number)
            except ValueError as error:
                raise ValueError(f"{path}: {title} cannot be served: {error}") from error
    return found


def _slot(name: str, kind: Type) -> Slot:
    if isinstance(kind, ScalarType):
        stands_for, python = _NUMBERS[kind.kind]
        return Slot(name, datatype_of(dtype(stands_for)) or "", (), python)
    datatype = datatype_of(kind.dtype) if isinstance(kind, TensorType) else None
    if datatype is None or not isinstance(kind, TensorType):
        raise ValueError(f"'{name}' is {kind}, which the protocol has no datatype for")
    return Slot(name, datatype, tuple(n if isinstance(n, int) else -1 for n in kind.shape))


def _named_types(output: AbstractValue, name: str) -> Iterator[tuple[str, Type]]:
    """Yield the types of an output under the names of `named_outputs`, as far as they are known before a run."""
    if isinstance(output, Items):
        for key, item in zip(output.keys or range(len(output.items)), output.items, strict=True):
            yield from _named_types(item, f"{name}_{key}")
        return
    types: list[Type] = [ScalarType(output.number_kind)] if output.number_kind is not None else output.types()
    if len(types) == 1 and isinstance(types[0], (ScalarType, TensorType)):
        yield name, types[0]


def named_outputs(x: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of an output with names that say where they stand in it."""
    if isinstance(x, (list, tuple)):
        for i, item in enumerate(x):
            yield from named_outputs(item, f"{name}_{i}")
    elif isinstance(x, dict):
        for key, item in x.items():
            yield from named_outputs(item, f"{name}_{key}")
    else:
        yield name, x.numpy() if isinstance(x, Tensor) else np.asarray(x)
