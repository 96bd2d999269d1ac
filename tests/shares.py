"""What `--fast` runs: each test, but of one with many cases a fixed share; slow and soak tests not at all.

Most of the suite is a product of ops, dtypes, kinds of CPU and ways to call. A change that breaks one case mostly
breaks others of the same test too, so a few of them tell nearly as much. Which ones depends on their ids alone: the
share is the same in each run, in each process of a run, and for a test that is run by itself.
"""

import zlib
from collections.abc import Iterable, Sequence
from math import ceil
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

ONE_OF = 16
"""So many cases are there for each that is in the share; at least one is."""
LEFT_OUT = ("slow", "soak")


def share(ids: Iterable[str]) -> set[str]:
    """Return the ids of the cases of one test that are run."""
    by_chance = sorted(ids, key=lambda one: (zlib.crc32(one.encode()), one))
    return set(by_chance[: ceil(len(by_chance) / ONE_OF)])


def examples(whole: int) -> int:
    """Return how many examples, forks or turns a test makes that makes so many in a whole run: fewer in `fast`."""
    return max(1, whole * settings.default.max_examples // settings.get_profile("default").max_examples)


def is_fast() -> bool:
    """Say whether a share is run."""
    return examples(100) < 100


def some(values: Sequence[T]) -> Sequence[T]:
    """Return what a test goes through that goes through all of these in a whole run: in `fast` every third."""
    return values[::3] if is_fast() else values


def order(whole: int) -> int:
    """Return to which order a test looks at derivatives that goes so far in a whole run: in `fast` to the second."""
    return min(whole, 2) if is_fast() else whole


def divide(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that are run, and those that are left out."""
    quick = [item for item in items if not any(item.get_closest_marker(name) for name in LEFT_OUT)]
    cases: dict[str, list[str]] = {}
    for item in quick:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    run = {chosen for ids in cases.values() for chosen in share(ids)} & {item.nodeid for item in quick}
    return [item for item in items if item.nodeid in run], [item for item in items if item.nodeid not in run]
