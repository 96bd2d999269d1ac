"""Workloads that run on the emulated device: each makes a function that runs a step and gives arrays of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.runtime.backends.cuda.program import CudaProgram

Step = Callable[[], list[np.ndarray]]


def array(*shape: int) -> Any:
    """Return numbers that are the same in each run."""
    size = int(np.prod(shape))
    return paddle.to_tensor(np.sin(np.arange(size) * 0.7).reshape(shape).astype("float32"))


def _trained(model: Any, loss_of: Callable[[], Any], optimizer: Any) -> Step:
    @paddle.jit.to_static
    def step() -> Any:
        loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return lambda: [step().numpy(), *(p.numpy() for p in model.parameters())]


def lenet() -> Step:
    """Adam's step of LeNet."""
    net = paddle.vision.models.LeNet()
    x, y = array(4, 1, 28, 28), paddle.to_tensor(np.arange(4).reshape(4, 1))
    return _trained(net, lambda: F.cross_entropy(net(x), y), paddle.optimizer.Adam(parameters=net.parameters()))


def lstm() -> Step:
    """An LSTM over a sequence."""
    net = paddle.nn.LSTM(8, 64)
    x, run = array(1, 6, 8), paddle.jit.to_static(lambda x: net(x)[0])
    return lambda: [run(x).numpy()]


def policy() -> Step:
    """A policy in a cart-pole: until the pole falls, or so many steps."""
    hidden, out = paddle.nn.Linear(4, 16), paddle.nn.Linear(16, 2)

    @paddle.jit.to_static
    def rollout(state: Any) -> Any:
        steps = paddle.zeros([], "int64")
        while (state[0, 2].abs() < 0.5) and (steps < 20):
            p = F.softmax(out(paddle.tanh(hidden(state))))
            force = (p[0, 1] - p[0, 0]) * 10
            position, speed, angle, turning = state[0, 0], state[0, 1], state[0, 2], state[0, 3]
            pull = (force + 0.05 * turning * turning * paddle.sin(angle)) / 1.1
            speeding = (9.8 * paddle.sin(angle) - paddle.cos(angle) * pull) / (
                0.5 * (4 / 3 - 0.1 * paddle.cos(angle) ** 2 / 1.1)
            )
            parts = [position + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * speeding]
            state, steps = paddle.stack(parts).reshape([1, 4]), steps + 1
        return state, steps

    start = array(1, 4) * 0.1
    return lambda: [v.numpy() for v in rollout(start)]


def transformer() -> Step:
    """A step of gradient descent on one block of a transformer."""
    net = paddle.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0)
    x = array(2, 10, 32)
    descent = paddle.optimizer.SGD(parameters=net.parameters(), learning_rate=0.1)
    return _trained(net, lambda: (net(x) ** 2).mean(), descent)


WORKLOADS = {f.__name__: f for f in (lenet, lstm, policy, transformer)}


def results(workload: Callable[[], Step], device: str, runs: int = 2) -> list[np.ndarray]:
    """Return what the last of some steps gives on a device."""
    paddle.set_device(device)
    try:
        paddle.seed(3)
        step = workload()
        return [step() for _ in range(runs)][-1]
    finally:
        paddle.set_device("cpu")


@contextmanager
def programs_made(patch: pytest.MonkeyPatch) -> Iterator[list[CudaProgram]]:
    """Collect the Programs that are made ready to run on the device."""
    made: list[CudaProgram] = []
    init = CudaProgram.__init__

    def note(self: CudaProgram, *operands: Any) -> None:
        init(self, *operands)
        made.append(self)

    with patch.context() as here:
        here.setenv("DY2ST_CUDA", "emulated")
        here.setenv("DY2ST_BACKEND", "native")
        here.setattr(CudaProgram, "__init__", note)
        yield made
