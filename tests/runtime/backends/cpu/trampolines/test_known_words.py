"""Machine code says whether words of memory are as they were."""

import types
from collections.abc import Callable
from typing import Any

from dy2st.runtime.backends.cpu.trampolines import call, watched_words
from dy2st.runtime.backends.cpu.trampolines.watched_words import NO_VERSION, WatchedWords


def unchanged(lines: WatchedWords) -> Callable[[], bool]:
    assert call._layout() is not None
    found = lines.unchanged()
    assert found is not None
    return found


def given(a: Any = 1, *, b: Any = 2) -> Any:
    return a, b


def test_code_and_defaults_of_a_function() -> None:
    for name, value in (("__code__", (lambda: 0).__code__), ("__defaults__", (2,)), ("__kwdefaults__", {"b": 3})):
        f = types.FunctionType(given.__code__, {}, argdefs=(1,))
        f.__kwdefaults__ = {"b": 2}
        lines = WatchedWords()
        assert lines.function(f)
        same = unchanged(lines)
        assert same() is True
        setattr(f, name, value)
        assert same() is False


def test_what_a_cell_holds_and_the_class_of_an_object() -> None:
    class A:
        pass

    class B:
        pass

    lines, cell, x = WatchedWords(), types.CellType([]), A()
    before = cell.cell_contents
    assert lines.cell(cell)
    lines.type_of(x)
    same = unchanged(lines)
    assert same()
    cell.cell_contents = []
    assert not same()
    cell.cell_contents = before
    assert same()
    x.__class__ = B  # type: ignore[assignment]
    assert not same()


def test_the_version_of_a_class_changes_with_its_bases() -> None:
    class A:
        pass

    class B(A):
        pass

    lines = WatchedWords()
    assert lines.version(B)
    same, version = unchanged(lines), watched_words.version_of(B)
    assert same()
    assert watched_words.version_of(B) == version != NO_VERSION
    A.late = 1  # type: ignore[attr-defined]
    assert not same()
    assert watched_words.version_of(B) not in (version, NO_VERSION)


def test_entries_of_dicts() -> None:
    lines, owner, one = WatchedWords(), dict[str, Any](), object()
    owner["a"] = one
    lines.entry(owner, "a")
    lines.entry(owner, "b")
    same = unchanged(lines)
    assert same()
    owner["b"] = 1
    assert not same()
    del owner["b"]
    assert same()
    owner["a"] = object()
    assert not same()
    owner["a"] = one
    assert same()


def test_objects_stay_where_words_say_that_they_are() -> None:
    """An address means nothing once its object is gone."""
    lines, owner = WatchedWords(), {"a": object()}
    lines.entry(owner, "a")
    same, address = unchanged(lines), id(owner["a"])
    del owner["a"]
    assert all(id(object()) != address for _ in range(100))
    assert not same()
