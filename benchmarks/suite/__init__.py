"""The table of workloads that dy2st is measured by, beside other packages."""

from benchmarks.suite import (
    decoding,
    derivatives,
    loops,
    lorenz,
    many_batches,
    memory_bound,
    pictures,
    policy,
    recurrent,
    resnet,
    sequences,
    training,
    transformer,
    tutorials,
)
from benchmarks.suite.workload import Row

FAMILIES = (
    training,
    loops,
    lorenz,
    pictures,
    policy,
    recurrent,
    memory_bound,
    transformer,
    decoding,
    derivatives,
    many_batches,
    resnet,
    sequences,
    tutorials,
)
ROWS: tuple[Row, ...] = tuple(row for family in FAMILIES for row in family.ROWS)


def find(name: str) -> Row:
    """Return the row of that name."""
    return next(row for row in ROWS if row.name == name)


def matching(names: list[str]) -> list[Row]:
    """Return the rows whose names begin with one of these, all of them where none is given; KeyError for a stranger."""
    if strangers := [name for name in names if not any(row.name.startswith(name) for row in ROWS)]:
        raise KeyError(f"no such row: {', '.join(strangers)}; there are {', '.join(row.name for row in ROWS)}")
    return [row for row in ROWS if not names or row.name.startswith(tuple(names))]
