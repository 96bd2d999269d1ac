"""Worker processes of a DataLoader: they make batches ahead of time; batches come in order, errors with their place."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from dy2st.forks import handlers_wait
from dy2st.ir.context import current
from dy2st.records import record
from dy2st.runtime.signal_delivery import comes_from_handler

Fetch = Callable[[Any, Any], Any]


@record(frozen=True)
class WorkerInfo:
    """Which worker process this is: `id` of `num_workers`, with its copy of the dataset."""

    id: int
    num_workers: int
    dataset: Any
    fetch: Fetch


def get_worker_info() -> WorkerInfo | None:
    """Return which worker process this is; None in the main process."""
    return current().process.worker


def batches(
    dataset: Any, fetch: Fetch, lots: Iterable[Any], workers: int, ahead: int, timeout: float,
    init: Callable[[int], None] | None,
) -> Iterator[Any]:  # fmt: skip
    """Yield `fetch(dataset, lot)` for each lot of sample numbers, in order, made by worker processes."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else methods[0])
    numbers = context.Value("i", 0)
    seed = int(np.random.randint(2**31))
    pool = ProcessPoolExecutor(workers, context, _begin, (numbers, workers, dataset, fetch, init, seed))
    try:
        yield from _in_order(pool, iter(lots), ahead, timeout)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, lots: Iterator[Any], ahead: int, timeout: float) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    for lot in lots:
        with handlers_wait():  # it begins the processes
            waiting.append(pool.submit(_batch, lot))
        if len(waiting) >= ahead:
            yield _taken(waiting.popleft(), timeout)
    while waiting:
        yield _taken(waiting.popleft(), timeout)


def _taken(batch: Future[Any], timeout: float) -> Any:
    try:
        found = batch.result(timeout or None)
    except TimeoutError as error:
        if comes_from_handler(error):
            raise
        raise RuntimeError(f"DataLoader: no batch came from a worker within {timeout} s") from None
    except BrokenProcessPool:
        raise RuntimeError(
            "DataLoader: a worker process ended before its batch was made (killed, or out of memory)"
        ) from None
    if isinstance(found, _Failure):
        raise found.again()
    return found


@record(frozen=True)
class _Failure:
    """An exception in a worker: its class where it can be made anew from a text, and its traceback as text."""

    kind: type[Exception]
    worker: int
    text: str

    def again(self) -> Exception:
        message = f"DataLoader worker {self.worker} failed:\n{self.text}"
        try:
            return self.kind(message)
        except TypeError:
            return RuntimeError(message)


def _begin(
    numbers: Any, workers: int, dataset: Any, fetch: Fetch, init: Callable[[int], None] | None, seed: int
) -> None:
    """Prepare a worker process: its number, its random numbers, what the user wants done first."""
    with numbers.get_lock():
        number = numbers.value
        numbers.value += 1
    threading.Thread(target=_end_with_parent, daemon=True).start()
    np.random.seed((seed + number) % 2**32)
    current().process.worker = WorkerInfo(number, workers, dataset, fetch)
    if init is not None:
        init(number)


def _end_with_parent() -> None:
    """End this process when the one that wants its batches has ended, however that was: it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _batch(lot: Any) -> Any:
    info = get_worker_info()
    assert info is not None
    try:
        return info.fetch(info.dataset, lot)
    except Exception as error:  # handed over to the main process, which raises it
        return _Failure(type(error), info.id, traceback.format_exc())
