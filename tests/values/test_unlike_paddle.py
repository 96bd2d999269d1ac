"""docs/peers/paddle.md lists what differs from Paddle, as the table of reasons has it."""

from pathlib import Path

import pytest

from tests.values.tables import ROWS
from tests.values.unlike_paddle import REASONS, reason

PAGE = (Path(__file__).parents[2] / "docs" / "peers" / "paddle.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REASONS)
def test_a_difference_is_on_the_page(name: str) -> None:
    assert f"| `{name}` | {REASONS[name]} |" in PAGE


def test_every_reason_belongs_to_a_row() -> None:
    differing = {row.name.split(".")[-1].removesuffix("_") for row in ROWS if reason(row)}
    assert differing == set(REASONS)
