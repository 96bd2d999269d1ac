"""What was refused stays refused: Programs that the fuzzing made, one for each reason that each op was refused for.

python -m tests.ir.checker.test_refused --count 15000 --seed 3     writes them anew, after a change of the format
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any

from dy2st.errors import FileFormatError
from dy2st.ir.serialize import from_json

KEPT = Path(__file__).with_name("refused.jsonl.gz")
MOST = 2500
"""How many letters a Program that is kept may have."""


def test_all_that_was_refused_is_refused_for_the_same_op() -> None:
    with gzip.open(KEPT, "rt") as lines:
        told = [json.loads(line) for line in lines]
    assert len(told) > 900
    taken: list[Any] = []
    for subject, data in told:
        try:
            from_json(data, {})
            taken.append(data)
        except FileFormatError as error:
            if _reason(error).partition(":")[0] != subject:
                taken.append((subject, str(error)))
    assert taken == []


def _reason(error: FileFormatError) -> str:
    """Return what an error says without the types and the numbers in it; nothing where it is about the file's form."""
    found = re.search(r"breaks a rule: (.*?)(; in function|$)", str(error))
    text = re.sub(r"'[^']*'", "", found[1] if found else "")
    text = re.sub(r"(declared|is|not|like) (list|tuple|variant|u?int|b?float|complex|bool|none|unset)\b.*", r"\1", text)
    return re.sub(r"[^A-Za-z_: ]+", "", text)


def _write(seed: int, count: int) -> None:
    from tests.fuzzing.corpus import entries
    from tests.fuzzing.victim import changed

    corpus, smallest = entries(), dict[str, str]()
    for number in range(count):
        _, data, arrays, _ = changed(corpus, seed, number)
        try:
            from_json(data, arrays)
        except FileFormatError as error:
            reason, text = _reason(error), json.dumps(data, separators=(",", ":"))
            if reason and not arrays and len(text) < len(smallest.get(reason, "x" * MOST)):
                smallest[reason] = text
    with gzip.GzipFile(KEPT, "wb", mtime=0) as out:
        for reason, text in sorted(smallest.items()):
            out.write(f"[{json.dumps(reason.partition(':')[0])},{text}]\n".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.ir.checker.test_refused")
    parser.add_argument("--count", type=int, default=15000)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    _write(options.seed, options.count)
