"""What an exception takes out of a static function, and what it leaves behind, are the tensors of eager mode."""

from __future__ import annotations

from typing import Any

import pytest

import dy2st as paddle


class Odd(Exception):
    pass


def tensor(*values: float) -> Any:
    return paddle.to_tensor(list(values), stop_gradient=False)


def test_a_tensor_in_an_exception_has_its_gradient_and_is_the_callers_own():
    def f(x):
        if x.sum() > 0:
            error = Odd("odd", x * 3)
            error.of = x
            raise error
        return x * 2

    static = paddle.jit.to_static(f, full_graph=True)
    for _ in range(4):
        x = tensor(1.0, 2.0)
        with pytest.raises(Odd) as caught:
            static(x)
        assert caught.value.of is x
        assert caught.value.__context__ is None
        caught.value.args[1].sum().backward()
        assert x.grad.numpy().tolist() == [3.0, 3.0]
        assert static(tensor(-1.0)).numpy().tolist() == [-2.0]


def test_what_was_written_before_an_exception_has_its_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x, items):
        items.append(x * 2)
        print("appended", len(items))
        if x.sum() > 0:
            raise ValueError("positive")
        items.append(x)
        return items

    static = paddle.jit.to_static(f, full_graph=True)
    for _ in range(4):
        x, items = tensor(1.0, 2.0), list[Any]()
        with pytest.raises(ValueError, match="positive"):
            static(x, items)
        items[0].sum().backward()
        assert x.grad.numpy().tolist() == [2.0, 2.0]
        assert len(items) == 1
        assert capsys.readouterr().out == "appended 1\n"
        x = tensor(-1.0)
        assert static(x, items)[2] is x
        capsys.readouterr()


def test_the_traceback_of_such_an_exception_ends_in_the_users_line():
    def f(x):
        if x.sum() > 0:
            raise Odd(x)
        return x

    static = paddle.jit.to_static(f, full_graph=True)
    for _ in range(3):
        with pytest.raises(Odd) as caught:
            static(tensor(1.0))
        assert caught.traceback[-1].frame.code.name == "f"
        assert caught.traceback[-1].path == caught.traceback[0].path
