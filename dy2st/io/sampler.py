"""Samplers: in which order the samples of a dataset are taken, and how they form batches.

Random order comes from NumPy's global random numbers, so `numpy.random.seed` repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.ops.collective.world import world


class Sampler:
    """Base of samplers: define `__iter__`, which gives the numbers of samples."""

    def __init__(self, data_source: Any = None):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} has no order: define __iter__(self)")

    def __len__(self) -> int:
        return len(self.data_source)


class SequenceSampler(Sampler):
    """The samples in their order."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    """The samples in random order; with `replacement` a sample may come again.

    `generator` is an iterable of numbers to take in place of random ones.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ):
        super().__init__(data_source)
        if num_samples is not None and num_samples < 1:
            raise ValueError(f"RandomSampler: num_samples must be positive, not {num_samples}")
        if num_samples is not None and not replacement and num_samples > len(data_source):
            raise ValueError(f"RandomSampler: {num_samples} of {len(data_source)} samples, without replacement")
        self.replacement, self._count, self.generator = replacement, num_samples, generator

    @property
    def num_samples(self) -> int:
        """How many samples are taken."""
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        if self.generator is not None:
            return (int(i) for i, _ in zip(self.generator, range(self.num_samples), strict=False))
        count = len(self.data_source)
        return iter(np.random.choice(np.arange(count), self.num_samples, replace=self.replacement).tolist())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some samples, in random order."""

    def __init__(self, indices: Sequence[int]):
        super().__init__(indices)
        if not len(indices):
            raise ValueError("SubsetRandomSampler needs at least one sample")
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in np.random.permutation(len(self.indices)).tolist())


class WeightedRandomSampler(Sampler):
    """`num_samples` samples, each with a probability proportional to its weight."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True):
        super().__init__()
        self.weights = np.asarray(weights, np.float64).reshape(-1)
        if num_samples < 1 or (not replacement and num_samples > np.count_nonzero(self.weights)):
            raise ValueError(f"WeightedRandomSampler: {num_samples} samples cannot be taken of {self.weights.size}")
        if np.any(self.weights < 0) or not self.weights.sum() > 0:
            raise ValueError("WeightedRandomSampler: the weights must not be negative, nor all 0")
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self) -> Iterator[int]:
        chances = self.weights / self.weights.sum()
        return iter(np.random.choice(self.weights.size, self.num_samples, self.replacement, chances).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers of samples, from a dataset or from another sampler.

    >>> import dy2st as paddle
    >>> list(paddle.io.BatchSampler(range(5), batch_size=2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, dataset: Any = None, sampler: Iterable[int] | None = None, shuffle: bool = False, batch_size: int = 1,
        drop_last: bool = False,
    ):  # fmt: skip
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler needs one of dataset and sampler")
        if sampler is not None and shuffle:
            raise ValueError("BatchSampler: the sampler decides the order, so shuffle must be False")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"BatchSampler: batch_size must be a positive int, not {batch_size!r}")
        self.sampler: Any = sampler if sampler is not None else (RandomSampler if shuffle else SequenceSampler)(dataset)
        self.shuffle, self.batch_size, self.drop_last = shuffle, batch_size, drop_last

    def __iter__(self) -> Iterator[Any]:
        batch: list[int] = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        return (len(self.sampler) + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size


class DistributedBatchSampler(BatchSampler):
    """The batches of one of `num_replicas` processes: each takes every `num_replicas`-th sample, all as many.

    With None, they and `rank` are those of this job. Samples are added from the front until they can be dealt out
    evenly. `set_epoch` changes the random order.
    """

    def __init__(
        self, dataset: Any, batch_size: int, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = False, drop_last: bool = False,
    ):  # fmt: skip
        self.nranks = num_replicas or world().size
        self.local_rank = rank or (0 if num_replicas else world().rank)
        if not 0 <= self.local_rank < self.nranks:
            raise ValueError(f"DistributedBatchSampler: rank {rank} is not one of {self.nranks} processes")
        self.epoch, self.mixed = 0, shuffle
        super().__init__(sampler=self._mine(dataset), batch_size=batch_size, drop_last=drop_last)
        self.data_source, self.shuffle = dataset, shuffle

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch it is: the random order depends on it, alike in all processes."""
        self.epoch = epoch

    def _mine(self, dataset: Any) -> Any:
        outer = self

        class Mine:
            def __len__(self) -> int:
                return -(-len(dataset) // outer.nranks)

            def __iter__(self) -> Iterator[int]:
                order = np.arange(len(dataset))
                if outer.mixed:
                    np.random.RandomState(outer.epoch).shuffle(order)
                return iter(np.resize(order, len(self) * outer.nranks)[outer.local_rank :: outer.nranks].tolist())

        return Mine()
