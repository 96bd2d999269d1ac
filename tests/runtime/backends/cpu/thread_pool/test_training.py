"""Steps of training on several threads: the same bits as on one."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st import nn


class Attention(nn.Layer):
    """A block of a transformer."""

    def __init__(self):
        super().__init__()
        self.turn = nn.Linear(64, 192)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        """Attend with four heads."""
        rows, length = x.shape[0], x.shape[1]
        q, k, v = self.turn(self.norm(x)).reshape([rows, length, 3, 4, 16]).transpose([2, 0, 3, 1, 4])
        weights = F.softmax(q @ k.transpose([0, 1, 3, 2]) / 4, axis=-1)
        return x + (weights @ v).transpose([0, 2, 1, 3]).reshape([rows, length, 64])


class Recurrent(nn.Layer):
    """A cell in a loop."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(64, 96)

    def forward(self, x):
        """Run over the first axis."""
        h = c = paddle.zeros([x.shape[1], 96])
        i = 0
        while i < x.shape[0]:
            _, (h, c) = self.cell(x[i], (h, c))
            i += 1
        return h


MODELS = {
    "layers": (
        lambda: nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.BatchNorm1D(256), nn.Linear(256, 64), nn.Dropout(0.1)),
        (200, 128),
    ),
    "pictures": (
        lambda: nn.Sequential(
            nn.Conv2D(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(8 * 196, 10)
        ),
        (16, 3, 28, 28),
    ),
    "attention": (Attention, (8, 50, 64)),
    "loop": (Recurrent, (6, 40, 64)),
}


def _trained(make, x):
    paddle.seed(5)
    net = make()
    optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())

    @paddle.jit.to_static(full_graph=True)
    def step(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses = [step(paddle.to_tensor(x)).numpy() for _ in range(3)]
    return [*losses, *(parameter.numpy() for parameter in net.parameters())]


@pytest.mark.parametrize("name", [n if n == "pictures" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
def test_any_number_of_threads_gives_the_same_bits(name, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    make, shape = MODELS[name]
    x = rng.normal(size=shape).astype("float32")
    paddle.set_num_threads(1)
    alone = _trained(make, x)
    for count in (2, 4):
        paddle.set_num_threads(count)
        assert all(map(np.array_equal, _trained(make, x), alone))
