"""Run the rows of tests/values through Paddle itself, and report where Paddle gives something else.

It needs an environment of its own, since Paddle asks for an older NumPy:

    python -m venv /tmp/peer && /tmp/peer/bin/pip install paddlepaddle "numpy==2.2.*" scipy
    PYTHONPATH=. /tmp/peer/bin/python tests/peers/paddle_values.py [--only NAME] [--all]

tests/values/unlike_paddle.py gives the reason for each name that is known to differ. Where Paddle raises, it refuses
what dy2st takes (float64, integers, an empty tensor): `--all` lists these as well.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter

import paddle

from tests.values.row import Row
from tests.values.running import call, check, operands, shown
from tests.values.tables import ROWS
from tests.values.unlike_paddle import reason

ABORT = ("nn.functional.nll_loss", "nn.NLLLoss")
"""Paddle's kernel writes out of bounds for labels of -100, and the process ends later."""
SAME, DIFFERS, RAISES = "same", "differs", "raises"


def main() -> int:
    """Run the rows; return 1 where one differs without a reason."""
    options = _options()
    found: Counter[str] = Counter()
    unexplained = 0
    for row in ROWS:
        if options.only not in row.name or row.name in ABORT:
            continue
        for variant in ("float64", "float32"):
            if variant not in row.variants:
                continue
            outcome, why = compared(row, variant)
            found[outcome] += 1
            odd = outcome == DIFFERS and not reason(row)
            unexplained += odd
            if odd or (options.all and outcome == RAISES):
                print(f"{outcome:8} {row.name} {variant} {shown(row)}: {why}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(found.items())), f"({unexplained} unexplained)")
    return 1 if unexplained else 0


def compared(row: Row, variant: str) -> tuple[str, str]:
    """Run one row through Paddle; return how it went, and what was seen."""
    lower = variant == "float32"
    try:
        got = call(row, operands(row, variant, paddle), paddle, lower)
    except Exception as error:  # whatever Paddle raises is the answer
        return RAISES, f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:120] if str(error) else ''}"
    try:
        check(got, row.wanted(), max(row.tolerance[lower], 1e-7), lower)
    except AssertionError as error:
        return DIFFERS, " | ".join(line for line in str(error).splitlines() if line.strip())[:300]
    return SAME, ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", metavar="NAME", help="names that hold this text")
    parser.add_argument("--all", action="store_true", help="list what Paddle refuses too")
    return parser.parse_args()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
