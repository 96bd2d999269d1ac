"""The one Program of a model that becomes a file of another kind: that of `forward` in the mode in which it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.files import program_file
from dy2st.jit.serialization.export import saved_layer
from dy2st.jit.serialization.io import load
from dy2st.jit.serialization.schema import SavedCall, SavedLayer
from dy2st.jit.serialization.translated_layer import TranslatedLayer, now, reserved


def saved_model(layer: Any, input_spec: Sequence[Any] | None) -> SavedLayer:
    """Return what `jit.save` writes of a Layer or a function, or what is in a file or a loaded layer now."""
    loaded = load(layer) if program_file.is_path(layer) else layer
    if isinstance(loaded, TranslatedLayer):
        return now(loaded)
    return saved_layer(loaded, input_spec, reserved)


def the_call(saved: SavedLayer, method: str = "forward") -> SavedCall:
    """Return the one kind of call of a method in the mode of the layer."""
    mode = "train" if saved.training else "eval"
    calls = [call for call in saved.methods[method].calls if call.mode in (None, mode)]
    if len(calls) != 1:
        raise ValueError(f"{method} has {len(calls)} Programs in this mode, and a model has one: give an input_spec")
    return calls[0]
