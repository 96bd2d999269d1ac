"""With a helper that answers as Python does, a converted function acts exactly as the original."""

import copy
import types
from typing import Any

import pytest

from dy2st import transformers
from tests.transformers import corpus as corpus  # registers the cases
from tests.transformers.corpus import cases
from tests.transformers.python_helper import PythonHelper


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
