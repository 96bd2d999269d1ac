"""An observer or quanter in front of a layer, or behind it."""

from __future__ import annotations

from typing import Any

from dy2st.nn.layer import Layer


class ObserveWrapper(Layer):
    """A layer and what looks at its input, or at its output where `observe_input` is False."""

    def __init__(self, observer: Layer, observed: Layer, observe_input: bool = True):
        super().__init__()
        self._observer, self._observed, self._observe_input = observer, observed, observe_input

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._observe_input:
            first, *rest = inputs
            return self._observed(self._observer(first), *rest, **kwargs)
        return self._observer(self._observed(*inputs, **kwargs))
