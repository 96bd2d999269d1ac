"""The documentation: docstrings as Markdown, a page for each namespace, and what the table of Paddle's names says."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.surface import Name

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        return importlib.import_module("generate")


def test_the_example_of_docstrings(generate):
    result = doctest.testmod(sys.modules["docstrings"])
    assert (result.failed, result.attempted) == (0, 1)


def test_text_before_an_example_stays_text(generate):
    made = generate.to_markdown("Return x.\n\nFor one:\n>>> 1\n1\n\nThe end.")
    assert made == "Return x.\n\nFor one:\n\n```pycon\n>>> 1\n1\n```\n\nThe end."


def test_a_namespace_has_each_public_function_and_class_once(generate):
    page = generate.namespace_page("metric")
    assert page.startswith("# paddle.metric\n")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert "## paddle.metric.Accuracy" in headings
    assert len(headings) == len(set(headings))
    assert "### paddle.metric.Accuracy.accumulate" in page


def test_methods_that_are_functions_are_named_in_a_row(generate):
    page = generate.tensor_page()
    assert "`x.{name}(...)` is `paddle.{name}(x, ...)`" in page
    assert "[`abs`](paddle.md#paddleabs)" in page
    assert "## Tensor.backward" in page


@pytest.mark.parametrize(
    ("path", "arguments", "row"),
    [
        ("paddle.abs", "(x, name=None)", "| `paddle.abs` | yes |  |"),
        ("paddle.erfinv", "(x, name=None)", "| `paddle.erfinv` | yes | NaN at infinity, outside of the domain;"),
        ("paddle.Tensor.coalesce", "()", "| `paddle.Tensor.coalesce` | no | sparse tensors:"),
        ("paddle.abs", "(x, chunks)", "| `paddle.abs` | yes | not taken: chunks |"),
        ("paddle.jit.TranslatedLayer", "(programs, more)", "| yes | made by jit.load alone |"),
    ],
)
def test_rows_of_paddles_names(generate, path, arguments, row):
    assert row in generate.names_row(Name(1, path, "function", arguments))


def test_each_program_of_the_examples_is_listed(generate):
    page = generate.examples_page()
    for path in (ROOT / "examples").glob("*.py"):
        assert (f"## {path.name}" in page) == ("Run it with" in path.read_text().split('"""')[1])


def test_the_index_names_each_page_of_the_guides(generate):
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"]({page.name})" not in generate.INDEX] == []


@pytest.mark.slow
def test_all_pages_are_written_and_their_links_lead_somewhere(tmp_path):
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), str(tmp_path / "docs")]
    subprocess.run(command, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True)
    index = (tmp_path / "docs" / "index.md").read_text()
    targets = [part.split(")")[0] for part in index.split("](")[1:]]
    assert len(targets) > 10
    for target in targets:
        assert (tmp_path / "docs" / target).exists(), target
