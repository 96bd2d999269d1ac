"""Readers, Paddle's older form of data: functions without arguments that return an iterator over samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


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
