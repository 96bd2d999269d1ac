"""Definitions are gathered once each, after what they need."""

from dy2st.runtime.cpu.definition import Definition, gathered


def test_needs_come_first_and_once():
    leaf = Definition("leaf", "L")
    left, right = Definition("left", "A", (leaf,)), Definition("right", "B", (leaf, leaf))
    assert gathered([Definition("top", "T", (left, right)), leaf]).split("\n") == ["L", "A", "B", "T"]


def test_nothing_gathers_to_nothing():
    assert gathered([]) == ""
