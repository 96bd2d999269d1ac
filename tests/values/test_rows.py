"""Every row of the tables: eagerly in two precisions, on strided memory, and recorded into a Program."""

import pytest

import dy2st as paddle
from tests.values.recording import recorded
from tests.values.row import Row
from tests.values.running import call, check, operands
from tests.values.tables import ROWS


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_call_gives_what_its_row_says(row: Row) -> None:
    want = row.wanted()
    for variant in row.variants:
        lower = variant == "float32"
        if variant == "program":
            got = recorded(row)
        else:
            got = call(row, operands(row, variant, paddle), paddle, lower)
        check(got, want, row.tolerance[lower], lower)
