"""Change one rule at a time, and tell which changes no test notices.

    python -m tests.mutation --watch                   # note which test runs which line: minutes, once
    python -m tests.mutation [--count N] [--seed N] [--only dy2st/passes] [--stages lines cases programs]
    python -m tests.mutation --again               # those that survivors.md has open

Exit status 1 where less than 95 % are noticed, or listed in survivors.md with the reason why they cannot be.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mutation.judging import STAGES, Judge, Map
from tests.mutation.mutants import Mutant, named, one_of
from tests.mutation.watching import ROOT

PLACES = {
    "autodiff": ("autodiff",),
    "passes": ("passes",),
    "batching": ("batching",),
    "tracer": ("runtime", "jit", "transformers"),
    "backend": ("runtime/backends/cpu",),
    "ops": ("ops",),
    "ir": ("ir",),
}
"""Where changes are made, as many in each; a file is of the last place that has it."""
ESTIMATES = ("runtime/interpreter/cost_model.py", "runtime/backends/cpu/ops/control/loop_cost.py")
"""Files that only guess how long something takes: whatever they answer, every result is the same."""
WATCHED = ROOT / ".pytest_cache" / "d" / "dy2st-lines.json"
LISTED = Path(__file__).parent / "survivors.md"
GOAL = 0.95


def main() -> int:
    """Make changes and judge them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a folder or file of the package")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--seconds", type=float, default=20.0, help="of the CPU for the tests of one stage")
    parser.add_argument("--again", action="store_true", help="judge what survivors.md has open")
    parser.add_argument("--watch", action="store_true", help="note anew which test runs which line")
    options = parser.parse_args()
    if options.watch or not WATCHED.exists():
        watch()
    if options.watch:
        return 0
    judged: list[tuple[str, str, str]] = []
    listed = LISTED.read_text()

    def tell(path: Path, mutant: Mutant, by: str) -> None:
        by = by or ("listed" if f"`{mutant.name(path)}`" in listed else "")
        judged.append((place(path), by, f"{mutant.name(path)}    (line {mutant.line})"))
        print(f"{time.strftime('%H:%M:%S')} {by or 'SURVIVED'} <- {judged[-1][2]}", flush=True)

    changes = still_open(listed) if options.again else choose(options.count, options.seed, options.only)
    judge = Judge(Map(WATCHED), changes, tell, options.stages, options.seconds)
    pytest.main(["-q", "-s", str(ROOT / "tests")], plugins=[judge])
    return report(judged)


def watch() -> None:
    """Run the tests of `--fast` once, and note which lines each of them runs."""
    environment = {**os.environ, "WATCHED_LINES": str(WATCHED), "PYTHONPATH": str(ROOT)}
    arguments = ["--fast", "-q", "-p", "tests.mutation.watching"]
    subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=environment, check=True)


def report(judged: list[tuple[str, str, str]]) -> int:
    """Print how many changes were noticed, by place, and which were not: those that are listed change nothing."""
    for name in (*PLACES, ""):
        at = [by for where, by, _ in judged if name in ("", where)]
        listed, missed = at.count("listed"), at.count("")
        if at:
            print(f"{name or 'all':10} {len(at) - listed - missed:4} of {len(at):4} noticed, {listed} listed")
    print("\n".join(["not noticed:", *(told for _, by, told in judged if not by)]))
    share = sum(bool(by) for _, by, _ in judged) / max(1, len(judged))
    return 0 if share >= GOAL else 1


def choose(count: int, seed: int, only: str) -> list[tuple[Path, Mutant]]:
    """Return changes at random: a place by turns, a file of it by its length, then one of its changes."""
    r = random.Random(seed)
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / "dy2st").rglob("*.py"))]
    by_place = {name: [p for p in paths if place(p) == name and str(p).startswith(only)] for name in PLACES}
    places = [name for name, found in by_place.items() if found]
    sources = {path: (ROOT / path).read_text() for name in places for path in by_place[name]}
    chosen: dict[tuple[Path, str], Mutant] = {}
    for turn in range(20 * count):
        if len(chosen) == count:
            break
        files = by_place[places[turn % len(places)]]
        path = r.choices(files, weights=[len(sources[path]) for path in files])[0]
        mutant = one_of(sources[path], r.randrange)
        if mutant is not None:
            chosen[path, mutant.source] = mutant
    return [(path, mutant) for (path, _), mutant in chosen.items()]


def still_open(listed: str) -> list[tuple[Path, Mutant]]:
    """Return the changes in the last part of survivors.md, as far as there still is such code."""
    names = listed.rpartition("```text\n")[2].partition("```")[0].splitlines()
    paths = [Path(name.partition(" ")[0]) for name in names]
    found = [(p, named((ROOT / p).read_text(), p, name)) for p, name in zip(paths, names, strict=True)]
    return [(path, mutant) for path, mutant in found if mutant is not None]


def place(path: Path) -> str:
    """Return the name of the place that a file is of; empty for others, and for `ESTIMATES`."""
    if "/".join(path.parts[1:]) in ESTIMATES:
        return ""
    folder = "/".join(path.parts[1:-1]) + "/"
    return next((name for name, tops in reversed(PLACES.items()) if any(folder.startswith(f"{t}/") for t in tops)), "")


if __name__ == "__main__":
    sys.exit(main())
