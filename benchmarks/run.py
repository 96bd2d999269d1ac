"""Measure the table of workloads beside other packages, or alone.

python3 dev.py bench                                 # every row, dy2st alone
python3 dev.py bench --rows lstm mlp --quick         # rows whose names begin so, at a tenth of the effort
python3 dev.py bench --rows newton --beside jax      # one row, beside one package
python3 dev.py bench --peers                         # every row beside every package that is installed
python3 dev.py bench --peers --missing               # only rows without a result: a run that was cut off goes on
python3 dev.py bench --peers --growth --write        # all there is, then docs/performance.md

Results are kept row by row in a JSON file, from which --write makes the page. --write alone measures
nothing, --growth alone no rows. All rows beside all peers take about 40 minutes.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from benchmarks.suite import ceilings, matching
from benchmarks.suite.growth import LINES, grown
from benchmarks.suite.measure import QUICK, Effort, measure
from benchmarks.suite.picture import svg
from benchmarks.suite.report import page, ratios
from benchmarks.suite.report_forms import seconds
from benchmarks.suite.workload import ABSENT, OURS, PEERS, Row

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dy2st" / "benchmarks.json"


def main() -> int:
    """Do what the command line says; the status is 1 when a side failed or differs."""
    options = parsed()
    try:
        rows = matching(options.rows)
    except KeyError as error:
        sys.exit(error.args[0])
    kept: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {"rows": {}}
    if options.missing:
        rows = [row for row in rows if row.name not in kept["rows"]]
    named = options.rows or options.peers or options.beside or options.missing
    good = measure_rows(rows, options, kept) if named or not (options.growth or options.write) else True
    if options.growth:
        for line in LINES:
            result = grown(line)
            print(f"{line.title}: exponent {result['exponent']}", flush=True)
            kept.setdefault("growth", {})[line.name] = result
            keep(options.results, kept)
    if options.write:
        (DOCS / "performance.md").write_text(page(kept), encoding="utf-8")
        (DOCS / "performance.svg").write_text(svg(ratios(kept)), encoding="utf-8")
    return 0 if good else 1


def measure_rows(rows: list[Row], options: argparse.Namespace, kept: dict[str, Any]) -> bool:
    """Measure rows and keep each one's result; say whether no side failed or differs."""
    packages = (OURS, *(PEERS if options.peers else ()), *options.beside)
    good = True
    kept["ceilings"] = kept.get("ceilings") or ceilings.measured()
    for row in rows:
        result = measure(row, packages, QUICK if options.quick else Effort())
        print(text(row, result), flush=True)
        when = {"taken": time.strftime("%Y-%m-%d"), "machine": facts(), "load": round(os.getloadavg()[0], 1)}
        kept["rows"][row.name] = when | result
        keep(options.results, kept)
        good &= not any(side.get("missing", "").startswith(("FAILED", "DIFFERS")) for side in result["sides"].values())
    return good


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", nargs="+", default=[], metavar="NAME", help="beginnings of names of rows; all when none is given"
    )
    parser.add_argument("--peers", action="store_true", help=f"measure {', '.join(PEERS)} too, where installed")
    parser.add_argument("--beside", nargs="+", default=[], choices=PEERS, help="measure these packages too")
    parser.add_argument("--quick", action="store_true", help="take fewer and shorter samples")
    parser.add_argument("--missing", action="store_true", help="measure only rows that the results lack")
    parser.add_argument("--growth", action="store_true", help="measure how time grows with sizes, too")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md from all results")
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
    absent = {side["missing"] for side in result["sides"].values() if side.get("missing", "").startswith(ABSENT)}
    for label, side in result["sides"].items():
        if "missing" in side:
            lines += [] if side["missing"] in absent else [f"  {label:<18} {side['missing']}"]
            continue
        figures = {"median": "median", "min": "min", "cpu": "processor", "first call": "first", "cold": "cold"}
        shown = [f"{title} {seconds(side[key])}" for title, key in figures.items() if key in side]
        lines.append(f"  {label:<18} {'  '.join(shown)}")
    return "\n".join([*lines, *(f"  {reason}" for reason in sorted(absent))])


if __name__ == "__main__":
    sys.exit(main())
