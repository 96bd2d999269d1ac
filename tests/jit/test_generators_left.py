"""Generators that a function leaves in the middle: what they do when they are closed happens once a call."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest

import dy2st as paddle

LOG: list[str] = []


def items(x: Any) -> Any:
    try:
        yield x
        yield x * 2
    finally:
        LOG.append("closed")


def around(x: Any) -> Any:
    try:
        for v in items(x):
            yield v * 3
    finally:
        LOG.append("around")


@contextlib.contextmanager
def managed(x: Any) -> Any:
    LOG.append("in")
    try:
        yield x * 2
    except ValueError:
        LOG.append("caught")
    finally:
        LOG.append("out")


def first_item(x: Any) -> Any:
    it = items(x)
    found = next(it)
    LOG.append("end")
    return found


def forgotten(x: Any) -> Any:
    it = around(x)
    found = next(it)
    LOG.append("before")
    del it
    LOG.append("end")
    return found


def in_a_loop(x: Any) -> Any:
    i = 0
    while i < x.sum():
        x = x - next(items(x)) * 0.5
        i = i + 1
    return x


def left_by_break(x: Any) -> Any:
    for v in items(x):
        if v.sum() > 0:
            break
    LOG.append("after")
    return v


def refused_after_an_item(x: Any) -> Any:
    found = next(items(x))
    return float(found.numpy().sum()) + found


def refused_while_begun(x: Any) -> Any:
    with managed(x) as y:
        if x.sum() > 0:
            raise ValueError
        y = y * 3
    return y


def held_to_the_end(x: Any) -> Any:
    for i, v in enumerate(items(x)):
        if i == 1:
            break
        LOG.append("item")
    LOG.append("after")
    return v


@pytest.mark.parametrize("f", [
    first_item, forgotten, in_a_loop, left_by_break, refused_after_an_item, refused_while_begun, held_to_the_end,
])  # fmt: skip
def test_what_generators_do_when_they_are_closed_happens_once_a_call(f: Any) -> None:
    static = paddle.jit.to_static(f)

    def run(call: Any, values: list[float]) -> Any:
        LOG.clear()
        found = call(paddle.to_tensor(values))
        return found.numpy().tolist(), list(LOG)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in ([1.0, 2.0], [1.0, 2.0], [-1.0, -2.0], [3.0], [-0.5]):
            assert run(static, values) == run(f, values)
