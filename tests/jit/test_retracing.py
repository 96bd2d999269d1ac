"""A function that is traced again and again says so, once."""

import warnings
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.jit.dispatch.retrace_warning import MANY, RetraceWarning


class Mode:
    name = "0"


def told(function: Any, calls: list[tuple[Any, ...]]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for mode, *arguments in calls:
            Mode.name = mode
            function(*arguments)
    assert {(w.category, w.filename) for w in found} <= {(RetraceWarning, __file__)}
    return [str(w.message) for w in found]


def by_mode(x: Any) -> Any:
    return x * 2 if Mode.name == "twice" else x


def used_up(x: Any, items: Any) -> Any:
    for item in items:
        x = x + item
    return x


def test_the_guard_that_changes_is_named_once() -> None:
    found = told(paddle.jit.to_static(by_mode), [(str(i), paddle.ones([2])) for i in range(MANY + 4)])
    assert len(found) == 1
    assert found[0].startswith("`by_mode` (")
    assert "was traced 16 times, the last time because Mode.name has" in found[0]
    assert "it was '14' and is '15'" in found[0]


def test_calls_that_are_traced_for_themselves_count() -> None:
    calls = [("", paddle.ones([2]), iter([1, 2])) for _ in range(MANY)]
    found = told(paddle.jit.to_static(used_up), calls)
    assert len(found) == 1
    assert "the last time because an iterator is used up" in found[0]


@pytest.mark.parametrize("times", [1, 3 * MANY])
def test_calls_that_find_their_program_are_silent(times: int) -> None:
    assert told(paddle.jit.to_static(by_mode), [("same", paddle.ones([i + 1])) for i in range(times)]) == []


class CountingDropout(paddle.nn.Dropout):
    """A layer of the package with more attributes, which it changes."""

    calls = 0

    def forward(self, input: Any) -> Any:
        self.calls += 1
        return super().forward(input) * 2


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [
        (lambda: paddle.nn.Dropout(0.0), "p", 1.0),
        (lambda: paddle.nn.LayerNorm(3), "_epsilon", 0.5),
        (lambda: paddle.nn.LeakyReLU(0.1), "_negative_slope", 0.7),
        (lambda: paddle.nn.Sequential(paddle.nn.Softmax(0)), "0._axis", 1),
        pytest.param(
            lambda: CountingDropout(0.0),
            "p",
            1.0,
            marks=pytest.mark.xfail(reason="what a class has makes a fourth Program, of the same values", strict=True),
        ),
    ],
    ids=["Dropout", "LayerNorm", "LeakyReLU", "inside of a Sequential", "a class made of one"],
)
def test_settings_of_layers_that_change_are_seen(layer: Any, name: str, value: float) -> None:
    made = layer()
    *inside, last = name.split(".")
    owner = made[int(inside[0])] if inside else made
    static = paddle.jit.to_static(lambda x: made(x), full_graph=True)
    x = paddle.to_tensor([[1.0, -2.0, 4.0], [3.0, 0.5, -1.0]])
    before = getattr(owner, last)
    for setting in (before, before, value, value, before):
        setattr(owner, last, setting)
        np.testing.assert_allclose(static(x).numpy(), made(x).numpy(), rtol=1e-6)
    assert len(static.program_cache) <= 3  # one for each setting, and a count that changes becomes an input
    assert f".{last} of a {type(owner).__name__} has changed" in str(static.explain())


@pytest.mark.parametrize(
    ("kind", "name"),
    [("ClipGradByGlobalNorm", "clip_norm"), ("ClipGradByNorm", "clip_norm"), ("ClipGradByValue", "max")],
)
def test_a_bound_of_a_clipping_that_changes_becomes_an_input(kind: str, name: str) -> None:
    def trained(static: bool) -> tuple[list[Any], int]:
        p = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
        clip = getattr(paddle.nn, kind)(1.0)
        sgd = paddle.optimizer.SGD(0.1, parameters=[p], grad_clip=clip)

        def step(x: Any) -> Any:
            (p * x).sum().backward()
            sgd.step()
            sgd.clear_grad()
            return p * 1

        run: Any = paddle.jit.to_static(step, full_graph=True) if static else step
        left: list[Any] = []
        for bound in (1.0, 1.0, 2.0, 0.5, 3.0):
            setattr(clip, name, bound)
            left.append(run(paddle.to_tensor([3.0, 4.0])).tolist())
        return left, len(run.program_cache) if static else 0

    (found, programs), (wanted, _) = trained(True), trained(False)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert programs <= 3  # the first has no gradients yet, the second a constant
