"""`DataParallel`: a layer whose gradients are averaged over all processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.nn.layer import Layer


def sync_params_buffers(model: Any, comm_group: Any = None, src_rank: int = 0, *args: Any, **keywords: Any) -> None:
    """Do nothing: with one process parameters are the same everywhere."""


class DataParallel(Layer):
    """A layer whose gradients are averaged over all processes; of one process, they are its own.

    `strategy`, `group`, the sizes of buffers and `find_unused_parameters` say how processes talk, and change nothing
    here. Names in `state_dict` are those of the layer itself.
    """

    def __init__(
        self,
        layers: Layer,
        strategy: Any = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False,
        group: Any = None,
    ):
        super().__init__()
        if not isinstance(layers, Layer):
            raise TypeError(f"DataParallel takes a Layer, not {type(layers).__name__}")
        self._layers = layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the layer."""
        return self._layers(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave gradients as they are for the length of a `with`: each process its own."""
        yield

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss: with one process it needs no scale."""
        return loss

    def apply_collective_grads(self) -> None:
        """Average the gradients over the processes: with one process they are averages."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the layer's state."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Restore the layer's state."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict
