"""Batches through a saved model on many actors: `predict`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from dy2st.fleets.fleet import Fleet
from dy2st.ir.serialize import from_json, to_json
from dy2st.jit.serialization.io import load
from dy2st.jit.serialization.schema import called_functions, from_metadata, to_metadata
from dy2st.jit.serialization.translated_layer import TranslatedLayer, now
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor


def predict(model: str | os.PathLike[str] | TranslatedLayer, batches: Iterable[Any], **fleet: Any) -> Iterator[Any]:
    """Yield what a saved model gives for each batch, in order; `fleet` are options of a Fleet (workers, engine, ...).

    A batch is an argument, a tuple of arguments, or a dict of them by name. Actors read one copy of the weights.

    >>> import tempfile, dy2st as paddle
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = paddle.jit.save(paddle.nn.ReLU(), folder.name + "/m", input_spec=[paddle.static.InputSpec([None])])
    >>> batches = [np.array([-1.0, i], "float32") for i in range(3)]
    >>> [y.tolist() for y in predict(path, batches, workers=1, engine="processes")]
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    >>> folder.cleanup()
    """
    layer = model if isinstance(model, TranslatedLayer) else load(model)
    with Fleet(run_batch, layer_of, **fleet) as actors, closing(actors.map(batches, portable(layer))) as results:
        yield from results


def portable(layer: TranslatedLayer) -> dict[str, Any]:
    """Return a loaded layer as plain data and arrays."""
    saved = now(layer)
    program, constants = to_json(saved.program)
    arrays = {t.name: np.asarray(t.array) for t in saved.state.values() if t.same is None}
    metadata = to_metadata(saved, {name: name for name in arrays})
    return {"program": program, "constants": constants, "metadata": metadata, "arrays": arrays}


def layer_of(data: Mapping[str, Any]) -> TranslatedLayer:
    """Return the layer again, for evaluation; it reads the arrays where they are."""
    program = from_json(data["program"], data["constants"], called_functions(data["metadata"]))
    layer = TranslatedLayer(from_metadata(data["metadata"], program, data["arrays"]))
    layer.eval()
    return layer


def run_batch(layer: TranslatedLayer, batch: Any) -> Any:
    """Run the layer on one batch."""
    with no_grad():
        if isinstance(batch, dict):
            return layer(**{name: _tensor(x) for name, x in batch.items()})
        return layer(*map(_tensor, batch if isinstance(batch, tuple) else (batch,)))


def _tensor(x: Any) -> Any:
    return Tensor(np.asarray(x)) if isinstance(x, np.ndarray) else x
