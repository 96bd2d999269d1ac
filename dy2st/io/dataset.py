"""Datasets: samples by number, samples in a stream, and datasets made of others."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.runtime.eager.tensor import Tensor


class Dataset:
    """Base of datasets of samples by number: define `__getitem__` and `__len__`.

    >>> import dy2st as paddle
    >>> class Squares(paddle.io.Dataset):
    ...     def __getitem__(self, i):
    ...         return i * i
    ...     def __len__(self):
    ...         return 3
    >>> [batch.tolist() for batch in paddle.io.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4]]
    """

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no samples: define __getitem__(self, idx)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no length: define __len__(self)")


class IterableDataset(Dataset):
    """Base of datasets of samples in a stream: define `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no samples: define __iter__(self)")

    def __getitem__(self, idx: Any) -> Any:
        raise TypeError(f"{type(self).__name__} is an IterableDataset: its samples have no numbers")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} is an IterableDataset: it has no length")


class TensorDataset(Dataset):
    """The rows of tensors that have as many of them: sample i is (t[i] for each tensor t)."""

    def __init__(self, tensors: Sequence[Tensor]):
        counts = {int(t.shape[0]) for t in tensors}
        if len(counts) != 1:
            raise ValueError(f"TensorDataset needs tensors of one first extent, not of {sorted(counts)}")
        self.tensors = tensors

    def __getitem__(self, idx: Any) -> tuple[Any, ...]:
        return tuple(t[idx] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class ComposeDataset(Dataset):
    """Samples side by side: sample i has the fields of sample i of each dataset."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = _some(datasets, "ComposeDataset")
        counts = {len(d) for d in self.datasets}
        if len(counts) != 1:
            raise ValueError(f"ComposeDataset needs datasets of one length, not of {sorted(counts)}")

    def __getitem__(self, idx: Any) -> tuple[Any, ...]:
        samples = (d[idx] for d in self.datasets)
        return tuple(itertools.chain.from_iterable(s if isinstance(s, (list, tuple)) else (s,) for s in samples))

    def __len__(self) -> int:
        return len(self.datasets[0])


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = _some(datasets, "ConcatDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __getitem__(self, idx: int) -> Any:
        count = len(self)
        if not -count <= idx < count:
            raise IndexError(f"sample {idx} is out of range for a dataset of {count}")
        idx %= count
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[IterableDataset]):
        self.datasets = _some(datasets, "ChainDataset")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class Subset(Dataset):
    """Some samples of a dataset, by number."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Return subsets of these lengths (or shares that add up to 1), by NumPy's global random numbers.

    `generator` is an iterable of all numbers in the order in which they are dealt out.
    """
    count, sizes = len(dataset), list(lengths)
    if all(0 < e < 1 for e in sizes) and np.isclose(sum(sizes), 1):
        sizes = [int(count * share) for share in sizes]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count:
        raise ValueError(f"random_split: the lengths {list(lengths)} do not add up to {count}, the dataset's")
    order = list(np.random.permutation(count).tolist() if generator is None else generator)
    ends = list(itertools.accumulate(int(e) for e in sizes))
    return [Subset(dataset, order[end - int(size) : end]) for size, end in zip(sizes, ends, strict=True)]


def _some(datasets: Iterable[Any], name: str) -> list[Any]:
    found = list(datasets)
    if not found:
        raise ValueError(f"{name} needs at least one dataset")
    return found
