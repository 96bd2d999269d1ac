"""Streams and events: work that is queued on a device, and marks in it. On the CPU a call that returns is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.device.cuda import synchronize


class Event:
    """A mark in a stream: reached when the work before it is done."""

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ):
        self.device, self._time = device, None

    def record(self, stream: Any = None) -> None:
        """Set the mark here."""
        synchronize()
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Return whether the mark is reached: it always is."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this mark to another; RuntimeError where one was not set."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("elapsed_time needs two events that were recorded")
        return (end_event._time - self._time) * 1e3

    def synchronize(self) -> None:
        """Wait for the mark."""
        synchronize()


class Stream:
    """A queue of work; there is one for each device here, and this stands for it."""

    def __init__(self, device: Any = None, priority: int = 2, stream_base: Any = None):
        self.device = device

    def wait_event(self, event: Event) -> None:
        """Let what follows wait for a mark."""
        event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Let what follows wait for the work of another stream."""
        stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Set a mark and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Return whether the work is done."""
        synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until the work is done."""
        synchronize()


_current = [Stream()]


def current_stream(device: Any = None) -> Stream:
    """Return the stream that work goes to."""
    return _current[0]


def set_stream(stream: Stream) -> Stream:
    """Let another stream stand for the device's; return the one before."""
    before, _current[0] = _current[0], stream
    return before


@contextmanager
def stream_guard(stream: Stream | None = None) -> Iterator[None]:
    """Let a stream stand for the device's within a `with` block."""
    before = set_stream(stream or _current[0])
    try:
        yield
    finally:
        set_stream(before)
