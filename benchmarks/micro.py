"""Measure single parts (a call, a small op, a conversion, a gradient), on demand beside torch, jax and paddle.

python3 dev.py bench --micro                      # every file of rows, without peers
python3 dev.py bench --micro --peers small_op     # one file, with the peers that are installed
python3 dev.py bench --micro --save               # also write benchmarks/results/<file>.json
"""

import argparse
import importlib
import json
import sys
from pathlib import Path

from harness import PEERS, Result, as_json, measure, table

from benchmarks.machine import facts

HERE = Path(__file__).resolve().parent
FILES = (
    "import_time",
    "small_op",
    "interpreter",
    "cached_call",
    "conversion",
    "train_step",
    "gradients",
    "second_order",
    "loop_memory",
)


def main() -> int:
    """Measure the rows of the named files and print them; the status is 1 when a candidate failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=FILES, help=f"of {', '.join(FILES)}; all when none is named")
    parser.add_argument("--peers", action="store_true", help=f"measure {', '.join(PEERS)} too, where installed")
    parser.add_argument("--save", action="store_true", help="write the results as JSON to benchmarks/results/")
    options = parser.parse_args()
    if unknown := [name for name in options.files if name not in FILES]:
        parser.error(f"no such file of rows: {', '.join(unknown)}; there are {', '.join(FILES)}")
    print(" ".join(f"{key}: {value}" for key, value in facts().items()))
    failed = False
    for name in options.files:
        print(f"\n== {name}")
        results: list[Result] = []
        for row in importlib.import_module(name).ROWS:
            results.append(measure(row, options.peers))
            print(table(results[-1]), flush=True)
            failed |= any(reason.startswith("FAILED") for reason in results[-1].missing.values())
        if options.save:
            save(name, results)
    return 1 if failed else 0


def save(name: str, results: list[Result]) -> None:
    """Write the results of one file of rows; git keeps the earlier ones."""
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    content = {"machine": facts(), "rows": [as_json(result) for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
