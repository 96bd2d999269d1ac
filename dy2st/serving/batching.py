"""A model's requests: a bounded queue and one thread that runs them, as batches where rows are independent.

The thread takes the oldest request and with it those that wait for the same entry with rows of the same shapes, up to a
number of rows. Where there is room for more it waits for them, but no request longer than the delay. A batch that fails
is run again request by request, so that nobody gets the error of somebody else.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from dy2st.records import field, record
from dy2st.serving.entries import Entry
from dy2st.serving.limits import Limits
from dy2st.serving.metrics import Metrics
from dy2st.serving.protocol import Refused

Outputs = dict[str, np.ndarray]
_OURS = (MemoryError, RecursionError, OSError, SystemError)
"""Errors of a run that the request need not have made."""


@record
class _Waiting:
    entry: Entry
    arrays: list[np.ndarray]
    key: Any
    """What requests of one batch have in common; None for one that runs by itself."""
    rows: int
    future: Future[Outputs] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Worker:
    """Runs the requests of one model, whose entries share its state."""

    def __init__(self, name: str, limits: Limits, metrics: Metrics):
        self._name, self._limits, self._metrics = name, limits, metrics
        self._queue: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        metrics.watch(name, lambda: len(self._queue))
        self._thread = threading.Thread(target=self._work, name=f"dy2st-serve-{name}", daemon=True)
        self._thread.start()

    def submit(self, entry: Entry, arrays: list[np.ndarray]) -> Future[Outputs]:
        """Queue a request; Refused (503) where too many wait already or the server ends."""
        rows = arrays[0].shape[0] if not entry.apart else 0
        is_alike = not entry.apart and all(a.shape[0] == rows for a in arrays)
        key = (entry.name, *(a.shape[1:] for a in arrays)) if is_alike and 0 < rows < self._limits.max_rows else None
        waiting = _Waiting(entry, arrays, key, rows)
        with self._changed:
            if self._is_closing:
                raise Refused(503, "the server is ending")
            if len(self._queue) >= self._limits.max_queue:
                raise Refused(503, f"{len(self._queue)} requests wait for model {self._name!r}: try again later")
            self._queue.append(waiting)
            self._changed.notify()
        return waiting.future

    def close(self) -> None:
        """End the thread. A server has answered every request by then: a run that still goes on is left behind."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(1.0)

    def _work(self) -> None:
        while batch := self._next():
            self._run([w for w in batch if w.future.set_running_or_notify_cancel()])

    def _next(self) -> list[_Waiting]:
        """Wait for the next batch; nothing when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closing)
            if not self._queue:
                return []
            first = self._queue.popleft()
            batch, rows = [first], first.rows
            while first.key is not None:
                rows = self._take_alike(batch, rows)
                left = first.since + self._limits.max_delay - time.monotonic()
                if left <= 0 or rows >= self._limits.max_rows or self._is_closing or not self._changed.wait(left):
                    break
            return batch

    def _take_alike(self, batch: list[_Waiting], rows: int) -> int:
        """Move what fits into the batch, in order; return its rows."""
        others: list[_Waiting] = []
        while self._queue:
            waiting = self._queue.popleft()
            if waiting.key == batch[0].key and rows + waiting.rows <= self._limits.max_rows:
                batch.append(waiting)
                rows += waiting.rows
            else:
                others.append(waiting)
        self._queue.extend(others)
        return rows

    def _run(self, batch: Sequence[_Waiting]) -> None:
        if not batch:
            return
        entry = batch[0].entry
        begun = time.monotonic()
        try:
            outputs = entry.run(_joined([w.arrays for w in batch]))
        except Exception as error:
            if len(batch) == 1:
                batch[0].future.set_exception(_refusal(error))
                return
            for waiting in batch:
                self._run([waiting])
            return
        self._metrics.ran(self._name, len(batch), time.monotonic() - begun)
        start = 0
        for waiting in batch:
            stop = start + waiting.rows
            waiting.future.set_result({n: a[start:stop] for n, a in outputs.items()} if len(batch) > 1 else outputs)
            start = stop


def _joined(requests: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    return [np.concatenate(parts) for parts in zip(*requests, strict=True)] if len(requests) > 1 else requests[0]


def _refusal(error: Exception) -> Refused:
    if isinstance(error, Refused):
        return error
    text = " ".join(str(error).split())
    return Refused(500 if isinstance(error, _OURS) else 400, f"the model raised {type(error).__name__}: {text}")
