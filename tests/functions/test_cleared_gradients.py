"""Gradients that are cleared and summed into: in their own memory where nobody else holds that."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "the gradient": lambda x: x.grad,
    "an array": lambda x: np.asarray(x.grad),
    "a view": lambda x: x.grad[1:],
    "a detached twin": lambda x: x.grad.detach(),
    "an exported buffer": lambda x: memoryview(np.asarray(x.grad)),
    "a view of an array": lambda x: np.asarray(x.grad)[::2],
}


def trained() -> Any:
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    (x * x).sum().backward()
    return x


def elements(held: Any) -> list[float]:
    return np.array(held).tolist()


@pytest.mark.on_host("it asks NumPy for addresses")
def test_memory_stays() -> None:
    x = trained()
    gradient, array = weakref.ref(x.grad), x.grad.payload.ctypes.data
    for _ in range(3):
        x.clear_gradient()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0, 4.0, 6.0]
        (x * 2.0).sum().backward()
        assert x.grad.tolist() == [4.0, 6.0, 8.0]
    assert gradient() is x.grad
    assert x.grad.payload.ctypes.data == array


@pytest.mark.parametrize("what", HOLDERS)
def test_who_holds_a_gradient_does_not_see_it_change(what: str) -> None:
    x = trained()
    held = HOLDERS[what](x)
    before = elements(held)
    x.clear_gradient()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert elements(held) == before
    held = HOLDERS[what](x)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert set(elements(held)) == {0.0}


@pytest.mark.on_host("it sets an array of NumPy")
def test_a_gradient_that_the_user_has_set_keeps_its_memory_to_itself() -> None:
    x, given = trained(), np.ones(6, np.float32)
    x.grad = paddle.to_tensor([0.0, 0.0, 0.0])
    x.grad.payload = given[:3]
    x.clear_gradient()
    assert given.tolist() == [1.0] * 6
    x.grad.payload = given[3:]
    (x * x).sum().backward()
    assert given.tolist() == [1.0] * 6
    assert x.grad.tolist() == [3.0, 5.0, 7.0]
    given.flags.writeable = False
    x.grad = paddle.to_tensor([1.0, 1.0, 1.0])
    x.grad.payload.flags.writeable = False
    x.clear_gradient()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_two_tensors_with_one_gradient() -> None:
    x, y = trained(), trained()
    y.grad = x.grad
    x.clear_gradient()
    assert y.grad.tolist() == [2.0, 4.0, 6.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_a_gradient_with_a_history() -> None:
    x = paddle.to_tensor([2.0], stop_gradient=False)
    (x.grad,) = paddle.grad((x * x * x).sum(), [x], create_graph=True)
    (x.grad * 1.0).sum().backward()
    assert x.grad.tolist() == [24.0]


def test_optimizers_clear_all() -> None:
    parameters = [paddle.create_parameter([2], "float32") for _ in range(3)]
    opt = paddle.optimizer.SGD(0.1, parameters=parameters)
    (parameters[0] * parameters[1]).sum().backward()
    opt.clear_grad()
    assert [None if p.grad is None else p.grad.tolist() for p in parameters] == [[0.0, 0.0], [0.0, 0.0], None]
    opt.clear_grad(set_to_zero=False)
    assert [p.grad for p in parameters] == [None] * 3
