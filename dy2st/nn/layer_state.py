"""State dicts of layers: dotted name to tensor, in the order of registration; saved and loaded by name."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dy2st.ir.context import current, replaced
from dy2st.runtime.eager.lazy_init import dtype_of, shape_of
from dy2st.runtime.eager.tensor import Tensor

if TYPE_CHECKING:
    from dy2st.nn.layer import Layer


def state_dict(
    layer: Layer, include_sublayers: bool, prefix: str, keep_vars: bool, every_buffer: bool = False
) -> dict[str, Any]:
    """Return parameters and buffers by name: the layer's own first, then those of its sublayers."""
    found: dict[str, Any] = {}
    for name, tensor in layer._parameters.items():
        if tensor is not None:
            found[prefix + name] = tensor if keep_vars else tensor.detach()
    for name, tensor in layer._buffers.items():
        if tensor is not None and (every_buffer or name not in layer._non_persistable_buffer_names_set):
            found[prefix + name] = tensor if keep_vars else tensor.detach()
    if include_sublayers:
        for name, sublayer in layer._sub_layers.items():
            if sublayer is not None:
                found.update(state_dict(sublayer, True, f"{prefix}{name}.", keep_vars, every_buffer))
    return found


def load(layer: Layer, given: dict[str, Any], use_structured_name: bool) -> tuple[list[str], list[str]]:
    """Copy the values of `given` into a layer; return the missing and the unexpected keys."""
    if not hasattr(given, "keys"):
        raise TypeError(f"a state dict maps names to tensors, it is not {type(given).__name__} {given!r:.40}")
    missing: list[str] = []
    matched: list[tuple[Tensor, Any]] = []
    used: set[str] = set()
    for structured, tensor in state_dict(layer, True, "", keep_vars=True).items():
        key = structured if use_structured_name else tensor.name
        problem = _problem(key, tensor, given)
        if problem is not None:
            missing.append(key)
            warnings.warn(f"Skip loading for {structured}. {problem}", UserWarning, stacklevel=3)
            continue
        used.add(key)
        matched.append((tensor, given[key]))
    set_values(matched)
    return missing, [key for key in given if key not in used]


def set_values(pairs: list[tuple[Tensor, Any]]) -> None:
    """Copy a value, a tensor or an array, into each tensor of a layer; no gradient follows that."""
    trace = current().trace
    with replaced(trace=trace if trace is not None and trace.of_function else None, grad=False):
        for tensor, value in pairs:
            tensor.set_value(value if isinstance(value, Tensor) else np.asarray(value, dtype=dtype_of(tensor).numpy))


def _problem(key: str, tensor: Tensor, given: dict[str, Any]) -> str | None:
    value = given.get(key)
    if value is None:
        return f"{key} is not found in the provided dict."
    shape = list(np.shape(value) if not isinstance(value, Tensor) else value.shape)
    expected = shape_of(tensor)
    if shape != expected:
        return f"{key} receives a shape {shape}, but the expected shape is {expected}."
    return None
