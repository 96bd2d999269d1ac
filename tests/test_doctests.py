"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

import dy2st as paddle
from dy2st import config

PACKAGE = Path(__file__).parents[1] / "dy2st"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def with_examples() -> list[str]:
    """Name the modules whose text has an example, without importing any."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8"))
    names = (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings_print_what_they_say(name: str) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    module = importlib.import_module(name)
    names = {**vars(module), "__name__": "__main__"}  # what an example defines is the user's, not the module's
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, globs=names):
        runner.run(example, out=said.append)
    paddle.jit.verify_first_calls(config.verified_calls())  # an example has changed it
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
