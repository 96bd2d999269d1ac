"""What a loop's cotangents come to is told before its body is pulled back: the Program is the one that trying finds."""

import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.autodiff import loops


def gates(x, h, c):
    t = 0
    while t < x.shape[0]:
        c = paddle.tanh(h * x) + c * 0.5
        h = paddle.tanh(c)
        t += 1
    return h


def chain(x, h, c):
    while h.sum() < 20:
        h, c, x = h + c, c * x, x * 1.5
    return h


def apart(x, h, c):
    for _ in range(int(x.shape[0])):
        c = paddle.floor(h) + c * 0
        h = h * x + c
    return h


def alone(x, h, c):
    while h.sum() < 20:
        h, c = h * 2 + x, c + 1
    return h


def _text(function) -> tuple[str, list[np.ndarray]]:
    given = [paddle.to_tensor(np.linspace(1, 2, 3) + i, dtype="float64", stop_gradient=False) for i in range(3)]

    def run(x, h, c):
        return paddle.grad(function(x, h, c).sum(), [x, h], allow_unused=True)

    static = paddle.jit.to_static(run, full_graph=True)
    slopes = [g.numpy() for g in static(*given)]
    names: dict[str, str] = {}
    text = str(static.concrete_program.main_program)
    return re.sub(r"\bn\d+\b", lambda m: names.setdefault(m[0], f"N{len(names)}"), text), slopes


@pytest.mark.parametrize(("function", "is_shorter"), [(gates, True), (chain, True), (apart, True), (alone, False)])
def test_the_program_is_the_one_that_trying_finds(monkeypatch, function, is_shorter):
    turns = []
    pulled = loops._backward_iteration
    monkeypatch.setenv("DY2ST_CACHE_DIR", "")
    monkeypatch.setattr(loops, "_backward_iteration", lambda *args: turns.append(1) or pulled(*args))
    text, slopes = _text(function)
    told = len(turns)
    monkeypatch.setattr(loops, "_expected", lambda operation, forms, on: forms)
    tried, others = _text(function)
    assert text == tried
    assert all(np.array_equal(a, b) for a, b in zip(slopes, others, strict=True))
    assert (told < len(turns) - told) == is_shorter


def test_a_cotangent_that_was_expected_and_does_not_come_is_not_carried(monkeypatch):
    def expected(operation, forms, on):
        return [loops.CarryForm.OPTIONAL if form is loops.CarryForm.ABSENT else form for form in forms]

    text, slopes = _text(alone)
    monkeypatch.setattr(loops, "_expected", expected)
    guessed, others = _text(alone)
    assert guessed == text
    assert all(np.array_equal(a, b) for a, b in zip(slopes, others, strict=True))
