"""Measure rows beside busy processes, and compare with what the share of the processor alone explains.

python3 dev.py bench --busy                           # a handful of rows beside 0, 2, 6 and 20 busy processes
python3 dev.py bench --busy --rows lstm --loads 0 6   # some of them
python3 dev.py bench --busy --beside torch jax        # other packages under the same load
python3 dev.py bench --busy --beside torch --write    # and docs/busy.md

What the share explains: beside other processes a job of P seconds of processor time that keeps k threads at work gets
k times what one process gets, and takes P over that, yet never less than on the idle machine. What one process gets is
measured at the same time, by processes that do nothing but count.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import facts
from benchmarks.suite import find
from benchmarks.suite.measure import ONE_THREAD, Effort, SideProcess, bring_in_llvm
from benchmarks.suite.report import seconds
from benchmarks.suite.workload import OURS, PEERS, Row

PAGE = Path(__file__).resolve().parents[1] / "docs" / "busy.md"
ROWS = (
    "lstm-1x64", "lstm-32x64", "lstm-gradient-32x64", "lstm-gradient-32x256", "lenet-step", "softmax", "newton",
    "transformer",
)  # fmt: skip
LOADS = 0, 2, 6, 20
EFFORT = Effort(prepare_limit=150.0, sample_limit=60.0, sample_seconds=0.2)
_MOST_SECONDS = 600
"""After so many seconds a busy process ends by itself, whatever becomes of this one."""
_SPIN = f"import time\nend = time.monotonic() + {_MOST_SECONDS}\nwhile time.monotonic() < end: sum(range(20000))"
_COUNT = "import time\na = time.monotonic()\nwhile time.monotonic() - a < 1.0: sum(range(20000))\n\
print(time.process_time() / (time.monotonic() - a))"


@dataclass(frozen=True)
class Taken:
    """What one job took beside a load, in seconds: its first call with an empty cache, the next two, and any later.

    Later ones are those of a second process, which finds in the cache what the first one has made.
    """

    cold: float
    cold_processor: float
    next_two: float
    call: float
    processor: float
    least: float

    def explained(self, idle: "Taken", shares: Sequence[float]) -> tuple[float, float]:
        """Return what a first and a later call would take beside a load, going by what they take on an idle machine."""
        return (
            _explained(min(idle.cold, idle.cold_processor), idle.cold_processor, shares),
            _explained(idle.least, idle.processor, shares),
        )


def _explained(wall: float, processor: float, shares: Sequence[float]) -> float:
    """Return the seconds of a job that takes these without load, where k threads get `shares[k - 1]` CPUs together."""
    threads = max(1, min(len(shares), round(processor / wall + 0.3)))
    return max(wall, processor / shares[threads - 1])


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    running = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def shares(most: int) -> list[float]:
    """Return how many CPUs one process gets at this time, two together, and so on."""
    found: list[float] = []
    for count in range(1, most + 1):
        running = [subprocess.Popen([sys.executable, "-c", _COUNT], stdout=subprocess.PIPE) for _ in range(count)]
        found.append(sum(float(one.communicate()[0]) for one in running))
    return found


def measured(row: Row, side: str, environment: dict[str, str], samples: int) -> Taken | str:
    """Run a side in two processes, the first with an empty cache; return why not where it fails."""
    with tempfile.TemporaryDirectory() as cache:
        kept = environment | {"DY2ST_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "torch")}
        first, later = (SideProcess(row, side, side, kept, EFFORT) for _ in range(2))
        for process, count in ((first, 0), (later, samples)):
            try:
                process.prepare()
                for _ in range(count):
                    process.sample()
            finally:
                process.close()
    ready, taken = first.measured.ready, later.measured.samples
    if ready is None or not taken:
        return first.measured.missing or later.measured.missing or "no sample"
    call, least = statistics.fmean(s.seconds for s in taken), min(s.seconds for s in taken)
    processor = min(s.processor for s in taken)
    return Taken(ready.first, ready.first_processor, ready.next_two, call, processor, least)


def main() -> int:
    """Do what the command line says; the status is 1 when a row of ours failed."""
    options = parsed()
    bring_in_llvm()
    environment = dict(ONE_THREAD) if options.one_thread else {}
    rows, cpus = [find(name) for name in options.rows], len(os.sched_getaffinity(0))
    lines, idle, good = list[list[str]](), dict[tuple[str, str], Taken](), True
    for processes in dict.fromkeys([0, *options.loads]):
        with load(processes):
            for row in rows:
                beside = options.beside if processes in (0, *options.peer_loads) else ()
                for side in (s for s in row.sides if s in (OURS, *beside)):
                    before = shares(cpus)
                    found = measured(row, side, environment, options.samples)
                    if isinstance(found, str):
                        good &= side != OURS
                        print(f"{row.name:<22} {processes:>3}  {side:<12} {found}", flush=True)
                        continue
                    at_hand = [statistics.fmean(pair) for pair in zip(before, shares(cpus), strict=True)]
                    base = idle.setdefault((row.name, side), found)
                    lines.append(line(row, processes, side, found, base, at_hand))
                    print("  ".join(f"{cell:<12}" for cell in lines[-1]), flush=True)
    if options.write:
        PAGE.write_text(page(lines), encoding="utf-8")
    return 0 if good else 1


def line(row: Row, processes: int, side: str, found: Taken, idle: Taken, at_hand: Sequence[float]) -> list[str]:
    """Return the cells of one line of the table."""
    first, call = found.explained(idle, at_hand)
    return [
        row.name, str(processes), side, f"{at_hand[0]:.2f}, {at_hand[-1]:.2f}", seconds(found.cold),
        f"{found.cold / first:.2f}", seconds(found.next_two), seconds(found.call), f"{found.call / call:.2f}",
    ]  # fmt: skip


_TITLES = (
    "row", "busy processes", "side", "CPUs of one process, of as many as CPUs", "first call, nothing cached",
    "over its share", "second and third call", "a call later", "over its share",
)  # fmt: skip


def page(lines: Sequence[Sequence[str]]) -> str:
    """Return the page of a whole measurement."""
    table, where = [_TITLES, ["---"] * len(_TITLES), *lines], ", ".join(f"{k} {v}" for k, v in facts().items())
    return (
        f"# A busy machine\n\nTaken {time.strftime('%Y-%m-%d')}: {where}.\n\n"
        "`python3 dev.py bench --busy --write` makes this page: each row runs in a process of its own beside processes "
        'that\ndo nothing but count. "Over its share" is the time over what the share of the processor alone explains: '
        "the processor time\nof the idle machine, over what as many counting processes as the job has threads got just "
        "before and after.\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"
    )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), metavar="NAME", help="names of rows")
    parser.add_argument("--loads", nargs="+", type=int, default=list(LOADS), help="how many busy processes")
    parser.add_argument("--beside", nargs="+", default=[], choices=PEERS, help="measure these packages too")
    parser.add_argument("--peer-loads", nargs="+", type=int, default=list(LOADS), help="beside how many for the others")
    parser.add_argument("--samples", type=int, default=5, help="samples of a row beside a load")
    parser.add_argument("--one-thread", action="store_true", help="one thread a process")
    parser.add_argument("--write", action="store_true", help="write docs/busy.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
