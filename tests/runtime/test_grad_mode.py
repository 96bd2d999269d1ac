"""Gradients on and off: by `with`, by decorator, from now on; other changes of the context stay."""

import asyncio
import gc
import sys
import threading
import tracemalloc

import pytest

import dy2st as paddle
from dy2st.ir.context import current, replaced, switch


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    paddle.set_grad_enabled(True)


def test_with_statements_nest():
    with paddle.no_grad():
        with paddle.enable_grad(), paddle.no_grad():
            assert not paddle.is_grad_enabled()
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()


def test_one_object_may_be_entered_again():
    off = paddle.no_grad()
    with off, paddle.enable_grad():
        with off:
            assert not paddle.is_grad_enabled()
        assert paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()


def test_an_error_leaves_gradients_as_they_were():
    with pytest.raises(ValueError, match="inside"), paddle.no_grad():
        raise ValueError("inside")
    assert paddle.is_grad_enabled()


def test_other_threads_keep_their_mode():
    found: list[bool] = []

    def work():
        for _ in range(200):
            with paddle.enable_grad():
                found.append(paddle.is_grad_enabled())

    with paddle.no_grad():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        here = []
        for _ in range(200):
            with paddle.no_grad():
                here.append(paddle.is_grad_enabled())
        for thread in threads:
            thread.join()
    assert set(found) == {True}
    assert set(here) == {False}
    assert paddle.is_grad_enabled()


def test_what_else_changed_inside_stays():
    before = current().amp
    with paddle.no_grad():
        switch(amp="changed")
    assert current().amp == "changed"
    assert paddle.is_grad_enabled()
    switch(amp=before)


@pytest.mark.parametrize("mode", [paddle.no_grad, paddle.enable_grad])
def test_decorated_functions(mode):
    wanted = mode is paddle.enable_grad
    assert mode(paddle.is_grad_enabled)() is wanted
    assert mode()(paddle.is_grad_enabled)() is wanted


def test_set_grad_enabled_goes_back_to_what_was_at_its_call():
    with paddle.set_grad_enabled(False):
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    paddle.set_grad_enabled(False)
    assert not paddle.is_grad_enabled()


KINDS = (paddle.no_grad, paddle.enable_grad)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_made_as_python_makes_them(kind):
    made = kind()
    assert type(made) is kind
    assert made._changes == ()
    assert kind(len)([1]) == kind(func=len)([1]) == 1
    assert gc.is_tracked(made)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_made_is_refused_as_python_refuses_it(kind):
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        kind(len, len)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        kind(other=3)
    with pytest.raises(TypeError, match="only a function can be decorated, not int"):
        kind(3)


def test_subclasses_go_by_their_own_methods():
    class Noted(paddle.no_grad):
        entered = 0

        def __new__(cls, word):
            made = super().__new__(cls)
            made.word = word
            return made

        def __enter__(self):
            Noted.entered += 1
            super().__enter__()

    with Noted("word") as nothing:
        assert nothing is None
        assert not paddle.is_grad_enabled()
    assert paddle.is_grad_enabled()
    assert (Noted.entered, Noted("other").word) == (1, "other")


def test_methods_are_called_by_hand_too():
    off = paddle.no_grad()
    assert off.__enter__() is None
    assert not paddle.is_grad_enabled()
    assert off.__exit__(None, None, None) is None
    assert paddle.is_grad_enabled()
    with pytest.raises(ValueError, match="not enough values"):
        off.__exit__(None, None, None)


def test_what_changes_inside_stays():
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


def test_tasks_and_threads_have_modes_of_their_own():
    shared, wrong = paddle.no_grad(), []

    async def task(number):
        for _ in range(50):
            with paddle.no_grad() if number % 2 else paddle.enable_grad():
                await asyncio.sleep(0)
                if paddle.is_grad_enabled() is bool(number % 2):
                    wrong.append(number)

    async def tasks():
        await asyncio.gather(*(task(i) for i in range(6)))

    def work():
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


def test_nothing_is_left_behind():
    off, context = paddle.no_grad(), current()

    def run(count):
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
