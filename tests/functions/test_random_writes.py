"""Random functions of in-place forms, views and kept operands: gradients are differences, or refused, in every tier."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError

CHOICES = ("mul_", "add_", "view", "row", "exp_", "tanh_", "itself", "keep", "reshaped", "new")


def function_of(plan):
    """A function of a vector of 4 numbers that does what the plan says."""

    def run(x):
        y = x * 1.0
        kept = []
        for what, i, c in plan:
            if what == "mul_":
                y.multiply_(paddle.to_tensor(c, dtype="float64"))
            elif what == "add_":
                y.add_(kept[i % len(kept)] if kept else paddle.to_tensor(c, dtype="float64"))
            elif what == "view":
                v = y[i % 3 : i % 3 + 2]
                v.multiply_(v * c)
            elif what == "row":
                y[i % 4] = y[(i + 1) % 4] * c
            elif what == "exp_":
                y.scale_(0.3)
                y.exp_()
            elif what == "tanh_":
                y.tanh_()
            elif what == "itself":
                y.multiply_(y)
            elif what == "keep":
                kept.append(y[i % 3 : i % 3 + 2].sum() if i % 2 else y * c)
            elif what == "reshaped":
                v = y.reshape([2, -1])
                v[0].add_(v[1])
            else:
                kept.append(y)
                y = y - c
        total = (y * y).sum()
        for k in kept:
            total = total + (k * 1.5).sum()
        return total

    return run


@pytest.mark.parametrize("seed", range(40))
def test_gradients_are_differences(seed):
    rng = np.random.default_rng(seed)
    draw = lambda: (CHOICES[rng.integers(len(CHOICES))], int(rng.integers(10)), float(rng.uniform(0.3, 1.2)))
    f = function_of([draw() for _ in range(rng.integers(2, 7))])
    static = paddle.jit.to_static(f, full_graph=True) if seed % 4 == 0 else None
    for run in [f] if static is None else [f, static, static, static]:
        start = rng.uniform(0.2, 1, 4)
        steps = np.eye(4) * 1e-6
        wanted = [(float(f(paddle.to_tensor(start + e))) - float(f(paddle.to_tensor(start - e)))) / 2e-6 for e in steps]
        x = paddle.to_tensor(start, stop_gradient=False)
        try:
            run(x).backward()
        except AutodiffError as error:
            assert "changed in place" in str(error)  # noqa: PT017
            continue
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-4, atol=1e-5)
