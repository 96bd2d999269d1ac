"""Finding the source of a function: files, cells, doctests, zips, lambdas, edits."""

import doctest
import linecache
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dy2st.errors import ConversionError
from dy2st.pysrc import source

two = lambda x: x + 1, lambda x: x - 1
nested = lambda x: lambda x: x
same = [lambda: 0, lambda: 0]


def define(text: str, file: str, keep: bool = True) -> dict[str, Any]:
    """Run text as the notebook does: with an entry in linecache."""
    if keep:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"__name__": "cell"}
    exec(compile(text, file, "exec"), namespace)
    return namespace


def decorated(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


@decorated
@decorated
def with_decorators(x):
    assert x, "pytest rewrites this"
    return x


def test_lambdas_of_one_line_are_told_apart() -> None:
    texts = [source.find(fn).text for fn in (*two, nested, nested(0), *same)]
    want = ["lambda x: x + 1", "lambda x: x - 1", "lambda x: lambda x: x", "lambda x: x", "lambda: 0", "lambda: 0"]
    assert texts == want


def test_decorators_and_rewritten_asserts() -> None:
    found = source.find(with_decorators)  # pyright: ignore[reportArgumentType]
    assert found.text.startswith("def with_decorators")
    assert found.file == __file__


def test_cell_with_future_and_private_names() -> None:
    text = "from __future__ import annotations\nclass A:\n    def f(self, x: no) -> never:\n        return self.__x\n"
    found = source.find(define(text, "<cell 1>")["A"].f)
    assert (found.class_name, found.node.lineno) == ("A", 3)


def test_functions_made_twice_on_a_line_by_a_factory() -> None:
    text = "def make(k):\n    def f(x):\n        return x + k\n    return f\na, b = make(1), make(2)\n"
    namespace = define(text, "<cell 2>")
    assert source.find(namespace["a"]).node is source.find(namespace["b"]).node


def test_class_in_branches_of_one_name() -> None:
    text = "if 1:\n    def f():\n        return 1\nelse:\n    def f():\n        return 2\n"
    assert source.find(define(text, "<cell 3>")["f"]).node.lineno == 2


def test_doctest_examples_have_source() -> None:
    seen: list[str] = []
    test = doctest.DocTestParser().get_doctest(
        ">>> def f(x):\n...     return x\n>>> seen.append(find(f).text)\n",
        {"find": source.find, "seen": seen},
        "example",
        None,
        0,
    )
    assert doctest.DocTestRunner().run(test).failed == 0
    assert seen == ["def f(x):\n    return x"]


def test_zipped_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("zipped_for_test.py", "def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib.zip"))
    assert source.find(import_module("zipped_for_test").f).text == "def f(x):\n    return x"


@pytest.mark.slow
def test_python_c() -> None:
    code = "from dy2st.pysrc import source\ndef f(x):\n    return x\nprint(source.find(f).text)"
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=60)
    assert done.stdout == "def f(x):\n    return x\n", done.stderr


@pytest.mark.parametrize(
    ("edited", "reason"),
    [
        ("def f(x):\n    return x - 1\n", "the code on line 1 differs"),
        ("\n\ndef f(x):\n    return x + 1\n", "no `f` starts on line 1"),
        ("def f(x:\n", "the file does not parse"),
        ("def f(y):\n    return y + 1\n", "the code on line 1 differs"),
    ],
)
def test_edited_text_is_refused(edited: str, reason: str) -> None:
    fn = define("def f(x):\n    return x + 1\n", "<cell 4>")["f"]
    define(edited, "<cell 4>") if "(x:" not in edited else linecache.cache.update(
        {"<cell 4>": (1, None, edited.splitlines(keepends=True), "<cell 4>")}
    )
    with pytest.raises(ConversionError, match=reason) as caught:
        source.find(fn)
    assert "Import or run the file again" in str(caught.value)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("<stdin>", "not kept by this prompt"),
        ("<string>", "made by `exec` or `eval`"),
        ("/no/such/file.py", "its source file /no/such/file.py cannot be read"),
    ],
)
def test_no_source_says_why(file: str, reason: str) -> None:
    fn = define("def f(x):\n    return x\n", file, keep=False)["f"]
    with pytest.raises(ConversionError, match=reason):
        source.find(fn)


def test_edit_with_moved_lambda_columns() -> None:
    fn = define("f = lambda: 0\n", "<cell 5>")["f"]
    define("f = (1, lambda: 0)\n", "<cell 5>")
    with pytest.raises(ConversionError, match="differs"):
        source.find(fn)


def test_future_flags() -> None:
    fn = define("from __future__ import annotations\ndef f(): pass\n", "<cell 6>")["f"]
    plain: Any = types.FunctionType(compile("0", "x", "eval"), {})
    assert source.future_flags(fn.__code__)
    assert not source.future_flags(plain.__code__)
