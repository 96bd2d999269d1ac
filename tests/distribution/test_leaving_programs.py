"""A distribution that a Program makes leaves it, with gradients, and is saved as what has its parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import distribution, nn


class Policy(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        mean, spread = self.fc(x).chunk(2, -1)
        normal = distribution.Normal(mean, nn.functional.softplus(spread))
        return {"normal": normal, "again": normal, "choice": distribution.Categorical(self.fc(x))}


@pytest.mark.parametrize("rows", [1, 4])
def test_what_leaves_is_the_distribution(rows: int) -> None:
    paddle.seed(0)
    layer = Policy()
    static = paddle.jit.to_static(Policy(), full_graph=True)
    static.set_state_dict(layer.state_dict())
    for n in (rows, rows + 1):
        x, grads = paddle.randn([n, 3]), []
        for one in (layer, static):
            found = one(x)
            assert found["normal"] is found["again"]
            assert type(found["choice"]) is distribution.Categorical
            assert found["normal"].batch_shape == (n, 2)
            loss = found["normal"].log_prob(x[:, :2]).sum() + found["choice"].entropy().sum()
            loss.backward()
            grads.append((loss.numpy(), one.fc.weight.grad.numpy()))
            one.fc.weight.clear_gradient()
        for a, b in zip(*grads, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_file_has_its_parameters(tmp_path: Path) -> None:
    layer = Policy()
    paddle.jit.save(layer, tmp_path / "m", input_spec=[paddle.static.InputSpec([None, 3])])
    x = paddle.ones([2, 3])
    np.testing.assert_allclose(
        paddle.jit.load(tmp_path / "m")(x)["normal"].scale.numpy(), layer(x)["normal"].scale.numpy(), rtol=1e-6
    )
