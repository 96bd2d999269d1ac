"""Every row of the tables: eagerly in two precisions, on strided memory, and recorded into a Program."""

from collections import defaultdict

import pytest

import dy2st as paddle
from tests.values.recording import recorded
from tests.values.row import Row
from tests.values.running import call, check, operands, shown
from tests.values.tables import ROWS

BY_NAME: dict[str, list[Row]] = defaultdict(list)
for _row in ROWS:
    BY_NAME[_row.name].append(_row)


@pytest.mark.parametrize("name", BY_NAME)
def test_calls_give_what_the_rows_say(name: str) -> None:
    for row in BY_NAME[name]:
        for variant in row.variants:
            try:
                check_row(row, variant)
            except Exception as error:
                error.add_note(f"in the row {row.name}{shown(row)}, {variant}")
                raise


def check_row(row: Row, variant: str) -> None:
    lower = variant == "float32"
    if variant == "program":
        got = recorded(row)
    else:
        got = call(row, operands(row, variant, paddle), paddle, lower)
    check(got, row.wanted(), row.tolerance[lower], lower)
