"""The table from module to tests: every module has tests, and they are those that a reader would open."""

import subprocess
import sys

import pytest

from tests import tests_of


def paths(module: str) -> list[str]:
    return [str(test.relative_to(tests_of.ROOT)) for test in tests_of.tests_of(module)]


def test_every_module_has_tests() -> None:
    assert all(tests_of.tests_of(name) for name in tests_of.modules())


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("dy2st.shapes", "tests/test_shapes.py"),  # its name, at its place
        ("dy2st.ir.builder", "tests/ir/test_builder.py"),
        ("dy2st.late", "tests/test_late.py"),
    ],
)
def test_the_test_of_the_name_comes_first(module: str, test: str) -> None:
    assert paths(module)[0] == test


def test_those_who_import_it_follow() -> None:
    assert "tests/ir/test_text.py" in paths("dy2st.ir.parser")
    assert all("dy2st.ir.parser" in tests_of.imports(tests_of.ROOT / path) for path in paths("dy2st.ir.parser"))


def test_a_module_that_no_test_imports_has_those_of_its_importers() -> None:
    (alone, *_) = [
        name
        for name in tests_of.modules()
        if not tests_of.tests()[name] and not tests_of.named_after(name) and tests_of.importers()[name]
    ]
    assert paths(alone)


def test_the_command_takes_paths_and_names_and_refuses_others() -> None:
    command = [sys.executable, "-m", "tests.tests_of"]
    found = subprocess.run([*command, "dy2st/shapes.py"], capture_output=True, text=True, cwd=tests_of.ROOT, check=True)
    assert found.stdout.splitlines() == paths("dy2st.shapes")
    refused = subprocess.run([*command, "dy2st.nothing"], capture_output=True, text=True, cwd=tests_of.ROOT)
    assert refused.returncode == 1
    assert "dy2st.nothing is no module of dy2st" in refused.stderr
