"""Spans of axes that brackets name: what they hold, and what they cover together, for every extent."""

import itertools

import numpy as np
import pytest

from dy2st.ops.core.index_spec import key
from dy2st.ops.core.regions import cover, holds, region_of
from dy2st.shapes import symbol

PARTS = [
    *(("int", at) for at in (0, 1, -1, -3)),
    *(("slice", a, b, None) for a, b in itertools.product((None, 0, 2, -2, 9), (None, 0, 3, -1, -9))),
]
MANY = symbol("N")


def named(extent: int, part: tuple) -> set[int] | None:
    """Return which of so many elements a part names; None where it is an IndexError."""
    try:
        return {*np.arange(extent)[key((part,), ())].reshape(-1).tolist()}
    except IndexError:
        return None


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_what_a_region_holds_it_holds_for_every_extent(part: tuple, known: bool) -> None:
    found = 0
    for other, extent in itertools.product(PARTS, range(7)):
        shape = (extent if known else MANY,)
        large, small = region_of(shape, (part,)), region_of(shape, (other,))
        assert large is not None
        assert small is not None
        outer, inner = named(extent, part), named(extent, other)
        if outer is not None and inner is not None and holds(large, small):
            assert inner <= outer
            found += 1
    assert found


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_what_covers_an_axis_covers_it_for_every_extent(count: int, known: bool) -> None:
    rng, found = np.random.default_rng(7), 0
    for _ in range(1500):
        parts = [PARTS[i] for i in rng.integers(0, len(PARTS), size=count)]
        for extent in range(6):
            regions = [region_of((extent if known else MANY,), (part,)) for part in parts]
            if cover([r for r in regions if r is not None]):
                sets = [named(extent, part) for part in parts]
                if None not in sets:
                    assert {*range(extent)} <= set().union(*(s for s in sets if s is not None))
                    found += extent > 2
    assert found


def test_an_axis_is_covered_from_both_ends() -> None:
    specs = [(("int", -1),), (("slice", 1, -1, None),), (("int", 0),)]
    regions = [r for spec in specs if (r := region_of((MANY, 4), spec)) is not None]
    assert cover(regions)
    assert not cover(regions[:2])
    assert not cover([])


def test_what_is_left_out_is_no_region() -> None:
    for part in (("slice", None, None, 2), ("slice", None, None, -1), ("int", "?"), ("tensor",), ("mask",)):
        assert region_of((4,), (part,)) is None
    assert region_of((4, 5), (("new",), ("slice", None, None, None))) == region_of((4, 5), ())


def test_corners_do_not_cover() -> None:
    quarters = [(("slice", a, b, None), ("slice", c, d, None))
                for a, b in ((0, 2), (2, 4)) for c, d in ((0, 2), (2, 4))]  # fmt: skip
    regions = [r for spec in quarters if (r := region_of((4, 4), spec)) is not None]
    assert not cover(regions[:3])
