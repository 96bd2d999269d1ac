"""Every test checks something: an assertion in it, or in a function of the tests that it calls or is given."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CHECKS = ("assert", "raises", "warns", "fail", "golden")
"""What calls that check begin with."""


def named(function: ast.AST) -> set[str]:
    """Return the names that a function reads, calls or takes."""
    found = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    return found | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def checks(function: ast.AST) -> bool:
    """Say whether a function checks something itself."""
    nodes = list(ast.walk(function))
    calls = (ast.unparse(node.func).rpartition(".")[2] for node in nodes if isinstance(node, ast.Call))
    return any(isinstance(node, ast.Assert) for node in nodes) or any(name.startswith(CHECKS) for name in calls)


def unchecked(sources: dict[str, str]) -> list[str]:
    """Return the tests of some files that check nothing, also not through functions of theirs."""
    functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
    tests: dict[str, ast.FunctionDef] = {}
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                functions[node.name].append(node)
                if node.name.startswith("test_") and Path(file).name.startswith("test_"):
                    tests[f"{file}::{node.name}"] = node
    known = {name: any(map(checks, found)) for name, found in functions.items()}
    reads = {name: set().union(*map(named, found)) & known.keys() for name, found in functions.items()}
    before = -1
    while before != (before := sum(known.values())):
        known |= {name: known[name] or any(known[other] for other in reads[name]) for name in known}
    return [name for name, node in tests.items() if not (checks(node) or any(map(known.get, named(node))))]


@pytest.mark.slow
def test_every_test_checks_something() -> None:
    files = [path for path in TESTS.rglob("*.py") if "__pycache__" not in path.parts]
    assert unchecked({str(path.relative_to(TESTS)): path.read_text(encoding="utf-8") for path in files}) == []


def test_a_test_that_checks_nothing_is_named() -> None:
    helper = "def agree(x):\n    assert x\n\ndef run(x):\n    agree(x)\n"
    some = "def test_one():\n    run(1)\n\ndef test_two():\n    print(2)\n\ndef test_three(golden):\n    golden('a')\n"
    assert unchecked({"native_executable.py": helper, "a/test_some.py": some}) == ["a/test_some.py::test_two"]
