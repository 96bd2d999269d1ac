"""Measure the table of workloads beside other packages, or alone.

python3 dev.py bench                                 # every row, dy2st alone
python3 dev.py bench --rows lstm mlp --quick         # rows whose names begin so, at a tenth of the effort
python3 dev.py bench --rows newton --beside jax      # one row, beside one package
python3 dev.py bench --peers                         # every row beside every package that is installed
python3 dev.py bench --peers --missing --write       # only rows without a result; then docs/performance.md

Results are kept row by row in a JSON file, which --write reads: a run that was cut off goes on with --missing.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from benchmarks.suite import matching
from benchmarks.suite.measure import QUICK, Effort, measure
from benchmarks.suite.workload import OURS, PEERS, Row

RESULTS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dy2st" / "benchmarks.json"


def main() -> int:
    """Measure the named rows; the status is 1 when a side failed or differs."""
    options = parsed()
    try:
        rows = matching(options.rows)
    except KeyError as error:
        sys.exit(error.args[0])
    kept: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {"rows": {}}
    if options.missing:
        rows = [row for row in rows if row.name not in kept["rows"]]
    packages = (OURS, *(PEERS if options.peers else ()), *options.beside)
    failed = False
    for row in rows:
        result = measure(row, packages, QUICK if options.quick else Effort())
        print(text(row, result), flush=True)
        kept["rows"][row.name] = {"taken": time.strftime("%Y-%m-%d"), "machine": facts(), **result}
        keep(options.results, kept)
        failed |= any(side.get("missing", "").startswith(("FAILED", "DIFFERS")) for side in result["sides"].values())
    return 1 if failed else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="NAME", help="beginnings of names of rows; all when none is given"
    )
    parser.add_argument("--peers", action="store_true", help=f"measure {', '.join(PEERS)} too, where installed")
    parser.add_argument("--beside", nargs="+", default=[], choices=PEERS, help="measure these packages too")
    parser.add_argument("--quick", action="store_true", help="take fewer and shorter samples")
    parser.add_argument("--missing", action="store_true", help="measure only rows that the results lack")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"where results are kept ({RESULTS})")
    return parser.parse_args()


def keep(path: Path, results: dict[str, Any]) -> None:
    """Write the results so that a cut leaves the earlier ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def text(row: Row, result: dict[str, Any]) -> str:
    """Write a row as lines, one for each side."""
    lines = [f"{row.name}: {row.title}"]
    for label, side in result["sides"].items():
        if "missing" in side:
            lines.append(f"  {label:<18} {side['missing']}")
            continue
        figures = {"median": "median", "min": "min", "cpu": "processor", "first call": "first", "cold": "cold"}
        shown = [f"{title} {seconds(side[key])}" for title, key in figures.items() if key in side]
        lines.append(f"  {label:<18} {'  '.join(shown)}")
    return "\n".join(lines)


def seconds(value: float) -> str:
    """Write a time with a unit that suits it."""
    for unit, size in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:6.3g} {unit}"
    return f"{value / 1e-9:6.3g} ns"


if __name__ == "__main__":
    sys.exit(main())
