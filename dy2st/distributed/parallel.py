"""What a script for several processes asks for, where there is one: its rank is 0 of 1, and gradients are its own.

A launcher that starts several processes says so in PADDLE_TRAINERS_NUM; then this refuses to go on, because processes
that do not exchange gradients would train several different models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.ir.context import current
from dy2st.nn.layer import Layer


class ParallelEnv:
    """Which process this is, and of how many."""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return 0

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return 1

    local_rank, nranks = rank, world_size

    @property
    def device_id(self) -> int:
        """The number of the CUDA device of this process."""
        place = current().process.place
        return 0 if place is None else place.index


def init_parallel_env(nccl_config: Any = None) -> ParallelEnv:
    """Begin to work as one of several processes; here there is one, and nothing to set up.

    Raises NotImplementedError under a launcher that started more than one, and for a `nccl_config`.

    >>> import dy2st as paddle
    >>> paddle.distributed.init_parallel_env().world_size
    1
    """
    count = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    if count != 1:
        raise NotImplementedError(
            f"init_parallel_env: {count} processes were started, and they cannot exchange data here"
        )
    if nccl_config is not None:
        raise NotImplementedError("init_parallel_env: nccl_config has no meaning for one process")
    current().process.parallel = True
    return ParallelEnv()


def is_initialized() -> bool:
    """Return whether `init_parallel_env` was called."""
    return current().process.parallel


def get_rank(group: Any = None) -> int:
    """Return the number of this process: 0."""
    return ParallelEnv().rank


def get_world_size(group: Any = None) -> int:
    """Return how many processes there are: 1."""
    return ParallelEnv().world_size


class parallel_helper:  # noqa: N801 (a module of Paddle's)
    """Whether processes work together, as old code asks."""

    _is_parallel_ctx_initialized = staticmethod(is_initialized)


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
