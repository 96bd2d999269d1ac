"""Layers whose parameters may be spread over processes: of one process, the plain layers.

Random numbers of `get_rng_state_tracker` are those of a generator by name, which begins at its seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.functions.core.operands import tensor
from dy2st.missing import missing_in
from dy2st.nn.functional import cross_entropy
from dy2st.nn.layer import Layer
from dy2st.nn.layers.linear import Embedding, Linear
from dy2st.runtime.eager.rng import Generator, default_generator
from dy2st.runtime.eager.tensor import Tensor

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)


class ColumnParallelLinear(Linear):
    """A linear layer whose columns are spread: all are here, so gathering them changes nothing."""

    is_mp = False

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool | None = None,
        gather_output: bool = True, fuse_matmul_bias: bool = False, mp_group: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, weight_attr, None if has_bias else False, name)


class RowParallelLinear(Linear):
    """A linear layer whose rows are spread: all are here, and so is the whole input."""

    is_mp = False

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool = True,
        input_is_parallel: bool = False, fuse_matmul_bias: bool = False, mp_group: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, weight_attr, None if has_bias else False, name)


class VocabParallelEmbedding(Embedding):
    """An embedding whose rows are spread: all are here."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, weight_attr: Any = None, mp_group: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, weight_attr=weight_attr, name=name)


class ParallelCrossEntropy(Layer):
    """The loss of each row of scores, whose classes may be spread: [..., 1]."""

    def __init__(self, mp_group: Any = None, name: str | None = None, ignore_index: int = -100):
        super().__init__()
        self._ignore_index = ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        label = tensor(label, "ParallelCrossEntropy")
        label = label if label.ndim == input.ndim else label.unsqueeze(-1)
        return cross_entropy(input, label, reduction="none", ignore_index=self._ignore_index)


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
    """Begin the default generator, and that of spread layers, at seeds that follow from `seed`."""
    _TRACKER.reset()
    default_generator().manual_seed(seed)
    _TRACKER.add("model_parallel_rng", seed + 1)
