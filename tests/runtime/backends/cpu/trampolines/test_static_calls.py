"""Machine code makes a call like the last one, and leaves every other one to the method in Python."""

import sys
from typing import Any

import pytest

import dy2st as paddle
from dy2st.ir.context import current, replaced
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols
from dy2st.runtime.backends.cpu.trampolines import static_function

UNSEEN = object()


def likely() -> Any:
    """Return an object of a class whose calls are made by machine code."""

    class Likely:
        __slots__ = ("last", "like", "ran")

        def __init__(self) -> None:
            self.like: Any = None
            self.last: Any = None
            self.ran: list[Any] = []

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            self.ran.append((args, keywords))
            return "python"

    assert static_function.install(Likely, "like", "last", UNSEEN)
    return Likely()


def modes() -> tuple[Any, ...]:
    """Return what of the current context decides."""
    return tuple(getattr(current(), mode) for mode in static_function.MODES)


def test_a_call_like_the_last_one_is_made_and_noted() -> None:
    made = likely()
    made.like = *modes(), 2, lambda x, y: x + y, "program"
    assert made(3, 4) == 7
    assert (made.last, made.ran) == ("program", [])


@pytest.mark.parametrize(
    ("args", "keywords"), [((1,), {}), ((), {}), ((1, 2, 3), {}), ((1, 2), {"z": 3}), ((1,), {"y": 2, "z": 3})]
)
def test_calls_with_other_arguments_are_pythons(args: Any, keywords: Any) -> None:
    made = likely()
    made.like = *modes(), 2, lambda x, y: x + y, "program"
    assert made(*args, **keywords) == "python"
    assert (made.last, made.ran) == (None, [(args, keywords)])


def test_where_nothing_is_known_and_where_it_is_another_call_python_makes_it() -> None:
    made = likely()
    assert made(1) == "python"
    made.like = *modes(), 1, lambda x: UNSEEN, "program"
    assert made(2) == "python"
    with paddle.no_grad():
        made.like = *modes(), 1, lambda x: x, "program"
    assert made(3) == "python"
    del made.like
    assert made(4) == "python"
    assert made.ran == [((x,), {}) for x in (1, 2, 3, 4)]
    assert made.last is None


@pytest.mark.parametrize("changes", [{"grad": False}, {"amp": 3}, {"checkpoint": 3}, {"trace": 3}])
def test_in_another_mode_python_makes_it(changes: Any) -> None:
    made = likely()
    made.like = *modes(), 1, lambda x: x, "program"
    with replaced(**changes):
        assert made(3) == "python"
    with replaced(layer="a layer", saved="hooks"):
        assert made(3) == 3


def test_where_programs_are_turned_off_python_makes_it() -> None:
    made = likely()
    made.like = *modes(), 1, lambda x: x, "program"
    paddle.jit.enable_to_static(False)
    try:
        assert made(3) == "python"
    finally:
        paddle.jit.enable_to_static(True)
    assert made(3) == 3


def test_errors_and_what_replaces_a_call_while_it_runs_go_through() -> None:
    made = likely()

    def forget(x: Any) -> Any:
        made.like = made.last = None
        return int(x)

    made.like = *modes(), 1, forget, "program"
    del forget
    with pytest.raises(ValueError, match="no good"):
        made("no good")
    assert (made.like, made.last) == (None, None)
    made.like = *modes(), 1, lambda x: [setattr(made, "like", None), x][1], "program"
    assert made(5) == 5
    assert (made.like, made.last) == (None, "program")


def test_nothing_is_held_after_calls() -> None:
    made, thing, program = likely(), object(), object()
    made.like = *modes(), 1, lambda x: x, program
    made(thing)
    names = made, thing, program, UNSEEN, current(), made.like
    before = [sys.getrefcount(x) for x in names]
    for _ in range(1000):
        made(thing)
        made(thing, 1)
    made.ran.clear()
    assert [sys.getrefcount(x) for x in names] == before


def test_a_class_laid_out_in_another_way_keeps_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __call__(self) -> str:
            return "python"

    call = Other.__call__
    monkeypatch.setattr(cpython_symbols, "available", lambda: False)
    assert not static_function.install(Other, "like", "last", UNSEEN)
    assert Other.__call__ is call
