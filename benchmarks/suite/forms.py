"""The four forms in which a train step is written with Paddle's names: what is compiled, and by whom.

| label | what its user writes |
|---|---|
| dy2st | the whole step is one function under `to_static` |
| dy2st model | `net = to_static(net)`; loss, `backward()`, `step()` and `clear_grad()` are plain Python |
| dy2st eager | nothing is decorated |
| dy2st minimize | a Program built by hand, with `minimize`, run by an Executor |

PaddlePaddle has the middle two: a step as a whole is no function that its to_static takes.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.suite.workload import Arrays, Job, Side

RATE = 0.001
WHOLE, MODEL, EAGER, MINIMIZE = "whole", "model", "eager", "minimize"
LABELS = {WHOLE: "dy2st", MODEL: "dy2st model", EAGER: "dy2st eager", MINIMIZE: "dy2st minimize"}


def _itself(function: Any) -> Any:
    return function


@dataclass(frozen=True)
class Form:
    """What of a train step is compiled: `model` decorates the model, `whole` the step."""

    paddle: Any
    name: str

    def model(self, function: Any) -> Any:
        """Return a model as this form has it."""
        return self._static(function) if self.name == MODEL else function

    def whole(self, function: Any) -> Any:
        """Return a step, or all that is timed, as this form has it."""
        return self._static(function) if self.name == WHOLE else function

    def _static(self, function: Any) -> Any:
        return self.paddle.jit.to_static(function, full_graph=True)

    def step(self, loss_of: Callable[..., Any], weights: list[Any], rule: str) -> Callable[..., Any]:
        """Return a step: a function of what `loss_of` takes that gives the loss."""
        optimizer = getattr(self.paddle.optimizer, rule)(learning_rate=RATE, parameters=weights)
        if self.name == MINIMIZE:
            return _by_hand(self.paddle, loss_of, optimizer)

        def step(*args: Any) -> Any:
            loss = loss_of(*args)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return self.whole(step)


def _by_hand(paddle: Any, loss_of: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """Return a step whose Program is built at the first call, the first axis of what it takes left open."""
    program, startup = paddle.static.Program(), paddle.static.Program()
    run: Callable[..., Any] = paddle.static.Executor().run
    fetched: list[Any] = []

    def step(*args: Any) -> Any:
        names = [f"argument{i}" for i in range(len(args))]
        if not fetched:
            paddle.enable_static()
            with paddle.static.program_guard(program, startup):
                fed = [_fed(paddle, name, x) for name, x in zip(names, args, strict=True)]
                fetched.append(loss_of(*fed))
                optimizer.minimize(fetched[0])
            paddle.disable_static()
            run(startup)
        return run(program, feed=dict(zip(names, args, strict=True)), fetch_list=fetched)[0]

    return step


def _fed(paddle: Any, name: str, x: Any) -> Any:
    made = paddle.static.data(name, [None, *x.shape[1:]], str(x.dtype).rpartition(".")[2])
    made.stop_gradient = x.stop_gradient
    return made


def with_training(make: Callable[[Form, Arrays], Job], minimize: bool = True) -> dict[str, Side]:
    """Make the sides of dy2st in all forms, and of paddle, from a function of (form, arrays)."""

    def side(package: str, name: str) -> Side:
        return lambda given: make(Form(importlib.import_module(package), name), given)

    ours = {label: side("dy2st", name) for name, label in LABELS.items() if minimize or name != MINIMIZE}
    return ours | {"paddle to_static": side("paddle", MODEL), "paddle": side("paddle", EAGER)}
