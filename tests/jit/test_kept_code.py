"""Code of generated source: compiled once for all processes, made again where what was kept is not code."""

import builtins
import marshal

import pytest

from dy2st.runtime.aot_cache import bytecode_cache, disk_cache
from dy2st.runtime.aot_cache.bytecode_cache import compiled

LONG = "def f(x):\n" + "".join(f"    x += {i}\n" for i in range(200)) + "    return x\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def compilations(monkeypatch):
    """The names of what is compiled."""
    found = []
    real = builtins.compile
    monkeypatch.setattr(bytecode_cache, "compile", lambda *args: (found.append(args[1]), real(*args))[1], raising=False)
    return found


def value(source: str) -> int:
    scope = {}
    exec(compiled(source, "<test>"), scope)
    return scope["f"](1)


def test_long_source_is_compiled_once(compilations):
    assert [value(LONG), value(LONG)] == [19901, 19901]
    assert compilations == ["<test>"]


def test_other_source_is_other_code():
    assert value(LONG.replace("+= 7\n", "+= 8\n")) == 19902
    assert value(LONG) == 19901


def test_short_source_is_not_kept(folder):
    assert value("def f(x):\n    return x + 1\n") == 2
    assert not list(folder.iterdir())


def test_without_a_folder_nothing_is_kept(monkeypatch, compilations):
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    assert [value(LONG), value(LONG)] == [19901, 19901]
    assert len(compilations) == 2


@pytest.mark.parametrize("content", [b"", b"no code", marshal.dumps(7), marshal.dumps("x = 1")])
def test_what_is_no_code_is_made_again(content, folder, compilations):
    value(LONG)
    (file,) = folder.iterdir()
    disk_cache.write(file.name.removesuffix(".o"), content)
    assert value(LONG) == 19901
    assert value(LONG) == 19901
    assert len(compilations) == 2
