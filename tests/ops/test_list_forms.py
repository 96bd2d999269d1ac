"""Lists whose elements get another type: tags and slots."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.ir.opdef import lookup

SLOTS = [(0, None), (2, "x"), (1, "y"), (3, "z")]


@pytest.mark.parametrize(
    ("tags", "wrap", "narrow"),
    [
        ((2,), True, [(0, None), (1, "x"), (0, None), (0, None)]),
        ((0, 2, 3), False, [(0, None), (1, "x"), (0, None), (2, "z")]),
        ((), False, SLOTS),
    ],
)
def test_slots_of_a_wide_list_are_those_that_the_narrow_one_has(tags, wrap, narrow):
    attributes = {"type": None, "wide": None, "tags": tags, "wrap": wrap}
    assert lookup("slots_narrow").eval(np, SLOTS, **attributes) == narrow


@pytest.mark.parametrize(("tags", "wrap"), [((2,), True), ((0, 2, 3), False), ((), False)])
def test_what_is_made_narrow_is_what_was_made_wide(tags, wrap):
    slots = [(1, "x"), (0, None)] if wrap else [(2, "z"), (0, None), (1, "x")]
    wide = lookup("slots_widen").eval(np, slots, type=None, tags=tags, wrap=wrap)
    assert lookup("slots_narrow").eval(np, wide, type=None, wide=None, tags=tags, wrap=wrap) == slots


def test_slots_that_become_unset_drop_what_they_hold():
    assert lookup("slots_widen").eval(np, [(0, None), (1, 0.5)], type=None, tags=(0,), wrap=True) == [(0, None)] * 2
    assert lookup("slots_widen").eval(np, [(1, 0.5)], type=None, tags=(0, 0), wrap=False) == [(0, None)]
