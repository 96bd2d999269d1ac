"""Learning rates that a Program changes: steps of schedules in branches and loops, rates read behind a step, set_lr."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

L = paddle.optimizer.lr
T = paddle.to_tensor
POS, NEG = [1.0, 2.0, -3.0, 4.0], [-1.0, -2.0]
SCHEDULES: dict[str, Callable[[], Any]] = {
    "noam": lambda: L.NoamDecay(10, 5, 0.1),
    "exponential": lambda: L.ExponentialDecay(0.1, 0.5),
    "natural": lambda: L.NaturalExpDecay(0.1, 0.5),
    "inverse": lambda: L.InverseTimeDecay(0.1, 0.5),
    "polynomial": lambda: L.PolynomialDecay(0.1, 5, cycle=True),
    "piecewise": lambda: L.PiecewiseDecay([2, 4], [0.1, 0.05, 0.01]),
    "step": lambda: L.StepDecay(0.1, 2, 0.5),
    "milestones": lambda: L.MultiStepDecay(0.1, [2, 4], 0.5),
    "lambda": lambda: L.LambdaDecay(0.1, lambda epoch: 0.9**epoch),
    "multiplicative": lambda: L.MultiplicativeDecay(0.1, lambda epoch: 0.9),
    "linear": lambda: L.LinearLR(0.1, 5),
    "cosine": lambda: L.CosineAnnealingDecay(0.1, 5),
    "restarts": lambda: L.CosineAnnealingWarmRestarts(0.1, 3),
    "one_cycle": lambda: L.OneCycleLR(0.1, 20),
    "cyclic": lambda: L.CyclicLR(0.01, 0.1, 3),
    "warmup": lambda: L.LinearWarmup(0.1, 3, 0.0, 0.1),
    "warmup_of_steps": lambda: L.LinearWarmup(L.StepDecay(0.1, 2, 0.5), 3, 0.0, 0.1),
}


def in_a_branch(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        loss = train(x)
        if loss > 0:
            rate.step()
        train(x)
        return optimizer.get_lr()

    return function


def in_a_loop(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        for _ in range(turns):
            train(x)
            rate.step()
        return optimizer.get_lr(), rate.last_epoch, rate.state_dict()

    return function


def behind_a_step(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        train(x)
        rate.step()
        train(x)
        seen = optimizer.get_lr(), rate.last_lr, rate.get_lr()
        rate.step()
        return seen, rate(), rate.last_epoch

    return function


def at_an_epoch(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        rate.step(4)
        train(x)
        return optimizer.get_lr()

    return function


def of_a_metric(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        loss = train(x)
        rate.step(loss)
        train(x)
        if loss > 2:
            rate.step(float(loss) * 2)
        return optimizer.get_lr(), rate.last_epoch

    return function


def set_in_line(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        train(x)
        optimizer.set_lr(optimizer.get_lr() * 0.5)
        train(x)
        return optimizer.get_lr()

    return function


def set_in_a_branch_and_a_loop(rate: Any, optimizer: Any, train: Any) -> Any:
    def function(x, turns):
        if train(x) > 0:
            optimizer.set_lr(abs(x.sum().item()) * 0.01)
        for _ in range(turns):
            train(x)
            optimizer.set_lr(optimizer.get_lr() * 0.9)
        return optimizer.get_lr()

    return function


def outcome(make: Any, build: Any, static: bool, kind: Any) -> list[Any]:
    """Return what four calls give, and leave behind."""
    rate = make()
    weight = T([1.0, 2.0], stop_gradient=False)
    optimizer = kind(rate, parameters=[weight])

    def train(x):
        loss = (weight * x.sum()).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    function = build(rate, optimizer, train)
    run = paddle.jit.to_static(function, full_graph=True) if static else function
    seen: list[Any] = []
    for x, turns in ((POS, 3), (NEG, 1), (POS, 0), (POS, 2)):
        seen += [run(T(x), T(turns)), weight.numpy(), optimizer.get_lr()]
        seen.append(rate.state_dict() if isinstance(rate, L.LRScheduler) else None)
    return seen


def agree(make: Any, build: Any, kind: Any = paddle.optimizer.SGD) -> None:
    flat = [_flat(outcome(make, build, static, kind)) for static in (False, True)]
    assert [type(x) for x in flat[0]] == [type(x) for x in flat[1]]
    for eager, static in zip(*flat, strict=True):
        if eager is None or isinstance(eager, str):
            assert static == eager
        else:
            np.testing.assert_allclose(static, eager, rtol=1e-5, atol=1e-12)


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [i for key, value in x.items() for i in (key, *_flat(value))]
    return [i for part in x for i in _flat(part)] if isinstance(x, (list, tuple)) else [x]


@pytest.mark.slow
@pytest.mark.parametrize("build", [in_a_branch, in_a_loop, behind_a_step, at_an_epoch])
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_goes_on_inside_of_a_program(name: str, build: Any) -> None:
    agree(SCHEDULES[name], build)


@pytest.mark.parametrize("build", [in_a_branch, in_a_loop, behind_a_step])
def test_a_schedule_goes_on_inside_of_a_program(build: Any) -> None:
    agree(SCHEDULES["step"], build)


def test_a_schedule_by_a_metric_of_the_run() -> None:
    agree(lambda: L.ReduceOnPlateau(0.1, patience=0, factor=0.5, cooldown=1), of_a_metric)


@pytest.mark.parametrize("kind", [paddle.optimizer.SGD, paddle.optimizer.Adam])
@pytest.mark.parametrize("build", [set_in_line, set_in_a_branch_and_a_loop])
def test_set_lr_inside_of_a_program(build: Any, kind: Any) -> None:
    agree(lambda: 0.1, build, kind)
