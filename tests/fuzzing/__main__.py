"""Forges Programs, loads and runs them natively between forbidden pages and beside it, and counts what happened.

    python -m tests.fuzzing --count 50000 --seed 1      prints a line a fault; exit status 1 where there is one
    python -m tests.fuzzing --seed 1 --only 1234        does one again, in this process' child, and shows the Program

A fault is a process that a signal ended, an exception that is not documented, an error text of over 1000 letters, or a
result that the interpreter does not give.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.fuzzing.running import sweep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count) if options.only is None else [options.only]
    counts: Counter[str] = Counter()
    faults = 0
    for number, answer in sweep(options.seed, numbers):
        counts[answer if not answer.startswith("FAULT") else "FAULT"] += 1
        if answer.startswith("FAULT"):
            faults += 1
            print(f"{number}: {answer}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in counts.most_common()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
