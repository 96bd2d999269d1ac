"""Settings: every way in which a dict of them changes is counted, so that Programs look at them again."""

from collections.abc import Callable
from typing import Any

import pytest

import dy2st as paddle
from dy2st.runtime.eager.tracked_settings import Settings, changes


def by_or(options: Any) -> None:
    options |= {"epsilon": 0.5}


CHANGES: dict[str, Callable[[Any], Any]] = {
    "item": lambda options: options.__setitem__("epsilon", 0.5),
    "del": lambda options: options.__delitem__("epsilon"),
    "update": lambda options: options.update(epsilon=0.5),
    "or": by_or,
    "setdefault": lambda options: options.setdefault("epsilon", 0.5),
    "pop": lambda options: options.pop("epsilon"),
    "popitem": lambda options: options.popitem(),
    "clear": lambda options: options.clear(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_counted_and_made(name: str) -> None:
    options, plain, before = Settings(epsilon=0.1), {"epsilon": 0.1}, changes.count
    CHANGES[name](options)
    CHANGES[name](plain)
    assert type(options) is Settings
    assert options == plain
    assert changes.count > before


def test_methods_of_a_dict_that_change_it_are_all_written() -> None:
    writing = {"__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"}
    assert writing <= vars(Settings).keys()


@pytest.mark.parametrize("static", [False, True])
def test_options_joined_into_those_of_an_optimizer_are_seen(static: bool) -> None:
    p = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    adam = paddle.optimizer.Adam(1.0, parameters=[p])

    def step(x: Any) -> None:
        (p * x).sum().backward()
        adam.step()
        adam.clear_grad()

    call = paddle.jit.to_static(step, full_graph=True) if static else step
    for _ in range(3):
        call(paddle.to_tensor([1.0]))
    options = adam._options
    options |= {"epsilon": 1e6}  # in the dict, not in the attribute
    before = float(p)
    call(paddle.to_tensor([1.0]))
    assert float(p) == pytest.approx(before, abs=1e-5)  # a step of about 1e-6, of 1 with the old one
