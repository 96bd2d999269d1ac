"""A source text is converted once, however often it runs; another text, file or module behind a name is another one."""

import linecache
import sys
import types
from typing import Any

import dy2st as paddle
from dy2st.transformers import convert

TEXT = "def f(x, k=2):\n    if x.sum() > 0:\n        return x * k\n    return x\n"


def defined(text: str, file: str, **names: Any) -> types.FunctionType:
    """Run a text as the file of that name and return its `f`."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope: dict[str, Any] = {"__name__": "users", **names}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def test_the_same_text_is_converted_once() -> None:
    one, other = defined(TEXT, "<cell 1>"), defined(TEXT, "<cell 1>")
    assert one.__code__ is not other.__code__
    assert convert(one).code is convert(other).code
    assert convert(other).fn() is other


def test_defaults_and_globals_are_those_of_each_function() -> None:
    one, other = defined(TEXT, "<cell 1>"), defined(TEXT.replace("k=2", "k=3"), "<cell 2>")
    x = paddle.to_tensor([1.0])
    assert paddle.jit.to_static(one, full_graph=True)(x).tolist() == [2.0]
    assert paddle.jit.to_static(other, full_graph=True)(x).tolist() == [3.0]


def test_another_text_or_file_is_converted_anew() -> None:
    one = convert(defined(TEXT, "<cell 1>"))
    assert convert(defined(TEXT, "<cell 3>")).code is not one.code
    edited = convert(defined(TEXT.replace("x * k", "x / k"), "<cell 1>"))
    assert "x / k" in edited.source
    assert "x * k" in convert(defined(TEXT, "<cell 1>")).source


def test_a_name_that_is_a_module_no_more_is_converted_anew() -> None:
    text = "def f(x):\n    return math.tau * x\n"
    own = types.SimpleNamespace(tau=3.0)
    library = convert(defined(text, "<cell 4>", math=sys.modules["math"]))
    assert convert(defined(text, "<cell 4>", math=own)).source != library.source


def test_the_oldest_texts_are_forgotten(monkeypatch: Any) -> None:
    module = sys.modules["dy2st.transformers.conversion"]
    monkeypatch.setattr(module, "MOST_TEXTS", 2)
    first = convert(defined(TEXT, "<cell 5>")).code
    for name in ("<cell 6>", "<cell 7>"):
        convert(defined(TEXT, name))
    assert len(module._texts) == 2
    assert convert(defined(TEXT, "<cell 5>")).code is not first
