"""The process of one side: it makes the job ready, then takes a sample whenever it is asked to.

Each side has a process of its own, so that no package's threads, allocator or libraries are in another's way, and what
waits costs nothing: a process answers only once its threads have stopped spinning.
"""

import contextlib
import importlib
import os
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from benchmarks.suite import find
from benchmarks.suite.workload import ABSENT, OURS, Job, digest

COMPARED_CALLS = 3
WARM_SECONDS = 0.3
IMPORTED = {"onnxruntime": ("onnxruntime", "onnx"), "jax": ("jax",)}


@dataclass(frozen=True)
class Ready:
    """What a side has to say before it is timed; times in seconds."""

    imported: float
    first: float  # from the arrays to the first result
    first_processor: float  # the same, as processor time of all threads
    first_reads: int  # pages that the first result had to wait for, because they were on the disk only
    next_two: float  # the second and third call together
    outputs: list[np.ndarray]
    threads: int | None


@dataclass(frozen=True)
class Sample:
    """Seconds a call, and processor time of all threads a call."""

    seconds: float
    processor: float


def serve(connection: Connection, row: str, side: str, tiny: bool, sample_seconds: float) -> None:
    """Answer the coordinator until it hangs up."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            job, before = _prepare(connection, row, side, tiny)
            calls = _calls_per_sample(job, sample_seconds)
            while connection.recv() == "sample":
                connection.send(_sample(job, calls))
            connection.send(_peak_memory() - before)
        except ModuleNotFoundError as error:
            connection.send(f"{ABSENT}: {error.name}")
        except EOFError:
            return
        except Exception as error:  # a side may fail in any way; the others are still measured
            print(traceback.format_exc(), flush=True)
            connection.send(f"FAILED: {type(error).__name__}: {_gist(str(error))}")


def _gist(text: str) -> str:
    """Return the first line of an error's text, or the last where the first only announces it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return lines[-1] if lines[0].endswith(":") else lines[0]


def _prepare(connection: Connection, name: str, side: str, tiny: bool) -> tuple[Job, int]:
    """Make the job ready and send what its first calls returned; return it, and the memory that was in use before."""
    row, package = find(name), side.split()[0]
    start = time.perf_counter()
    for module in IMPORTED.get(package, (package,)):
        importlib.import_module(module)
    imported, given = time.perf_counter() - start, row.given(tiny)
    before = _forget_peak_memory()
    start, busy, reads = time.perf_counter(), time.process_time(), _read_pages()
    job = row.sides[side](given)
    outputs = digest(job())
    first, first_processor = time.perf_counter() - start, time.process_time() - busy
    first_reads = _read_pages() - reads
    start = time.perf_counter()
    for _ in range(COMPARED_CALLS - 1):
        outputs += digest(job())
    next_two = time.perf_counter() - start
    threads = _native_threads(package)
    connection.send(Ready(imported, first, first_processor, first_reads, next_two, outputs, threads))
    return job, before


def _calls_per_sample(job: Job, sample_seconds: float) -> int:
    """Warm the job up, then say how many calls fill a sample."""
    end = time.perf_counter() + min(WARM_SECONDS, 10 * sample_seconds)
    fastest = float("inf")
    while True:
        start = time.perf_counter()
        job()
        now = time.perf_counter()
        fastest = min(fastest, now - start)
        if now >= end:
            return max(1, round(sample_seconds / fastest))


def _sample(job: Job, calls: int) -> Sample:
    job()
    start, busy = time.perf_counter(), time.process_time()
    for _ in range(calls):
        job()
    sample = Sample((time.perf_counter() - start) / calls, (time.process_time() - busy) / calls)
    _until_quiet()
    return sample


def _until_quiet() -> None:
    """Wait until threads that spin for more work have gone to sleep, half a second at most."""
    for _ in range(50):
        before = time.process_time()
        time.sleep(0.01)
        if time.process_time() - before < 0.002:
            return


def _native_threads(package: str) -> int | None:
    """Say how many threads dy2st's native code has; None for others."""
    return importlib.import_module(package).get_num_threads() if package == OURS else None


def _read_pages() -> int:
    """Return how many pages this process had to wait for so far; zero where the system does not tell."""
    if not Path("/proc/self/stat").exists():
        return 0
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[9])


def _forget_peak_memory() -> int:
    """Let the peak begin again, and return the memory in use; zero where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return 0
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _peak_memory() -> int:
    return _memory("VmHWM") if os.path.exists("/proc/self/clear_refs") else 0


def _memory(field: str) -> int:
    """Read a field of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))
