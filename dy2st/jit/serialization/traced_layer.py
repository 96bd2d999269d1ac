"""TracedLayer: the face of Paddle 2 for a layer as a Program, by example inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dy2st.jit.api import to_static
from dy2st.jit.serialization.io import save
from dy2st.kinds import is_sequence
from dy2st.nn.layer import Layer
from dy2st.runtime.tracer.input_spec import InputSpec


class TracedLayer:
    """A layer that was traced for inputs; made by `TracedLayer.trace`.

    It is what `to_static` makes of the layer: control flow on values stays, which Paddle's cuts away.

    >>> import dy2st as paddle
    >>> out, traced = paddle.jit.TracedLayer.trace(paddle.nn.ReLU(), [paddle.to_tensor([-1.0, 2.0])])
    >>> out.tolist(), traced([paddle.to_tensor([3.0, -3.0, 0.5])])[0].tolist()
    ([0.0, 2.0], [3.0, 0.0, 0.5])
    """

    def __init__(self, layer: Layer, inputs: Sequence[Any]):
        self._layer, self._function = layer, to_static(layer.forward, full_graph=True)
        self._inputs = list(inputs)

    @staticmethod
    def trace(layer: Any, inputs: Any) -> tuple[Any, TracedLayer]:
        """Return the outputs of a layer for a list of inputs, and the layer as a Program.

        Raises TypeError for what is no Layer, or no list; TraceError where the layer cannot become a Program.
        """
        if not isinstance(layer, Layer):
            raise TypeError(f"TracedLayer.trace needs a Layer, not {type(layer).__name__}")
        if not is_sequence(inputs):
            raise TypeError(f"TracedLayer.trace needs a list of inputs, not {type(inputs).__name__}")
        made = TracedLayer(layer, inputs)
        return made._function(*inputs), made

    @property
    def program(self) -> Any:
        """The Program."""
        return self._function.main_program

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs for a list of inputs, as a list."""
        found = self._function(*inputs)
        return list(found) if is_sequence(found) else [found]

    def set_strategy(self, build_strategy: Any = None, exec_strategy: Any = None) -> None:
        """Take what Paddle builds and runs Programs by; nothing depends on it here."""

    def save_inference_model(
        self, path: str | os.PathLike[str], feed: Sequence[int] | None = None, fetch: Sequence[int] | None = None,
        **configs: Any,
    ) -> Path:  # fmt: skip
        """Save the Program to `<path>.dy2st` for inputs of these dtypes and any extents; return that path.

        `fetch` gives the positions of the outputs that are kept. Raises ValueError for a `feed` that leaves inputs out:
        the Program needs them all.
        """
        if feed is not None and sorted(feed) != list(range(len(self._inputs))):
            raise ValueError(f"save_inference_model: the layer needs all of its {len(self._inputs)} inputs, not {feed}")
        spec = [InputSpec([None] * x.ndim, x.dtype) for x in self._inputs]
        return save(self._layer, path, spec, output_spec=fetch, **configs)
