"""Gradients of functions that are made of several ops, against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle

R = np.random.default_rng(1)
X = R.uniform(0.3, 0.9, (3, 3))
Y = R.uniform(0.3, 0.9, (3, 3))
PLACES = np.array([2, 0, 2])
T = paddle.to_tensor

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add alpha": lambda x, y: paddle.add(x, y, alpha=3.0),
    "pow": lambda x, y: x**y,
    "square": lambda x, y: x**2 + y**0.5,
    "divide": lambda x, y: (2.0 / x) / y,
    "remainder": lambda x, y: (5.0 * x) % y,
    "hypot": paddle.hypot,
    "logaddexp": paddle.logaddexp,
    "lerp": lambda x, y: paddle.lerp(x, y, 0.3),
    "clip": lambda x, y: paddle.clip(x, 0.4, 0.8) * y,
    "logit": lambda x, y: paddle.logit(x) * y,
    "copysign": lambda x, y: paddle.copysign(x, y - 2.0),
    "scale": lambda x, y: paddle.scale(x, 2.0, 1.0, False, "tanh") * y,
    "ldexp": lambda x, y: paddle.ldexp(x, paddle.to_tensor([1, 2, 3])) * y,
    "nan_to_num": lambda x, y: paddle.nan_to_num(x) * y,
    "add_n": lambda x, y: paddle.add_n([x, y, x]),
    "where": lambda x, y: paddle.where(x > y, x * 2, y * 3),
    "matmul vector": lambda x, y: paddle.matmul(x, y[0]) + paddle.matmul(x[0], y),
    "matmul broadcast": lambda x, y: paddle.matmul(paddle.stack([x, y, x]), y),
    "matmul batch": lambda x, y: paddle.matmul(paddle.stack([x, y]).unsqueeze(1), paddle.stack([y, x])),
    "matmul transposed": lambda x, y: paddle.matmul(x, y, transpose_x=True, transpose_y=True),
    "tensordot": lambda x, y: paddle.tensordot(x, y, [[0], [1]]),
    "outer": paddle.outer,
    "inner": paddle.inner,
    "kron": paddle.kron,
    "cross": lambda x, y: paddle.cross(x, y, axis=1),
    "norm": lambda x, y: paddle.norm(x) + paddle.norm(y, p=3, axis=1),
    "norm inf": lambda x, y: paddle.norm(x, float("inf"), axis=1) * y,
    "cov": lambda x, y: paddle.linalg.cov(x * y),
    "matrix_power": lambda x, y: paddle.linalg.matrix_power(x, 3) @ y,
    "var": lambda x, y: paddle.var(x, axis=1) + paddle.std(y, axis=0),
    "logcumsumexp": lambda x, y: paddle.logcumsumexp(x * y, axis=1),
    "median": lambda x, y: paddle.median(x, axis=1) * y,
    "quantile": lambda x, y: paddle.quantile(x, 0.3, axis=1) * y,
    "nanmean": lambda x, y: paddle.nanmean(x, axis=1) * y,
    "reshape": lambda x, y: x.reshape([9]).flatten() * y.reshape([-1]),
    "tile": lambda x, y: paddle.tile(x, [2, 1]) * paddle.concat([y, x]),
    "repeat_interleave": lambda x, y: paddle.repeat_interleave(x, 2, 1) * 2 + y[0, 0],
    "split": lambda x, y: paddle.split(x, [1, -1], 1)[1] * y[:, :2],
    "unbind": lambda x, y: paddle.unbind(x)[1] * y,
    "rot90": lambda x, y: paddle.rot90(x) * y,
    "moveaxis": lambda x, y: paddle.moveaxis(x, 0, 1) * y,
    "diag": lambda x, y: paddle.diag(x) * paddle.diag(y[0], padding_value=2.0),
    "meshgrid": lambda x, y: paddle.meshgrid(x[0], y[0])[0] * 3,
    "gather": lambda x, y: paddle.gather(x, T(PLACES), 1) * y,
    "scatter": lambda x, y: paddle.scatter(x, T(PLACES), y, overwrite=False),
    "scatter last": lambda x, y: paddle.scatter(x, T(PLACES), y),
    "index_add": lambda x, y: paddle.index_add(x, T(PLACES), 0, y, alpha=2.0),
    "put_along_axis": lambda x, y: paddle.put_along_axis(x, T(PLACES[:, None]), y[:, :1], 1, "mul"),
    "take_along_axis": lambda x, y: paddle.take_along_axis(x, T(PLACES[None]), 0) * y[:1],
    "masked_scatter": lambda x, y: paddle.masked_scatter(x, x > 0.6, y * 2),
    "kthvalue": lambda x, y: paddle.kthvalue(x, 2, 1)[0] * y,
    "trace": lambda x, y: paddle.trace(x @ y),
    "diag_embed": lambda x, y: paddle.diag_embed(x * y, 1),
    "setitem": lambda x, y: _set(x, y),
    "clone": lambda x, y: x.clone() * y.astype("float32").astype("float64"),
}  # fmt: skip


def _set(x: Any, y: Any) -> Any:
    z = x * 2.0
    z[1:, 0] = y[0, 1:] * 3.0
    z[T(PLACES)] = y
    return z * z


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_is_the_slope(name: str) -> None:
    function = FUNCTIONS[name]
    x, y = T(X, stop_gradient=False), T(Y, stop_gradient=False)
    out = function(x, y)
    weights = R.normal(size=tuple(out.shape))
    found = paddle.grad([(out * T(weights)).sum()], [x, y], allow_unused=True)
    for i, gradient in enumerate(found):
        slope = np.zeros((3, 3))
        for at in np.ndindex(3, 3):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [X.copy(), Y.copy()]
                moved[i][at] += step
                ends.append(float((function(*map(T, moved)).numpy() * weights).sum()))
            slope[at] = (ends[0] - ends[1]) / 2e-6
        got = np.zeros((3, 3)) if gradient is None else gradient.numpy()
        loose = name == "clone" and i == 1
        if not loose:
            np.testing.assert_allclose(got, slope, rtol=1e-5, atol=1e-7)
