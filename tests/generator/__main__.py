"""Run random programs in every way, and print what differs: shortest first, made small on request.

    python -m tests.generator [--count N] [--seed N] [--every-way] [--shrink K] [--jobs N]
    python -m tests.generator --only N [--way WAY]

`--seed` may be a commit's name: its first digits are the number. Exit status 1 where a program differs, crashes,
does not end, where over 5 % are refused, or where an op was not seen at a position or a statement not in a way
(from 3,000 programs on).
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.generator.coverage import POSITIONS, Seen, holes, holes_of_kinds
from tests.generator.shrinking import shrink
from tests.generator.statements import A_SEED, program_of
from tests.generator.ways import COLUMNS, LATER, WAYS, Way, environment, ways_of
from tests.generator.worker import CALLED

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHUNK = 100
FAULTS = ("differs", "crashed", "late", "died")
ENOUGH = 3_000
"""From so many programs on, an op that was not seen at a position, or a statement in a way, is an error."""
REFUSED = 0.05
"""The largest share of programs that may be refused."""


@dataclass
class Tally:
    """What came of all programs."""

    counts: Counter[str] = field(default_factory=Counter)
    seen: Seen = field(default_factory=Counter)
    ran: Seen = field(default_factory=Counter)
    faults: list[dict[str, Any]] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, found: dict[str, Any], way: Way) -> None:
        """Note what came of one program."""
        with self.lock:
            self.counts[found["kind"]] += 1
            if found["kind"] in FAULTS:
                self.faults.append({**found, "way": way.name})
                print(f"{found['kind']}: --only {found['seed']} --way {way.name}", flush=True)
            if found["kind"] == "refused":
                self.refusals[found["why"].split("\n")[0]] += 1

    def count(self, found: dict[str, Any], way: Way) -> None:
        """Note which ops and which statements the programs of a process had."""
        with self.lock:
            self.seen.update({(name, place): count for name, place, count in found["seen"]})
            for kind, how, count in found["ran"]:
                if how != LATER or way.name != "interpreter":
                    self.ran.update({(kind, column): count for column in (way.columns if how == CALLED else (how,))})


def run_chunk(first: int, end: int, ways: list[Way], tally: Tally, folder: Path) -> None:
    """Run programs in one process for each way, whose code is kept in the folder."""
    for way in ways:
        run_process(first, end, way, str(folder / (way.after or way.name)), tally)


def run_process(first: int, end: int, way: Way, cache: str, tally: Tally) -> None:
    """Run a range of programs; where one ends its process, note that and go on behind it."""
    while first < end:
        command = [sys.executable, "-m", "tests.generator.worker", str(first), str(end)]
        with subprocess.Popen(
            command, cwd=ROOT, env=environment(way, cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            begun = None
            output, errors = process.communicate(timeout=60 * (end - first))
        for line in output.splitlines():
            found = json.loads(line)
            if "kind" in found:
                tally.add(found, way)
                begun = None
            elif "seen" in found:
                tally.count(found, way)
                return
            else:
                begun = found["seed"]
        if begun is None:
            raise RuntimeError(f"a process ended before its first program:\n{errors[-2000:]}")
        text = f"the process ended with {process.returncode}\n{errors[-2000:]}"
        tally.add({"kind": "died", "seed": begun, "text": text}, way)
        first = begun + 1


def table(title: str, seen: Seen, columns: tuple[str, ...]) -> str:
    """Say how often each name was seen in each column."""
    names = sorted({name for name, _ in seen})
    lines = [f"{title:24}" + "".join(f"{place:>12}" for place in columns)]
    lines += [f"{name:24}" + "".join(f"{seen[name, place]:>12}" for place in columns) for name in names]
    return "\n".join(lines)


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.generator", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=ENOUGH)
    parser.add_argument("--seed", default="0", help="a number, or the name of a commit")
    parser.add_argument("--every-way", action="store_true", help="each program in all ways; else by turns")
    parser.add_argument("--shrink", type=int, default=3, metavar="K", help="make so many that differ small")
    parser.add_argument("--write", action="store_true", help="put those made small into tests/generator/found/")
    parser.add_argument("--only", type=int, metavar="N", help="run the program of that number alone, and make it small")
    parser.add_argument("--way", default="auto", choices=list(WAYS), help="in which way to run it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--coverage", action="store_true", help="print what stood where, and ran how")
    options = parser.parse_args()
    if options.only is not None:
        print(program_of(options.only), "", shrink(options.only, WAYS[options.way]) or "as eager mode", sep="\n")
        return 0
    print(f"{options.count} programs of seed {options.seed}", flush=True)
    start = (int(options.seed) if options.seed.isdigit() else int(options.seed[:7], 16)) * A_SEED
    tally = Tally()
    with ThreadPoolExecutor(options.jobs) as pool, tempfile.TemporaryDirectory(prefix="dy2st-programs-") as folder:
        runs = []
        for k, first in enumerate(range(start, start + options.count, CHUNK)):
            end, ways = min(first + CHUNK, start + options.count), ways_of(k, every=options.every_way)
            runs.append(pool.submit(run_chunk, first, end, ways, tally, Path(folder)))
        for run in runs:
            run.result()
    return report(tally, options)


def write(seed: int, told: str) -> None:
    """Put a program that was made small where the suite runs it; `told` says above and below how it differs."""
    lines = told[told.index("def program(") :].splitlines()
    body = itertools.takewhile(lambda line: line.startswith(("def program(", " ")), lines)
    (HERE / "found" / f"seed_{seed}.txt").write_text("\n".join([f"# seed {seed}", *body, ""]))


def report(tally: Tally, options: argparse.Namespace) -> int:
    """Print what was found; return the exit status."""
    print(dict(tally.counts))
    for fault in sorted(tally.faults, key=lambda one: len(one["text"]))[: options.shrink]:
        text = shrink(fault["seed"], WAYS[fault["way"]]) if fault["kind"] != "late" else fault["text"]
        print(f"\n== program {fault['seed']} {fault['kind']} ({fault['way']})\n{text or fault['text']}")
        if options.write and "def program(" in text:
            write(fault["seed"], text)
    for why, count in tally.refusals.most_common(10):
        print(f"refused {count}: {why}")
    if options.coverage:
        print(table("op", tally.seen, ("anywhere", *POSITIONS)))
        print(table("statement", tally.ran, COLUMNS))
    missing = [*holes(tally.seen), *holes_of_kinds(tally.ran)]
    print(f"positions and ways that no program had: {', '.join(missing) or 'none'}")
    if options.count < ENOUGH:
        missing = []
    too_many = tally.counts["refused"] > REFUSED * sum(tally.counts.values())
    return 1 if tally.faults or missing or too_many else 0


if __name__ == "__main__":
    sys.exit(main())
