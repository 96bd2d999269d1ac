"""Change one rule at a time in a copy of the checkout, and tell which changes no test notices.

    python -m tests.mutation [--count N] [--seed N] [--only dy2st/passes] [--stages near folder fast programs]

Exit status 1 where less than 95 % are noticed.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.mutation.judging import SECONDS, judge
from tests.mutation.mutants import Mutant, one_of

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("passes", "autodiff", "batching", "transformers", "runtime", "jit", "ops")
COPIED = ("dy2st", "tests", "examples", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md", "dev.py",
          "requirements.lock")  # fmt: skip
GOAL = 0.95


def main() -> int:
    """Make changes and judge them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a folder or file of the package")
    parser.add_argument("--stages", nargs="+", choices=list(SECONDS), default=list(SECONDS))
    options = parser.parse_args()
    chosen = choose(options.count, options.seed, options.only)
    noticed: Counter[str] = Counter()
    survivors: list[str] = []
    with tempfile.TemporaryDirectory(prefix="dy2st-mutation-") as folder:
        root = copy_of(Path(folder))
        for path, mutant in chosen:
            stage = judge_one(root, path, mutant, tuple(options.stages))
            told = f"{path}:{mutant.line} {mutant.kind}: {mutant.before}  ->  {mutant.after}"
            print(f"{stage or 'SURVIVED':9} {told}", flush=True)
            noticed[stage] += 1
            survivors += [] if stage else [told]
    share = 1 - len(survivors) / max(1, len(chosen))
    print(f"{len(chosen)} changes, {share:.1%} noticed: {dict(noticed)}")
    print("\n".join(["not noticed:", *survivors] if survivors else []))
    return 0 if share >= GOAL else 1


def choose(count: int, seed: int, only: str) -> list[tuple[Path, Mutant]]:
    """Return changes at random: a file by its number of lines, then one of its changes."""
    r = random.Random(seed)
    paths = [path.relative_to(ROOT) for place in PLACES for path in sorted((ROOT / "dy2st" / place).rglob("*.py"))]
    paths = [path for path in paths if str(path).startswith(only)]
    sources = {path: (ROOT / path).read_text() for path in paths}
    drawn = r.choices(paths, weights=[len(text) for text in sources.values()], k=count)
    found = ((path, one_of(sources[path], r.randrange)) for path in drawn)
    return [(path, mutant) for path, mutant in found if mutant is not None]


def copy_of(folder: Path) -> Path:
    """Return a copy of what the tests need of the checkout."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def judge_one(root: Path, path: Path, mutant: Mutant, stages: tuple[str, ...]) -> str:
    """Return the stage at which a change is noticed; the copy is as before afterwards."""
    original = (root / path).read_text()
    (root / path).write_text(mutant.source)
    try:
        return judge(root, path, stages=stages)
    finally:
        (root / path).write_text(original)


if __name__ == "__main__":
    sys.exit(main())
