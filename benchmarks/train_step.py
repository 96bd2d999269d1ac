"""One training step of the dygraph tutorial's model: two or three linear layers, by a random choice in `forward`."""

import importlib
from collections.abc import Callable

import numpy as np
from harness import Job, Row

BATCH, INPUT, HIDDEN = 64, 128, 128
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((BATCH, INPUT)).astype("float32")
Y = RANDOM.standard_normal((BATCH, 1)).astype("float32")


def paddle_step(package: str, static: bool) -> Callable[[], Job]:
    """Make a step with Paddle's names, `package` being dy2st or paddle."""

    def prepare() -> Job:
        paddle = importlib.import_module(package)

        class Model(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.linear1 = paddle.nn.Linear(INPUT, HIDDEN)
                self.linear2 = paddle.nn.Linear(HIDDEN, HIDDEN)
                self.linear3 = paddle.nn.Linear(HIDDEN, 1)

            def forward(self, x):
                x = paddle.nn.functional.relu(self.linear1(x))
                if paddle.rand([1]) > 0.5:
                    x = paddle.nn.functional.relu(self.linear2(x))
                return self.linear3(x)

        paddle.seed(0)
        model = paddle.jit.to_static(Model()) if static else Model()
        loss_of = paddle.nn.MSELoss()
        optimizer = paddle.optimizer.SGD(learning_rate=0.01, parameters=model.parameters())
        x, y = paddle.to_tensor(X), paddle.to_tensor(Y)

        def step() -> None:
            loss_of(model(x), y).backward()
            optimizer.step()
            optimizer.clear_grad()

        return step

    return prepare


def torch_step() -> Job:
    torch = importlib.import_module("torch")
    relu, linear = torch.nn.functional.relu, torch.nn.Linear
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([linear(INPUT, HIDDEN), linear(HIDDEN, HIDDEN), linear(HIDDEN, 1)])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    x, y = torch.tensor(X), torch.tensor(Y)

    def step() -> None:
        hidden = relu(layers[0](x))
        if torch.rand(1) > 0.5:
            hidden = relu(layers[1](hidden))
        torch.nn.functional.mse_loss(layers[2](hidden), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


ROWS = (
    Row(
        f"dygraph tutorial, a step of SGD, batch {BATCH}",
        {
            "dy2st eager": paddle_step("dy2st", static=False),
            "dy2st to_static": paddle_step("dy2st", static=True),
            "torch eager": torch_step,
            "paddle eager": paddle_step("paddle", static=False),
            "paddle to_static": paddle_step("paddle", static=True),
        },
    ),
)
