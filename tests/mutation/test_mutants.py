"""The tool that changes one rule at a time: it gives Python, and the tests beside a file judge it."""

import ast
import random
from pathlib import Path

from tests.mutation.__main__ import ROOT, choose
from tests.mutation.judging import folder, near
from tests.mutation.mutants import one_of

SOURCE = """
def derivative(b, x, ct, known=False):
    if x is None:
        return None
    if not known and ct < 2:
        b.note(x)
    return b.emit("sub", [-x, ct + 1])
"""


def all_changes():
    return {one_of(SOURCE, random.Random(seed).randrange) for seed in range(200)}


def test_each_kind_of_change_is_made():
    changes = {(one.kind, one.before, one.after) for one in all_changes()}
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


def test_a_change_is_python_and_changes_one_line():
    for one in all_changes():
        assert ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(SOURCE))
        assert SOURCE.splitlines()[: one.line - 1] == one.source.splitlines()[: one.line - 1]


def test_a_file_without_rules_has_no_change():
    assert one_of("import os\n", random.Random(0).randrange) is None


def test_a_seed_names_changes():
    first, second = (choose(5, 3, "dy2st/passes") for _ in range(2))
    assert first == second
    assert all(str(path).startswith("dy2st/passes/") for path, _ in first)


def test_the_nearest_tests_have_the_name_of_the_file_or_import_it():
    assert "tests/passes/test_licm.py" in near(ROOT, Path("dy2st/passes/licm.py"))
    assert folder(ROOT, Path("dy2st/passes/licm.py")) == ["tests/passes"]
    assert folder(ROOT, Path("dy2st/runtime/cpu/gemm/packed.py")) == ["tests/runtime/cpu/gemm"]
