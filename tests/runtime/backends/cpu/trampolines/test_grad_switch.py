"""Machine code turns gradients on and off as the methods in Python do (tests/runtime/test_grad_mode.py runs both)."""

import asyncio
import gc
import os
import sys
import threading
import tracemalloc
from typing import Any

import pytest

import dy2st as paddle
from dy2st.ir.context import current, replaced
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols
from dy2st.runtime.backends.cpu.trampolines import grad_mode as grad_switch
from dy2st.runtime.eager.tape import grad_mode


@pytest.fixture(autouse=True)
def installed() -> None:
    assert grad_switch.install()
    assert grad_mode.GradMode.__enter__ is not grad_mode.ENTER


KINDS = (paddle.no_grad, paddle.enable_grad)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_made_as_python_makes_them(kind: Any) -> None:
    made = kind()
    assert type(made) is kind
    assert made._changes == ()
    assert kind(len)([1]) == kind(func=len)([1]) == 1
    assert gc.is_tracked(made)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_made_is_refused_as_python_refuses_it(kind: Any) -> None:
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        kind(len, len)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        kind(other=3)
    with pytest.raises(TypeError, match="only a function can be decorated, not int"):
        kind(3)


def test_subclasses_go_by_their_own_methods() -> None:
    class Noted(paddle.no_grad):
        entered = 0

        def __new__(cls, word: str) -> Any:
            made = super().__new__(cls)
            made.word = word
            return made

        def __enter__(self) -> None:
            Noted.entered += 1
            super().__enter__()

    with Noted("word") as nothing:
        assert nothing is None
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    assert (Noted.entered, Noted("other").word) == (1, "other")


def test_methods_are_called_by_hand_too() -> None:
    off = paddle.no_grad()
    assert off.__enter__() is None
    assert not paddle.is_grad_enabled()
    assert off.__exit__(None, None, None) is None
    assert paddle.is_grad_enabled()
    with pytest.raises(ValueError, match="not enough values"):
        off.__exit__(None, None, None)
    with pytest.raises(TypeError):
        paddle.no_grad.__enter__(3)  # type: ignore[arg-type]


def test_what_changes_inside_stays() -> None:
    with paddle.no_grad():
        paddle.set_grad_enabled(True)
        assert paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    with replaced(layer="a layer"):
        before = current()
        with paddle.no_grad():
            assert (current().layer, current().grad) == ("a layer", False)
        assert (current().layer, current().grad) == ("a layer", True)
        assert current().process is before.process


def test_an_error_goes_through() -> None:
    with pytest.raises(ValueError, match="inside"), paddle.no_grad():
        raise ValueError("inside")
    assert paddle.is_grad_enabled()


def test_tasks_and_threads_have_modes_of_their_own() -> None:
    shared, wrong = paddle.no_grad(), list[Any]()

    async def task(number: int) -> None:
        for _ in range(50):
            with paddle.no_grad() if number % 2 else paddle.enable_grad():
                await asyncio.sleep(0)
                if paddle.is_grad_enabled() is bool(number % 2):
                    wrong.append(number)

    async def tasks() -> None:
        await asyncio.gather(*(task(i) for i in range(6)))

    def work() -> None:
        for _ in range(1000):
            with paddle.no_grad(), paddle.enable_grad(), paddle.no_grad():
                if paddle.is_grad_enabled():
                    wrong.append("thread")
            if not paddle.is_grad_enabled():
                wrong.append("after")

    asyncio.run(tasks())
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    with shared, shared:
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    assert wrong == []


def test_nothing_is_left_behind() -> None:
    off, context = paddle.no_grad(), current()

    def run(count: int) -> None:
        for _ in range(count):
            with paddle.no_grad(), off, paddle.enable_grad():
                pass
            with paddle.enable_grad(), paddle.no_grad():
                pass

    run(10)
    assert off._changes == ()
    things = None, (), False, context, context.switched, paddle.no_grad, paddle.enable_grad
    gc.collect()
    before = [sys.getrefcount(x) for x in things]
    tracemalloc.start()
    run(10)
    held = tracemalloc.get_traced_memory()[0]
    run(5000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - held
    tracemalloc.stop()
    assert grown < 5000
    assert [sys.getrefcount(x) for x in things][3:] == before[3:]
    assert all(abs(sys.getrefcount(x) - count) < 100 for x, count in zip(things[:3], before[:3], strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_goes_on() -> None:
    child = os.fork()
    if child == 0:
        with paddle.no_grad():
            inside = paddle.is_grad_enabled()
        os._exit(int(inside or not paddle.is_grad_enabled()))
    assert os.waitpid(child, 0)[1] == 0


def test_python_keeps_doing_it_where_it_is_laid_out_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    install: Any = grad_switch.install.__wrapped__
    with monkeypatch.context() as patch:
        patch.setattr(cpython_symbols, "available", lambda: False)
        assert not install()
    with monkeypatch.context() as patch:
        patch.setattr(grad_switch, "places", lambda kind: None)
        assert not install()
    assert not install()  # a class that has a function to be called by is not touched
    with monkeypatch.context() as patch:
        patch.setattr(grad_switch, "_VECTORCALL_OFFSET", 32)  # the size of instances
        assert grad_switch._vectorcall_place() is None
