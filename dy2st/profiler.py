"""`paddle.profiler`: how long steps and named parts take, as a table and as a file for Chrome's tracing page.

What is measured is the time between `begin` and `end` of each RecordEvent, and between the steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from dy2st.errors import FileFormatError
from dy2st.files import regular, strict_json
from dy2st.kinds import is_dict
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)


class ProfilerTarget(Enum):
    """What is measured: everything here runs on the CPU."""

    CPU, GPU, XPU, CUSTOM_DEVICE = range(4)


class ProfilerState(Enum):
    """What a profiler does in a step."""

    CLOSED, READY, RECORD, RECORD_AND_RETURN = range(4)


class SortedKeys(Enum):
    """By what `summary` sorts."""

    CPUTotal, CPUAvg, CPUMax, CPUMin, GPUTotal, GPUAvg, GPUMax, GPUMin = range(8)


_recording: list[Profiler] = []
"""The profilers that are in a step that they record."""


class RecordEvent:
    """A part of a program with a name: a `with`, or `begin()` and `end()`."""

    def __init__(self, name: str, event_type: Any = None):
        self.name = name
        self._began: int | None = None

    def begin(self) -> None:
        """Begin the part."""
        self._began = time.perf_counter_ns()

    def end(self) -> None:
        """End the part; nothing where it was not begun."""
        if self._began is None:
            return
        for profiler in _recording:
            profiler.events.append((self.name, self._began, time.perf_counter_ns()))
        self._began = None

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """Return what a profiler does in each step: `skip_first` steps nothing, then again and again (or `repeat` times)
    `closed` steps nothing, `ready` steps nothing yet, `record` steps are recorded.

    >>> plan = make_scheduler(closed=1, ready=1, record=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']
    """
    period = closed + ready + record

    def state(step: int) -> ProfilerState:
        turn, at = divmod(step - skip_first, period)
        if step < skip_first or (repeat and turn >= repeat) or at < closed:
            return ProfilerState.CLOSED
        if at < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD_AND_RETURN if at == period - 1 else ProfilerState.RECORD

    return state


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Profiler], None]:
    """Return what writes the events to a file in a folder, for `on_trace_ready`."""

    def write(profiler: Profiler) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        profiler.export(str(folder / f"{worker_name or 'worker'}_step{profiler.step_num}.json"))

    return write


def load_profiler_result(filename: str) -> dict[str, Any]:
    """Return what a file has that `Profiler.export` wrote; FileFormatError says what is wrong with a damaged one."""
    with regular.errors_of(filename), regular.opened(filename) as (file, size):
        found = strict_json.loads(file.read(size).decode(), "the text")
        if not is_dict(found):
            raise FileFormatError("it holds no events of a profiler")
        return found


class Profiler:
    """Measures steps and named parts between `start` and `stop`, or in a `with`; call `step` after each step.

    Parameters
    ----------
    scheduler
        Which steps are recorded: a function of the number of a step, (first, last + 1), or None for all.
    on_trace_ready
        What is called with the profiler after the last of some steps that are recorded.
    timer_only
        Measure the steps alone.

    >>> with Profiler() as profiler:
    ...     with RecordEvent("part"):
    ...         pass
    ...     profiler.step()
    >>> [name for name, _, _ in profiler.events]
    ['part', 'ProfileStep#0']
    """

    def __init__(
        self, *, targets: Iterable[Any] | None = None, scheduler: Any = None,
        on_trace_ready: Callable[[Profiler], None] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, timer_only: bool = False, emit_nvtx: bool = False, custom_device_types: Any = (),
        with_flops: bool = False,
    ):  # fmt: skip
        if isinstance(scheduler, (tuple, list)):
            first, last = scheduler
            scheduler = make_scheduler(closed=max(first, 0), ready=0, record=last - max(first, 0), repeat=1)
        self._state_of = scheduler or (lambda step: ProfilerState.RECORD)
        self._ready, self._timer_only = on_trace_ready, timer_only
        self.step_num = 0
        self.events: list[tuple[str, int, int]] = []
        """Name, begin and end, in nanoseconds."""
        self._times: list[tuple[float, int | None]] = []

    def start(self) -> None:
        """Begin the first step."""
        self._began = time.perf_counter_ns()
        self._enter()

    def _enter(self) -> None:
        state = self._state_of(self.step_num)
        if state in (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN) and not self._timer_only:
            _recording.append(self)

    def _leave(self, last: bool) -> None:
        if self not in _recording:
            return
        _recording.remove(self)
        self.events.append((f"ProfileStep#{self.step_num}", self._began, time.perf_counter_ns()))
        if self._ready and (last or self._state_of(self.step_num) is ProfilerState.RECORD_AND_RETURN):
            self._ready(self)

    def step(self, num_samples: int | None = None) -> None:
        """End a step, in which so many samples were, and begin the next."""
        self._leave(False)
        now = time.perf_counter_ns()
        self._times.append(((now - self._began) / 1e9, num_samples))
        self.step_num += 1
        self._began = now
        self._enter()

    def stop(self) -> None:
        """End the last step."""
        if self._state_of(self.step_num) is ProfilerState.RECORD and self.events and self in _recording:
            _recording.remove(self)
            if self._ready:
                self._ready(self)
        elif self in _recording:
            _recording.remove(self)

    def step_info(self, unit: str | None = None) -> str:
        """Return how long the steps since the last call took on average, and how many samples a second there were."""
        times, self._times = self._times, []
        if not times:
            return "no step was made"
        seconds = sum(t for t, _ in times)
        text = f"batch_cost: {seconds / len(times):.5f} s"
        samples = sum(n for _, n in times if n is not None)
        return f"{text} ips: {samples / seconds:.3f} {unit or 'samples/s'}" if samples else text

    def export(self, path: str, format: str = "json") -> None:
        """Write the events to a file for Chrome's tracing page."""
        if format != "json":
            raise ValueError(f"Profiler.export: format is json, not {format!r}")
        events = [
            {"name": n, "ph": "X", "ts": a / 1000, "dur": (b - a) / 1000, "pid": 0, "tid": 0} for n, a, b in self.events
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def summary(
        self, sorted_by: Any = SortedKeys.CPUTotal, op_detail: bool = True, thread_sep: bool = False,
        time_unit: str = "ms", views: Any = None,
    ) -> None:  # fmt: skip
        """Print for each name how often it was there and how long it took: together, on average, most, least."""
        unit = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[time_unit]
        taken: dict[str, list[float]] = {}
        for name, begin, end in self.events:
            taken.setdefault(name.partition("#")[0], []).append((end - begin) / unit)
        keys = (sum, lambda t: sum(t) / len(t), max, min)
        key = keys[sorted_by.value % 4]
        print(f"{'name':<32}{'calls':>8}{'total':>12}{'average':>12}{'max':>12}{'min':>12}  ({time_unit})")
        for name, times in sorted(taken.items(), key=lambda item: -key(item[1])):
            print(f"{name:<32}{len(times):>8}" + "".join(f"{k(times):>12.4f}" for k in keys))

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
