"""Which public names have their values tested: by a row of a table, or by a test marked `proves`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.values.tables import ROWS

TESTS = Path(__file__).parents[1]


@cache
def proven_names() -> frozenset[str]:
    """Return the names, from `paddle.` on, whose values a row or a marked test compares."""
    return frozenset({f"paddle.{row.name}" for row in ROWS} | set(_marked()))


def _marked() -> Iterator[str]:
    """Yield the names in `@pytest.mark.proves("nn.Linear Tensor.add_")` all over the tests."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.proves(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves":
                for argument in node.args:
                    yield from (f"paddle.{name}" for name in str(ast.literal_eval(argument)).split())
