"""Conversions are kept for later processes: taken where all that they depend on is the same, else made again."""

import linecache
import marshal
import math
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from dy2st.jit.tracing import conversion_cache
from dy2st.jit.tracing.conversion_cache import convert, key_of
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.tracer.converted_code_api import HELPER
from dy2st.transformers.convert import conversion_from

TEXT = "def f(x, k=2):\n    if x > 0 and x in {'a', 'b', 1}:\n        return math.floor(x) * k\n    return -x\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def defined(text: str = TEXT, file: str = "<cell of kept>", **names: Any) -> types.FunctionType:
    """Run a text as the file of that name and return its `f`; each time another code object."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope: dict[str, Any] = {"__name__": "users", "math": math, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def made_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by a name for each conversion that is made."""
    seen: list[str] = []
    module = sys.modules["dy2st.transformers.conversion"]
    real = module.conversion_of
    monkeypatch.setattr(module, "conversion_of", lambda fn: (seen.append(fn.__name__), real(fn))[1])
    return seen


def test_what_was_kept_is_the_same_function(folder, monkeypatch):
    first = convert(defined())
    seen = made_again(monkeypatch)
    again = convert(defined())
    assert seen == []
    assert again == first
    assert [again.make(HELPER, defined())(x) for x in (1.0, -2.0)] == [2, 2.0]


def test_the_source_of_what_was_kept_can_be_shown(folder):
    first, fn = convert(defined()), defined()
    assert convert(fn).source == first.source


@pytest.mark.parametrize(
    "changed",
    [
        {"text": TEXT.replace("* k", "+ k")},
        {"text": TEXT.replace("k=2", "k = 2")},
        {"text": TEXT + "\n# another line\n"},
        {"file": "<another cell>"},
        {"math": types.SimpleNamespace(floor=math.floor)},
    ],
    ids=["code", "places", "text around", "file", "a name that is no module"],
)
def test_what_a_conversion_depends_on_is_in_its_key(changed):
    assert key_of(defined()) == key_of(defined())
    assert key_of(defined(**changed)) != key_of(defined())


def test_another_converter_is_another_key(monkeypatch):
    before = key_of(defined())
    monkeypatch.setattr(conversion_cache, "_converter", lambda: "another")
    assert key_of(defined()) != before


def test_the_text_of_a_file_is_in_the_key(tmp_path):
    file = tmp_path / "users.py"
    file.write_text(TEXT)
    before = key_of(defined(file=str(file)))
    file.write_text(TEXT + "# edited\n")
    assert key_of(defined(file=str(file))) != before


def test_a_function_without_source_has_no_key():
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x", scope)
    assert key_of(scope["f"]) is None


@pytest.mark.parametrize("content", [b"", b"nonsense", marshal.dumps(7), marshal.dumps(("a", "b", 3, [], []))])
def test_damaged_content_is_made_again(folder, monkeypatch, content):
    text = TEXT.replace("k=2", f"k={len(content) + 7}")
    fn = defined(text)
    disk_cache.write(str(key_of(fn)), content)
    seen = made_again(monkeypatch)
    assert convert(fn).make(HELPER)(-1.0) == 1.0
    assert seen == ["f"]
    with pytest.raises(ValueError, match="no conversion"):
        conversion_from(content, fn)


def test_code_that_wants_other_variables_is_refused():
    def f():
        return outer

    outer = 1
    content = marshal.dumps(("text", "_dy", f.__code__, [], []))
    with pytest.raises(ValueError, match="no conversion of this function"):
        conversion_from(content, defined())


def test_without_a_folder_nothing_is_kept(monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    seen = made_again(monkeypatch)
    for _ in range(2):
        convert(defined(TEXT.replace("k=2", "k=3")))
    assert seen == ["f", "f"]


SCRIPT = """
import sys
import dy2st as paddle

@paddle.jit.to_static(full_graph=True)
def relu(x):
    return x if x > 0 else 0 * x

print(float(relu(paddle.to_tensor(3.0))), "gast" in sys.modules, "dy2st.transformers.pipeline" in sys.modules)
"""


@pytest.mark.slow
def test_a_second_process_neither_parses_nor_transforms(tmp_path, folder):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    others = {name: value for name, value in os.environ.items() if not name.startswith("DY2ST_")}
    env = others | {"DY2ST_CACHE_DIR": str(folder)}  # whatever a test before this one has set
    found = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=env).stdout
        for _ in range(2)
    ]
    assert found == ["3.0 True True\n", "3.0 False False\n"]


_LOOKED = (
    "import dy2st; from dy2st.runtime.aot_cache import environment_key as k; print(k._fixed.cache_info().currsize)"
)


@pytest.mark.parametrize(("kept_in", "looked"), [("kept", "1"), ("", "0")])
def test_the_import_looks_at_the_files_that_decide_what_was_kept(tmp_path, kept_in, looked):
    env = {**os.environ, "DY2ST_CACHE_DIR": str(tmp_path / kept_in) if kept_in else ""}
    done = subprocess.run([sys.executable, "-c", _LOOKED], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == looked
