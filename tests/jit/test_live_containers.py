"""Modules of `live_containers.txt`: containers in closures, views of dicts, changes under a loop, kept results."""

from pathlib import Path

import pytest

from tests.jit.unconverted import HEAD, compared_sources

_TEXT = Path(__file__).with_name("live_containers.txt").read_text(encoding="utf-8")
PROGRAMS = dict(block.split("\n", 1) for block in _TEXT.split("\n### ")[1:])
_TEXT_OF = "code that is not converted needs the text of a number that only the run will tell"
_KEY = "text with symbolic values was needed as a Python str"
_KEPT = "only the run will tell what a dict holds whose .keys() were kept"
_CHANGES = "only the run will tell whether a {} changes while a loop runs through it"
RUNS_EAGERLY = {
    "views_live_branch": _KEPT, "views_split": _KEPT,
    "set_change": _CHANGES.format("set"), "deque_change": _CHANGES.format("deque"),
    "keys_returned": "a dict_keys that holds tensors of the Program leaves the function",
    "text_kinds_run": _TEXT_OF, "text_defaultdict_run": _TEXT_OF,
    "defaultdict_split": _KEY, "view_split": _KEY,
    "patch_module": ".sqrt of math, which is of a library, is set",
    "lru_count": "g() keeps its results, and is asked after something outside was changed",
    "tensor_patch": ".__add__ of Tensor, which is of a library, is set",
}  # fmt: skip
"""Programs that are not converted, and why."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_containers_in_programs_are_what_they_are_eagerly(name: str, tmp_path: Path) -> None:
    how, warned, wanted, got = compared_sources(HEAD + PROGRAMS[name], name, tmp_path)
    assert how != "differs", [(w, g) for w, g in zip(wanted, got, strict=True) if repr(w) != repr(g)][:1]
    reasons = [w.partition("Program: ")[2].partition("\n")[0] for w in warned]
    assert reasons == ([RUNS_EAGERLY[name]] if name in RUNS_EAGERLY else [])
