"""The tables of rows, by family; `ROWS` are all of them, with the rows that follow from them."""

import dy2st
from tests.surface import is_here, tier
from tests.values.derived import derived_rows
from tests.values.tables import (
    activations,
    comparison,
    creation,
    fourier,
    indexing,
    layers,
    losses,
    manipulation,
    maths,
    matrices,
    options,
    reductions,
    sampling,
    signals,
    windows,
)

_TABLES = (
    maths, comparison, reductions, creation, manipulation, indexing, matrices, fourier, activations, losses, windows,
    layers, sampling, signals, options,
)  # fmt: skip
_WRITTEN = [row for table in _TABLES for row in table.ROWS]
NAMES = [name.path.removeprefix("paddle.") for name in (*tier(1), *tier(2)) if is_here(name.path)]
ROWS = [*_WRITTEN, *derived_rows(_WRITTEN, NAMES, dy2st)]
