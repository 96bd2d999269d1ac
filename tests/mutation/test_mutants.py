"""The tool that changes one rule at a time: it gives Python, old code is exchanged, the nearest tests come first."""

import ast
import importlib.util
import json
import random
from pathlib import Path

from tests.mutation.__main__ import ESTIMATES, choose, place, still_open
from tests.mutation.exchanging import exchanged, functions
from tests.mutation.judging import Judge, Map, near
from tests.mutation.mutants import Mutant, named, one_of
from tests.mutation.watching import ROOT, checksum

SOURCE = """
def derivative(b, x, ct, known=False):
    if x is None:
        return None
    if not known and ct < 2:
        b.note(x)
    return b.emit("sub", [-x, ct + 1])
"""
NO_RULES = '''
import os
_MOST = 100

class Point(Base, frozen=True):
    """At 1 and 2."""
    def __repr__(self):
        return "+" if self.x > 0 else "-"

def row_cost(rows):
    return rows * 3

def turns(f, row):
    prefetch(f, f.offset(row, 1))

def refuse(x) -> Literal[1]:
    raise ValueError(f"{x + 1}")
'''
INNER = """
def outer(x):
    inner = lambda y: y + 1
    return inner(x)
made = [outer]
"""


def all_changes(source: str) -> set[Mutant]:
    found = {one_of(source, random.Random(seed).randrange) for seed in range(200)}
    return {one for one in found if one is not None}


def test_each_kind_of_change_is_made() -> None:
    changes = {(one.kind, one.before, one.after) for one in all_changes(SOURCE)}
    assert ("guard", "if x is None:", "(left out)") in changes
    assert ("guard", "x is None", "x is not None") in changes
    assert ("guard", "not known and ct < 2", "not known or ct < 2") in changes
    assert ("guard", "not known", "known") in changes
    assert ("bound", "ct < 2", "ct <= 2") in changes
    assert ("bound", "2", "3") in changes
    assert ("sign", "'sub'", "'add'") in changes
    assert ("sign", "-x", "x") in changes
    assert ("sign", "ct + 1", "ct - 1") in changes
    assert ("effect", "b.note(x)", "(left out)") in changes
    assert ("constant", "False", "True") in changes


def test_a_change_is_python_and_changes_one_line() -> None:
    for one in all_changes(SOURCE):
        assert ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(SOURCE))
        assert SOURCE.splitlines()[: one.line - 1] == one.source.splitlines()[: one.line - 1]


def test_what_a_test_must_run_to_notice_a_guard_is_what_stands_below_it() -> None:
    lines = {one.before: one.lines for one in all_changes(SOURCE)}
    assert lines["if x is None:"] == (4, 4)
    assert lines["x is None"] == (3, 3)
    (whole,) = {one.lines for one in all_changes("class A:\n    n = 1\n    def f(self): pass\n")}
    assert whole == (1, 3)


def test_what_is_only_said_or_only_costs_time_is_no_rule() -> None:
    assert all_changes(NO_RULES) == set()


def test_a_change_is_made_where_the_old_function_is_held(tmp_path: Path) -> None:
    file = tmp_path / "held.py"
    file.write_text(INNER)
    spec = importlib.util.spec_from_file_location("held", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = functions(str(tmp_path))
    made = exchanged(known, str(file), INNER, INNER.replace("y + 1", "y - 1"))
    assert made is not None
    for function, code in made:
        function.__code__ = code
    assert module.made[0](5) == 4
    assert exchanged(known, str(file), INNER, INNER.replace("[outer]", "[]")) is None


def test_a_seed_names_changes() -> None:
    first, second = (choose(5, 3, "dy2st/passes") for _ in range(2))
    assert first == second
    assert all(str(path).startswith("dy2st/passes/") for path, _ in first)


def test_a_file_is_of_the_innermost_place() -> None:
    assert place(Path("dy2st/runtime/backends/cpu/gemm/prepacked.py")) == "backend"
    assert place(Path("dy2st/runtime/eager/tape/node.py")) == "tracer"
    assert place(Path("dy2st/cli.py")) == ""


def test_what_only_guesses_is_no_place():
    assert {place(Path("dy2st") / name) for name in ESTIMATES} == {""}
    assert all((ROOT / "dy2st" / name).exists() for name in ESTIMATES)


def test_the_nearest_tests_have_the_name_of_the_file_or_import_it() -> None:
    assert "tests/passes/test_licm.py" in near(Path("dy2st/passes/loops/licm.py"))
    pieces = Path("dy2st/runtime/backends/cpu/libm/core/piecewise_coefficients.py")
    assert "tests/runtime/backends/cpu/libm/test_pieces.py" in near(pieces)


def test_what_survivors_md_has_open_is_found_again():
    kind = next(one for one in all_changes(SOURCE) if one.before == "not known")
    path = Path("dy2st/derivative.py")
    assert named(SOURCE, path, kind.name(path)) == kind
    assert named(SOURCE, path, "something else") is None
    text = "`not open`\n```text\n" + "\n".join(one.name(p) for p, one in choose(2, 3, "dy2st/passes")) + "\n```\n"
    assert [one for _, one in still_open(text)] == [one for _, one in choose(2, 3, "dy2st/passes")]


def test_tests_that_run_the_line_are_run_the_nearest_and_the_shortest_first(tmp_path: Path) -> None:
    path = Path("dy2st/passes/loops/licm.py")
    tests = [["tests/nn/test_a.py::one", 0.1], ["tests/passes/test_b.py::two", 0.2], ["tests/passes/test_b.py::x", 0.1],
             ["tests/passes/test_licm.py::three", 0.3]]  # fmt: skip
    told = {
        "tests": tests,
        "sums": {str(path): checksum(ROOT / path)},
        "lines": {str(path): {"7": [0, 1, 3], "9": [2]}},
    }
    (tmp_path / "map").write_text(json.dumps(told))
    found = Map(tmp_path / "map")
    ordered = ["tests/passes/test_licm.py::three", "tests/passes/test_b.py::two", "tests/nn/test_a.py::one"]
    assert found.tests(path, (6, 7)) == ordered
    told["sums"][str(path)] = "another"
    (tmp_path / "map").write_text(json.dumps(told))
    assert len(Map(tmp_path / "map").tests(path, (6, 7))) == 4


def test_tests_that_are_younger_than_the_map_come_first_and_then_those_that_name_what_is_changed(
    tmp_path: Path,
) -> None:
    path = Path("dy2st/passes/loops/licm.py")
    old, young, far = (
        "tests/passes/test_licm.py::old",
        "tests/passes/test_new.py::young[1]",
        "tests/nn/test_new.py::far",
    )
    told = {"tests": [[old, 0.1]], "sums": {str(path): checksum(ROOT / path)}, "lines": {str(path): {"7": [0]}}}
    (tmp_path / "map").write_text(json.dumps(told))
    judge = Judge(Map(tmp_path / "map"), [], lambda *_: None)
    names = "tests/nn/test_a.py::test_op[hoist-2]"
    judge._items = dict.fromkeys((far, old, names, young))
    assert judge._cases(path, _a_mutant("class Hoist:\n    def f(self): return 1\n"), [old]) == [young, names, old]
    assert judge._cases(path, _a_mutant("def other(): return 1\n"), [old]) == [young, old]


def _a_mutant(source: str) -> Mutant:
    made = one_of(source, lambda _: 0)
    assert made is not None
    return made
