"""DataLoader: batches of a dataset's samples, made in this process or by worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from dy2st.io import workers
from dy2st.io.collate import default_collate_fn, default_convert_fn, to_tensors
from dy2st.io.dataset import IterableDataset
from dy2st.io.sampler import BatchSampler, SequenceSampler
from dy2st.runtime.eager.device import parse


class DataLoader:
    """Iterate over batches of samples, as tensors; each `for` begins anew.

    Parameters
    ----------
    dataset
        A `Dataset`, or anything with `__getitem__` and `__len__`; an `IterableDataset`.
    batch_sampler, batch_size, shuffle, drop_last
        A sampler of batches, or how to make one. With batch_size=None samples come one by one, without a batch axis.
    collate_fn
        Makes a batch of a list of samples; by default `default_collate_fn`.
    num_workers
        How many processes make batches ahead of time (`prefetch_factor` each); 0 for none. Batches come in order. Not
        for an IterableDataset. An exception in one is raised here, with the worker's traceback in its text.
    worker_init_fn, timeout
        What each worker does first, with its number; after how many seconds without a batch to give up (0: never).
    places
        Where the tensors are made: a place, or a list of one.
    feed_list, return_list
        With return_list=False, batches are lists of one dict from the names of `feed_list` to tensors, for an Executor.

    `use_buffer_reader`, `reader_buffer_size`, `use_shared_memory` and `persistent_workers` say how Paddle does it and
    change nothing here.
    """

    def __init__(
        self,
        dataset: Any,
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[Any], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ):
        if num_workers < 0 or prefetch_factor < 1 or timeout < 0:
            raise ValueError("DataLoader: num_workers and timeout must not be negative, prefetch_factor not below 1")
        if not return_list and not feed_list:
            raise ValueError("DataLoader: return_list=False needs feed_list, the variables that are fed")
        self.dataset, self.feed_list, self.return_list = dataset, feed_list, return_list
        self.place = _one_place(places)
        self.num_workers, self.prefetch_factor, self.timeout = num_workers, prefetch_factor, timeout
        self.worker_init_fn, self.drop_last = worker_init_fn, drop_last
        self.streams = isinstance(dataset, IterableDataset)
        if self.streams and (shuffle or batch_sampler is not None):
            raise ValueError(
                "DataLoader: the samples of an IterableDataset have no other order; no shuffle, no sampler"
            )
        if self.streams and num_workers:
            raise NotImplementedError("DataLoader: num_workers must be 0 for an IterableDataset")
        if batch_sampler is not None and (shuffle or drop_last or batch_size != 1):
            raise ValueError("DataLoader: batch_sampler decides batch_size, shuffle and drop_last; leave those out")
        self.batch_size = batch_size
        self.batch_sampler: Any = batch_sampler
        if not self.streams and batch_sampler is None and batch_size is not None:
            self.batch_sampler = BatchSampler(dataset, None, shuffle, batch_size, drop_last)
        alone = self.batch_sampler is None and batch_size is None
        self.collate_fn = collate_fn or (default_convert_fn if alone else default_collate_fn)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._raw():
            found = to_tensors(batch, self.place)
            yield found if self.return_list else [self._named(found)]

    def __call__(self) -> Iterator[Any]:
        """Return an iterator over the batches."""
        return iter(self)

    def __len__(self) -> int:
        if self.streams:
            raise TypeError("a DataLoader of an IterableDataset has no length")
        return len(self.dataset) if self.batch_sampler is None else len(self.batch_sampler)

    def _raw(self) -> Iterator[Any]:
        if self.streams:
            return self._streamed()
        fetch = _Fetch(self.collate_fn, self.batch_sampler is not None)
        lots = SequenceSampler(self.dataset) if self.batch_sampler is None else self.batch_sampler
        if not self.num_workers:
            return (fetch(self.dataset, lot) for lot in lots)
        ahead = self.prefetch_factor * self.num_workers
        return workers.batches(
            self.dataset, fetch, lots, self.num_workers, ahead, self.timeout, self.worker_init_fn
        )  # fmt: skip

    def _streamed(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _named(self, batch: Any) -> dict[str, Any]:
        values = list(batch) if isinstance(batch, (list, tuple)) else [batch]
        return {v.name: x for v, x in zip(self.feed_list, values, strict=True)}


class _Fetch:
    """Makes one batch (or takes one sample) of a dataset."""

    def __init__(self, collate: Callable[[Any], Any], batched: bool):
        self.collate, self.batched = collate, batched

    def __call__(self, dataset: Any, lot: Any) -> Any:
        return self.collate([dataset[i] for i in lot] if self.batched else dataset[lot])


def _one_place(places: Any) -> Any:
    listed = places if isinstance(places, (list, tuple)) else [] if places is None else [places]
    if len(listed) > 1:
        raise NotImplementedError(f"DataLoader: tensors are made on one place, not on {len(listed)}")
    return parse(listed[0]) if listed else None
