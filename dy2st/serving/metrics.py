"""Counters of a server in Prometheus' text format, version 0.0.4.

dy2st_requests_total{model="lenet",status="200"} 17
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)
_HISTOGRAMS = {
    "dy2st_request_seconds": ("Time from the head of a request to its answer.", _SECONDS),
    "dy2st_run_seconds": ("Time of one run of a model.", _SECONDS),
    "dy2st_batch_requests": ("Requests of one run of a model.", _REQUESTS),
}


class Metrics:
    """What has been counted; threads may count at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._histograms: dict[tuple[str, str], tuple[list[int], list[float]]] = {}
        """Of a name and a model: how many values are in each bucket, the last one without bound; and their sum."""
        self._waiting: dict[str, Callable[[], int]] = {}

    def watch(self, model: str, waiting: Callable[[], int]) -> None:
        """Ask for the length of a model's queue whenever the metrics are read."""
        self._waiting[model] = waiting

    def answered(self, model: str, status: int, seconds: float) -> None:
        """Count a request; `model` is "" for one that is not there, so that nobody can make labels."""
        with self._lock:
            self._answers[model, status] += 1
            self._observe("dy2st_request_seconds", model, seconds)

    def ran(self, model: str, requests: int, seconds: float) -> None:
        """Count a run of a model."""
        with self._lock:
            self._observe("dy2st_run_seconds", model, seconds)
            self._observe("dy2st_batch_requests", model, requests)

    def _observe(self, name: str, model: str, value: float) -> None:
        bounds = _HISTOGRAMS[name][1]
        counts, total = self._histograms.setdefault((name, model), ([0] * (len(bounds) + 1), [0.0]))
        counts[bisect_left(bounds, value)] += 1
        total[0] += value

    def text(self) -> str:
        """Return all of it."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _head("dy2st_requests_total", "counter", "Requests that were answered.")
        for (model, status), count in sorted(self._answers.items()):
            yield f'dy2st_requests_total{{model="{_escaped(model)}",status="{status}"}} {count}'
        yield from _head("dy2st_queue_requests", "gauge", "Requests that wait for a model.")
        for model, waiting in sorted(self._waiting.items()):
            yield f'dy2st_queue_requests{{model="{_escaped(model)}"}} {waiting()}'
        for name, (text, bounds) in _HISTOGRAMS.items():
            yield from _head(name, "histogram", text)
            for (found, model), (counts, (total,)) in sorted(self._histograms.items()):
                if found == name:
                    yield from _histogram(name, f'model="{_escaped(model)}"', bounds, counts, total)


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _histogram(name: str, label: str, bounds: tuple[float, ...], counts: list[int], total: float) -> Iterator[str]:
    below = 0
    for bound, count in zip((*bounds, "+Inf"), counts, strict=True):
        below += count
        yield f'{name}_bucket{{{label},le="{bound}"}} {below}'
    yield f"{name}_sum{{{label}}} {total}"
    yield f"{name}_count{{{label}}} {below}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
