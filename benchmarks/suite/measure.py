"""Measure a row: every side in its own process, their samples taken in turn so that a noisy minute hits all alike."""

import contextlib
import importlib.util
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from benchmarks.suite.forms import LABELS, MODEL
from benchmarks.suite.worker import Ready, Sample, serve
from benchmarks.suite.workload import OURS, Row, difference

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("DY2ST", "OPENBLAS", "OMP", "MKL")}
SINGLE = f"{OURS}, 1 thread"


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    prepare_limit: float = 90.0  # seconds for import, compilation and the first calls of a side
    sample_limit: float = 30.0  # seconds for one sample
    sample_seconds: float = 0.03  # a sample repeats the job until it takes about this long
    most_samples: int = 15
    budget: float = 6.0  # seconds of samples for each side
    tiny: bool = False


QUICK = Effort(prepare_limit=60.0, sample_limit=10.0, sample_seconds=0.01, most_samples=7, budget=1.0)


@dataclass
class Measured:
    """What one side of a row gave."""

    ready: Ready | None = None
    cold: Ready | None = None  # the same with nothing in the cache
    samples: list[Sample] = field(default_factory=list)
    peak_memory: int | None = None
    missing: str | None = None


def measure(row: Row, packages: tuple[str, ...], effort: Effort) -> dict[str, Any]:
    """Time every side whose package is named; return plain data, times in seconds."""
    with tempfile.TemporaryDirectory() as cache:
        sides = [
            SideProcess(row, side, side, _caches(cache, side), effort)
            for side in row.sides
            if side.split()[0] in packages
        ]
        if OURS in packages:
            for side in sides:
                if side.label in (OURS, LABELS[MODEL]):
                    side.measured.cold = _first_calls(row, side.label, _caches(cache, side.label), effort)
            sides.append(SideProcess(row, SINGLE, OURS, _caches(cache, OURS) | ONE_THREAD, effort))
        try:
            for side in sides:
                side.prepare()
            _refuse_what_differs(sides, row.tolerance)
            for turn in range(effort.most_samples):
                for side in sides if turn % 2 == 0 else reversed(sides):
                    side.sample()
        finally:
            for side in sides:
                side.close()
    return {"title": row.title, "sides": {side.label: _plain(side.measured) for side in sides}}


def _caches(folder: str, side: str) -> dict[str, str]:
    """Return the variables that give each form of a job a cache of its own."""
    own = os.path.join(folder, side.replace(" ", "-"))
    return {"DY2ST_CACHE_DIR": own, "TORCHINDUCTOR_CACHE_DIR": own}


def _first_calls(row: Row, label: str, environment: Mapping[str, str], effort: Effort) -> Ready | None:
    """Run the first calls of a form of dy2st's in a process of their own, which fills the cache."""
    bring_in_llvm()
    side = SideProcess(row, label, label, environment, effort)
    side.prepare()
    side.close()
    return side.measured.ready


def bring_in_llvm() -> None:
    """Read LLVM's library, so that no page of it is on the disk only: loading takes 30 ms then, not 170 to 260."""
    found = importlib.util.find_spec("llvmlite")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        for path in Path(folder, "binding").glob("*llvmlite*"):
            with path.open("rb") as library:
                while library.read(1 << 24):
                    pass


_ENDING = 10.0
"""Seconds that a process may take to end: as one of a user's, it writes down what it is compiling."""


class SideProcess:
    """The process of one side, as the coordinator sees it."""

    def __init__(self, row: Row, label: str, side: str, environment: Mapping[str, str], effort: Effort):
        self.label, self.effort, self.spent = label, effort, 0.0
        self.measured = Measured()
        self._task = row.name, side, effort.tiny, effort.sample_seconds
        self._environment = environment
        self._process: SpawnProcess | None = None
        self._pipe: Any = None

    def prepare(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *self._task), daemon=True)
        with variables(self._environment):
            self._process.start()
        theirs.close()
        self.measured.ready = self._answer(Ready, self.effort.prepare_limit)

    def sample(self) -> None:
        """Take a sample, unless this side failed or has had its time."""
        pipe, samples = self._pipe, self.measured.samples
        if pipe is None or (len(samples) >= 2 and self.spent >= self.effort.budget):
            return
        pipe.send("sample")
        sample = self._answer(Sample, self.effort.sample_limit)
        if sample is not None:
            samples.append(sample)
            self.spent += max(sample.seconds, self.effort.sample_seconds)

    def close(self) -> None:
        """Ask for the peak of memory and end the process."""
        if self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.send("end")
                self.measured.peak_memory = self._answer(int, 10.0)
        self.drop(_ENDING)

    def drop(self, grace: float = 1.0) -> None:
        """End the process, which may take some seconds of grace for what it does at its end."""
        self._pipe = None
        if self._process is not None:
            self._process.join(grace)
            self._process.kill()
            self._process = None

    def refuse(self, reason: str) -> None:
        """Leave this side out."""
        self.measured.missing = reason
        self.drop()

    def _answer(self, kind: type, limit: float) -> Any:
        """Return what the process sends next; None, and the side is out, where that is no `kind`."""
        assert self._pipe is not None
        try:
            answer = self._pipe.recv() if self._pipe.poll(limit) else f"took more than {limit:.0f} s"
        except EOFError:
            answer = "FAILED: its process ended"
        if isinstance(answer, kind):
            return answer
        self.refuse(str(answer))
        return None


def _refuse_what_differs(sides: list[SideProcess], tolerance: float) -> None:
    """Leave out each side whose first results are not ours."""
    ours = next((side.measured.ready for side in sides if side.label == OURS), None)
    for side in sides:
        ready = side.measured.ready
        if ours is None or ready is None or side.measured.missing:
            continue
        if (off := difference(ready.outputs, ours.outputs)) > tolerance:
            side.refuse(f"DIFFERS from ours by {off:.2g} of the largest number")


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for what is started meanwhile."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _plain(side: Measured) -> dict[str, Any]:
    if side.missing or side.ready is None or not side.samples:
        return {"missing": side.missing or "no sample"}
    seconds, busy = [s.seconds for s in side.samples], [s.processor for s in side.samples]
    plain = {
        "median": statistics.median(seconds),
        "min": min(seconds),
        "processor": min(busy),
        "samples": len(seconds),
        "first": side.ready.first,
        "first_processor": side.ready.first_processor,
        "first_reads": side.ready.first_reads,
        "first_three": side.ready.first + side.ready.next_two,
        "peak_memory": side.peak_memory,
        "threads": side.ready.threads,
    }
    if side.cold is not None:
        plain |= {
            "cold": side.cold.first,
            "cold_processor": side.cold.first_processor,
            "cold_reads": side.cold.first_reads,
            "cold_three": side.cold.first + side.cold.next_two,
        }
    return plain
