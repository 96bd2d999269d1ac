"""Measure rows: one job done by several candidates, their repeats interleaved so that a noisy minute hits all alike.

A candidate is a factory: called once, outside of the time taken, it prepares and returns the function to time. A
candidate whose package is not installed, or that fails, is left out with its reason. Compared are medians; the minimum
stands beside.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

PEERS = ("torch", "jax", "paddle")  # measured only on demand: their import alone takes seconds
SAMPLE_SECONDS = 0.01  # a sample repeats the job until it takes this long, so that the clock's grain does not count

Job = Callable[[], object]


@dataclass(frozen=True)
class Goal:
    """A bound on a figure made from the medians of a row, in seconds unless `show` writes something else."""

    text: str
    figure: Callable[[Mapping[str, float]], float]
    bound: float
    show: Callable[[float], str] = lambda value: seconds(value).strip()


@dataclass(frozen=True)
class Row:
    """One job and who does it. The first word of a candidate's name is its package."""

    name: str
    candidates: Mapping[str, Callable[[], Job]]
    goal: Goal | None = None
    repeats: int = 15
    per: int = 1  # a call does the job this many times
    reports_seconds: bool = False  # the job measures itself and returns seconds, or what `show` writes
    show: Callable[[float], str] = lambda value: seconds(value)


@dataclass
class Result:
    """What a row gave: samples in seconds by candidate, and why other candidates gave none."""

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def medians(self) -> dict[str, float]:
        return {name: statistics.median(samples) for name, samples in self.samples.items()}


def measure(row: Row, peers: bool) -> Result:
    """Time every candidate of a row that is at hand."""
    result = Result(row)
    jobs: dict[str, tuple[Job, int]] = {}
    for name, factory in row.candidates.items():
        if name.split()[0] in PEERS and not peers:
            continue
        try:
            job = factory()
            jobs[name] = job, 1 if row.reports_seconds else _calls_per_sample(job)
        except ModuleNotFoundError as error:
            result.missing[name] = f"not installed: {error.name}"
            continue
        except Exception as error:  # a candidate may fail in any way; the others are still measured
            result.missing[name] = f"FAILED: {type(error).__name__}: {error}"
            continue
        result.samples[name] = []
    for _ in range(row.repeats):
        for name, (job, calls) in jobs.items():
            result.samples[name].append(_sample(job, calls, row))
    return result


def _sample(job: Job, calls: int, row: Row) -> float:
    if row.reports_seconds:
        return float(job())  # pyright: ignore[reportArgumentType] (the row says that it returns seconds)
    start = time.perf_counter()
    for _ in range(calls):
        job()
    return (time.perf_counter() - start) / calls / row.per


def _calls_per_sample(job: Job) -> int:
    """Warm the job up, then find how many calls a sample takes."""
    job()
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            job()
        if (time.perf_counter() - start) >= SAMPLE_SECONDS:
            return calls
        calls *= 2


def table(result: Result) -> str:
    """Write a row as text: a line for each candidate, then the goal."""
    lines = [result.row.name]
    medians, show = result.medians, result.row.show
    for name, median in medians.items():
        others = [value for other, value in medians.items() if other.split()[0] != name.split()[0]]
        ratio = f"  {median / min(others):6.2f} x the best other" if others else ""
        lines.append(f"  {name:<24} median {show(median)}  min {show(min(result.samples[name]))}{ratio}")
    lines += [f"  {name:<24} {reason}" for name, reason in result.missing.items()]
    if held := goal_line(result):
        lines.append(f"  {held}")
    return "\n".join(lines)


def goal_line(result: Result) -> str:
    """Say how the goal of a row stands; empty where it has none or a candidate it needs was not measured."""
    goal = result.row.goal
    if goal is None:
        return ""
    try:
        figure = goal.figure(result.medians)
    except KeyError:
        return ""
    word = "holds" if figure < goal.bound else "MISSED"
    return f"goal {word}: {goal.text}: {goal.show(figure)} of {goal.show(goal.bound)}"


def seconds(value: float) -> str:
    """Write a time with a unit that suits it."""
    for unit, size in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:8.3g} {unit}"
    return f"{value / 1e-9:8.3g} ns"


def as_json(result: Result) -> dict[str, object]:
    """Give a row as plain data, times in seconds."""
    return {
        "row": result.row.name,
        "median": result.medians,
        "min": {name: min(samples) for name, samples in result.samples.items()},
        "repeats": result.row.repeats,
        "goal": goal_line(result),
    }
