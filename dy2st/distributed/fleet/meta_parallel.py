"""`fleet.meta_parallel`: layers whose parameters are spread over processes, pipelines, and their random numbers.

Random numbers of `get_rng_state_tracker` are those of a generator by name, which begins at its seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dy2st.distributed.fleet.parallel_layers import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from dy2st.distributed.fleet.pipeline_layer import LayerDesc, PipelineLayer, SharedLayerDesc
from dy2st.distributed.fleet.pipeline_parallel import PipelineParallel
from dy2st.distributed.fleet.topology import ways
from dy2st.missing import missing_in
from dy2st.runtime.eager.rng import Generator, default_generator

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)

__all__ = [
    "ColumnParallelLinear", "LayerDesc", "ParallelCrossEntropy", "PipelineLayer", "PipelineParallel",
    "RNGStatesTracker", "RowParallelLinear", "SharedLayerDesc", "VocabParallelEmbedding", "get_rng_state_tracker",
    "model_parallel_random_seed",
]  # fmt: skip


class RNGStatesTracker:
    """Generators by name; `rng_state(name)` draws from one for the length of a `with`."""

    def __init__(self) -> None:
        self.states_: dict[str, tuple[int, int]] = {}

    def reset(self) -> None:
        """Forget all generators."""
        self.states_ = {}

    def add(self, name: str, seed: int) -> None:
        """Add a generator that begins at a seed; ValueError where the name is taken."""
        if name in self.states_:
            raise ValueError(f"there is a random state {name!r} already")
        self.states_[name] = Generator(int(seed)).get_state()

    @contextmanager
    def rng_state(self, name: str = "model_parallel_rng") -> Iterator[None]:
        """Draw from a generator for the length of a `with`; ValueError where nobody added it."""
        if name not in self.states_:
            raise ValueError(f"there is no random state {name!r}: add(name, seed) makes one")
        generator = default_generator()
        before = generator.get_state()
        generator.set_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = generator.get_state()
            generator.set_state(before)


_TRACKER = RNGStatesTracker()


def get_rng_state_tracker() -> RNGStatesTracker:
    """Return the generators of this process."""
    return _TRACKER


def model_parallel_random_seed(seed: int) -> None:
    """Begin the default generator, and that of spread layers, at seeds that follow from `seed`.

    The generator "model_parallel_rng" draws other numbers in each process that has a part of the model.
    """
    _TRACKER.reset()
    default_generator().manual_seed(seed)
    _TRACKER.add("model_parallel_rng", seed + 1 + ways().place("mp"))
