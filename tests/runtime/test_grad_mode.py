"""Gradients on and off: by `with`, by decorator, from now on; other changes of the context stay."""

import threading

import pytest

import dy2st as paddle
from dy2st.ir.context import current, switch
from dy2st.runtime.backends.cpu.trampolines import grad_mode as grad_switch
from dy2st.runtime.eager.tape import grad_mode


@pytest.fixture(autouse=True, params=["Python", "machine code"])
def as_it_was(request, monkeypatch):
    assert grad_switch.install()
    if request.param == "Python":
        monkeypatch.setattr(grad_mode.GradMode, "__enter__", grad_mode.ENTER)
        monkeypatch.setattr(grad_mode.GradMode, "__exit__", grad_mode.EXIT)
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
