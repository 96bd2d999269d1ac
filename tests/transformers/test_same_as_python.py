"""With a helper that answers as Python does, a converted function acts exactly as the original."""

import copy
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dy2st import transformers

HERE = Path(__file__).parent


def load(name: str, path: Path) -> Any:
    """Import a file of tests by path (tests are no package)."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=None)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


corpus = types.ModuleType("conversion_corpus")
corpus.__path__ = [str(HERE / "corpus")]
sys.modules["conversion_corpus"] = corpus
cases = load("conversion_corpus.cases", HERE / "corpus" / "cases.py")
for part in ("branches", "matches", "loops", "handlers", "functions", "comprehensions", "names"):
    load(f"conversion_corpus.{part}", HERE / "corpus" / f"{part}.py")
PythonHelper = load("python_helper", HERE / "python_helper.py").PythonHelper


def outcome(fn: Any, args: Any, kwargs: Any = None) -> tuple[Any, ...]:
    """Call and describe: value or exception, and the side effects in order."""
    cases.LOG.clear()
    args = copy.deepcopy(args)
    produced: list[Any] = []
    try:
        value = fn(*args, **(kwargs or {}))
        if isinstance(value, types.GeneratorType):
            try:
                item = next(value)
                while True:
                    produced.append(item)
                    item = value.send(len(produced) % 3)
            except StopIteration as stop:
                value = stop.value
        result = ("value", type(value), value)
    except Exception as error:
        result = ("raised", type(error), str(error), repr(error.__cause__), repr(error.__context__))
    return *result, produced, list(cases.LOG), args


@pytest.mark.parametrize("check", [False, True], ids=["plain", "get and set"])
@pytest.mark.parametrize(("fn", "calls"), cases.CASES, ids=lambda x: getattr(x, "__name__", "calls"))
def test_converted_equals_original(fn: Any, calls: Any, check: bool, capsys: pytest.CaptureFixture[str]) -> None:
    converted = transformers.convert(fn)
    for args in calls:
        made = converted.make(PythonHelper(check))
        want, want_text = outcome(fn, args), capsys.readouterr().out
        got, got_text = outcome(made, args), capsys.readouterr().out
        assert got == want, converted.source
        assert got_text == want_text


def test_the_corpus_is_large() -> None:
    assert len(cases.CASES) > 120
