"""Modules with objects of Python in branches and loops, from `python_objects.txt`: five calls are as eager ones."""

from pathlib import Path

import pytest

from tests.jit.unconverted import HEAD, compared_sources

_TEXT = Path(__file__).with_name("python_objects.txt").read_text(encoding="utf-8")
PROGRAMS = dict(block.split("\n", 1) for block in _TEXT.split("\n### ")[1:])
_SAME = "only the run will tell whether two things are one"
_KEY = (
    "a value is one of several things, told apart when the Program runs, but its hash was needed (a key, or an item of "
    "a set)"
)
RUNS_EAGERLY = {
    "is_after_branch": _SAME, "is_of_lists": _SAME, "eq_default": _SAME,
    "iterator_of_users_class_after_break": "only the run will tell how far a Count has come",
    "vars_of_maybe": "only the run will tell whether a A has .b, and all of it is read",
    "keywords_of_maybe": "a dict of which only the run will tell the keys was handed over key by key (`**d`)",
    "items_of_a_set_of_the_run": _KEY, "keys_of_a_set_of_the_run": _KEY,
    "cached_function_with_an_effect":
        "table() keeps its results, and does more than to compute them, in a branch or loop of the run",
    "text_of_one_of_several":
        "a text names something that is one of several things, and is itself one of several texts",
}  # fmt: skip
"""Programs that are not converted, and why."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_objects_in_programs_are_what_they_are_eagerly(name: str, tmp_path: Path) -> None:
    text = HEAD + "from dataclasses import dataclass, field\n" + PROGRAMS[name]
    how, warned, wanted, got = compared_sources(text, name, tmp_path)
    assert how != "differs", [(w, g) for w, g in zip(wanted, got, strict=True) if repr(w) != repr(g)][:1]
    reasons = [w.partition("Program: ")[2].partition("\n")[0] for w in warned]
    assert reasons == ([RUNS_EAGERLY[name]] if name in RUNS_EAGERLY else [])
