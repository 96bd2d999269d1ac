"""GradScaler in eager mode: gradients divided and looked at natively from the second step on, as one by one before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.optimizer import recorded_updates

SHAPES = ((5, 7), (33,), (), (0, 3), (4, 3, 2))


def trained(dtype: str, bad: Any, count: int = 1) -> tuple[list[Any], list[Any]]:
    """Return parameters after some steps, `bad` by the number of a step, and what the scale was in each."""
    random = np.random.default_rng(1)
    parameters = [paddle.create_parameter(list(s), dtype) for s in SHAPES * count]
    for p in parameters:
        p.set_value(np.asarray(random.normal(size=tuple(p.shape)), dtype))
    opt = paddle.optimizer.Adam(0.1, parameters=parameters, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
    scaler = paddle.amp.GradScaler(init_loss_scaling=64.0, incr_every_n_steps=3)
    scales: list[Any] = []
    for step in range(8):
        for i, p in enumerate(parameters):
            g = np.asarray(random.normal(size=tuple(p.shape)) * 64, dtype)
            if step in bad and i == 1:
                g[3] = bad[step]
            p.grad = paddle.to_tensor(g)
        if step == 5:
            parameters[0].grad = None
        scaler.step(opt)
        scales.append([p.grad is not None and p.grad.numpy() for p in parameters])
        scaler.update()
        scales.append(scaler.get_init_loss_scaling())
    return [p.numpy() for p in parameters], scales


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bad", [{}, {0: np.inf, 3: np.nan, 4: -np.inf}])
@pytest.mark.parametrize("count", [1, 14])
def test_steps_are_those_without_native_code(dtype: str, bad: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    for backend in ("auto", "interpreter"):
        monkeypatch.setenv("DY2ST_BACKEND", backend)
        made.append(trained(dtype, bad, count))
    assert any("divide" in key[2] for key in recorded_updates._programs)
    tolerance = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12}[dtype]
    for x, y in zip(made[0][0], made[1][0], strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)
    for x, y in zip(made[0][1], made[1][1], strict=True):
        if isinstance(x, float):
            assert x == y
        else:
            for one, other in zip(x, y, strict=True):
                np.testing.assert_array_equal(one, other)


def test_who_holds_a_gradient_keeps_it_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2ST_BACKEND", "auto")
    x = paddle.create_parameter([4, 9], "float32")
    opt, scaler = paddle.optimizer.SGD(0.1, parameters=[x]), paddle.amp.GradScaler(init_loss_scaling=8.0)
    for _ in range(4):
        x.grad = paddle.full([4, 9], 16.0)
        gradient, array = x.grad, np.asarray(x.grad)
        scaler.step(opt)
        scaler.update()
        assert gradient.tolist() == array.tolist() == [[16.0] * 9] * 4
        assert x.grad.tolist() == [[2.0] * 9] * 4
