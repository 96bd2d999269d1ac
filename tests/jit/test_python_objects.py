"""Modules with objects of Python in branches and loops, from `python_objects.txt`: five calls are as eager ones."""

from pathlib import Path

import pytest

from tests.jit.unconverted import HEAD, compared_sources

_TEXT = Path(__file__).with_name("python_objects.txt").read_text(encoding="utf-8")
PROGRAMS = dict(block.split("\n", 1) for block in _TEXT.split("\n### ")[1:])
RUNS_EAGERLY: dict[str, str] = {}
"""Programs that are not converted, and why."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_objects_in_programs_are_what_they_are_eagerly(name: str, tmp_path: Path) -> None:
    text = HEAD + "from dataclasses import dataclass, field\n" + PROGRAMS[name]
    how, warned, wanted, got = compared_sources(text, name, tmp_path)
    assert how != "differs", [(w, g) for w, g in zip(wanted, got, strict=True) if repr(w) != repr(g)][:1]
    assert [RUNS_EAGERLY[name]] == [w.partition("Program: ")[2].partition("\n")[0] for w in warned] if warned else \
        name not in RUNS_EAGERLY  # fmt: skip
