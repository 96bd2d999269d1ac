"""Runs a saved model on data, and says up to which magnitude the inputs of its products are represented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.ir.clone import clone_block
from dy2st.ir.program import Program, Value
from dy2st.jit.serialization.loaded_method import reachable
from dy2st.jit.serialization.schema import SavedCall
from dy2st.jit.serialization.translated_layer import TranslatedLayer
from dy2st.kinds import is_dict, is_tuple
from dy2st.quantization.thresholds import Histogram
from dy2st.runtime.eager import device
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled

_CHOICES: Mapping[str, Callable[[Histogram], float]] = {
    "absmax": lambda histogram: histogram.largest,
    "percentile": Histogram.percentile,
    "kl": Histogram.kl,
}


def calibrated(
    layer: TranslatedLayer, batches: Iterable[Any] | Callable[[], Iterable[Any]],
    places: Mapping[str, Sequence[int]], how: str,
) -> dict[str, dict[int, float]]:  # fmt: skip
    """Return the thresholds of the first operands of operations, by function and number of the operation.

    Functions that no batch runs have none. ValueError where there are no batches, or for an unknown choice.
    """
    if how not in _CHOICES:
        raise ValueError(f"activations are one of {', '.join(map(repr, _CHOICES))}, not {how!r}")
    method = layer._methods["forward"]
    was_training = layer.training
    layer.eval()
    runs: dict[str, _Observed] = {}
    for batch in batches() if callable(batches) else batches:
        call, program, leaves = method.chosen(*_arguments(batch)[0], **_arguments(batch)[1])
        if call.function not in runs:
            runs[call.function] = _Observed(program, call, places[call.function])
        runs[call.function].add(layer, leaves)
    layer.train(was_training)
    if not runs:
        raise ValueError("there are no calibration data: a batch of inputs at least is needed")
    found = {name: run.thresholds(_CHOICES[how]) for name, run in runs.items()}
    return {name: {i: t for i, t in of.items() if t > 0} for name, of in found.items()}


def _arguments(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a batch as arguments and keywords of `forward`, arrays as tensors."""
    if is_dict(batch):
        return (), {str(name): _tensor(x) for name, x in batch.items()}
    given: tuple[Any, ...] = tuple(batch) if is_tuple(batch) or isinstance(batch, list) else (batch,)
    return tuple(map(_tensor, given)), {}


def _tensor(x: Any) -> Any:
    return Tensor(device.move(x, device.current_place())) if isinstance(x, np.ndarray) else x


class _Observed:
    """A function whose results are what products read."""

    def __init__(self, program: Program, call: SavedCall, places: Sequence[int]):
        mapping: dict[Value, Value] = {}
        source = program.functions[call.function]
        block = clone_block(source, mapping)
        self._call, self._places = call, places
        block.results = [mapping[source.operations[i].operands[0]] for i in places]
        self._compiled = Compiled(Program({**reachable(program, call.function), call.function: block}, call.function),
                                  whole=True)  # fmt: skip
        self._histograms = {i: Histogram() for i in places}

    def add(self, layer: TranslatedLayer, leaves: Sequence[Any]) -> None:
        """Count the magnitudes of a run."""
        state = [0 if name[0] == "?" else layer.tensor_at(name) for name in self._call.state]
        raw = [device.move(t.payload, device.CPU) if isinstance(t, Tensor) else t for t in (*leaves, *state)]
        for i, found in zip(self._places, self._compiled.run(raw, np), strict=True):
            self._histograms[i].add(found)

    def thresholds(self, choose: Callable[[Histogram], float]) -> dict[int, float]:
        return {i: choose(histogram) for i, histogram in self._histograms.items()}
