"""A row of the table: one job, the arrays it works on, and how each package does it.

A side makes the job ready from the arrays and returns the function to time. All sides get the same arrays, and what
the first calls return is compared before anything is timed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Job = Callable[[], Any]
Side = Callable[[Arrays], Job]

OURS = "dy2st"
PEERS = ("torch", "jax", "onnxruntime", "paddle", "numpy")
ABSENT = "not installed"  # what the reason of a package that is missing begins with


@dataclass(frozen=True)
class Work:
    """What a call cannot do without: arithmetic operations, and bytes that are read or written at least once."""

    flops: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True)
class Row:
    """One job at one size. The first word of a side's name is its package; the first side is ours."""

    name: str
    title: str
    arrays: Callable[..., Arrays]
    sizes: Mapping[str, int]
    tiny: Mapping[str, int]
    sides: Mapping[str, Side]
    reference: Callable[[Arrays], Any]  # what the first call returns, by NumPy; a prefix of it will do
    work: Callable[..., Work] = Work
    tolerance: float = 1e-4  # of what is compared, relative to its largest number
    goal: float = 1.0  # times the best peer
    goal_of_model: float = 1.0  # the same for a train step of which only the model is decorated
    of_copy: float | None = None  # the share of a copy's speed that is asked for, where memory may bound the job
    limit: float | None = None  # seconds that the job should take at most, where a fixed figure is asked for
    first_call: float = 0.25  # seconds to the first result, with nothing in the cache

    def given(self, tiny: bool = False) -> Arrays:
        """Make the arrays, the same ones in every process."""
        return self.arrays(np.random.default_rng(0), **(self.tiny if tiny else self.sizes))

    @property
    def at_least(self) -> Work:
        """The work of a call at full size."""
        return self.work(**self.sizes) if self.work is not Work else Work()


def layers(random: np.random.Generator, **shapes: tuple[int, ...]) -> Arrays:
    """Make weights as nets begin with: what goes into a sum has a variance of one over its number of terms."""
    return {
        name: (random.standard_normal(shape) / np.sqrt(_terms(shape))).astype("float32")
        for name, shape in shapes.items()
    }


def _terms(shape: tuple[int, ...]) -> int:
    """Count what goes into an output: a kernel's window, a matrix's rows; of a bias, a hundred."""
    return int(np.prod(shape[1:])) if len(shape) == 4 else shape[0] if len(shape) == 2 else 100


def normal(random: np.random.Generator, **shapes: tuple[int, ...]) -> Arrays:
    """Make arrays of small random numbers."""
    return {name: (random.standard_normal(shape) * 0.2).astype("float32") for name, shape in shapes.items()}


def digest(value: Any, most: int = 1 << 16) -> list[np.ndarray]:
    """Flatten what a side returned to float64 arrays; of a large one, elements at equal distances."""
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in digest(item, most)]
    value = value.detach() if hasattr(value, "detach") else value
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value).reshape(-1)
    return [array[:: -(-array.size // most) or 1].astype("float64")]


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Return the largest difference relative to the largest number; infinite where shapes differ or NaN appears."""
    worst = 0.0
    for one, other in zip(got, wanted, strict=False):
        if one.shape != other.shape or not np.array_equal(np.isfinite(one), np.isfinite(other)):
            return float("inf")
        if other.size:
            worst = max(worst, float(np.max(np.abs(one - other)) / (np.max(np.abs(other)) + 1e-30)))
    return worst
