"""Readers, Paddle's older form of data: functions without arguments that return an iterator over samples."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dy2st.missing import missing_in

Reader = Callable[[], Iterable[Any]]


def batch(
    reader: Callable[[], Iterable[Any]], batch_size: int, drop_last: bool = False
) -> Callable[[], Iterator[list[Any]]]:
    """Return a reader of lists of `batch_size` samples each.

    >>> import dy2st as paddle
    >>> list(paddle.batch(lambda: range(5), 2)())
    [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise ValueError(f"batch: batch_size must be positive, not {batch_size}")

    def read() -> Iterator[list[Any]]:
        samples: list[Any] = []
        for sample in reader():
            samples.append(sample)
            if len(samples) == batch_size:
                yield samples
                samples = []
        if samples and not drop_last:
            yield samples

    return read


def buffered(reader: Reader, size: int) -> Reader:
    """Return a reader of the same samples; nothing is read ahead."""
    return reader


def cache(reader: Reader) -> Reader:
    """Return a reader that reads all samples once and keeps them."""
    kept = list(reader())
    return lambda: iter(kept)


def chain(*readers: Reader) -> Reader:
    """Return a reader of the samples of one reader after those of another."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


class ComposeNotAligned(ValueError):
    """Readers that were put beside each other have different numbers of samples."""


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """Return a reader of tuples with a sample of each reader; samples that are tuples are taken apart.

    >>> list(compose(lambda: [1, 2], lambda: [(3, 4), (5, 6)])())
    [(1, 3, 4), (2, 5, 6)]
    """

    def read() -> Iterator[tuple[Any, ...]]:
        ended = object()
        for parts in itertools.zip_longest(*(reader() for reader in readers), fillvalue=ended):
            if ended in parts:
                if check_alignment:
                    raise ComposeNotAligned("the readers have different numbers of samples")
                return
            yield tuple(one for part in parts for one in (part if isinstance(part, tuple) else (part,)))

    return read


def firstn(reader: Reader, n: int) -> Reader:
    """Return a reader of the first n samples."""
    return lambda: itertools.islice(reader(), n)


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """Return a reader of what a function gives for a sample of each reader.

    >>> list(map_readers(lambda a, b: a * b, lambda: [1, 2], lambda: [3, 4])())
    [3, 8]
    """
    return lambda: map(func, *(reader() for reader in readers))


def multiprocess_reader(readers: list[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """Return a reader of the samples of several readers, in turn, in this process."""

    def read() -> Iterator[Any]:
        running = [iter(reader()) for reader in readers]
        while running:
            for one in list(running):
                try:
                    yield next(one)
                except StopIteration:
                    running.remove(one)

    return read


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Return a reader of the samples in random order, `buf_size` of them mixed at a time."""

    def read() -> Iterator[Any]:
        samples = iter(reader())
        while part := list(itertools.islice(samples, buf_size)):
            random.shuffle(part)
            yield from part

    return read


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """Return a reader of what a function gives for each sample, in order, in this process."""
    return map_readers(mapper, reader)


__getattr__ = missing_in(__name__)
