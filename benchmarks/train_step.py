"""What a train step costs by mode: eager, `to_static` with the optimizer outside, a Program by hand and `Executor`.

Whole steps as one Program, beside other packages, are in suite/training.py.
"""

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


def executor_step(package: str) -> Callable[[], Job]:
    """Make a step of a Program that is built by hand: `cond` on a random number, `minimize`, `Executor.run`."""

    def prepare() -> Job:
        paddle = importlib.import_module(package)
        static = paddle.static
        paddle.enable_static()
        try:
            main, startup = static.Program(), static.Program()
            with static.program_guard(main, startup):
                x, y = static.data("x", [None, INPUT]), static.data("y", [None, 1])
                linears = [paddle.nn.Linear(*sizes) for sizes in ((INPUT, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))]
                relu = paddle.nn.functional.relu
                hidden = relu(linears[0](x))
                twice = paddle.rand([1]) > 0.5
                hidden = static.nn.cond(twice, lambda: relu(linears[1](hidden)), lambda: paddle.assign(hidden))
                loss = paddle.nn.functional.mse_loss(linears[2](hidden), y)
                paddle.optimizer.SGD(learning_rate=0.01).minimize(loss)
            executor = static.Executor(paddle.CPUPlace())
            executor.run(startup)
        finally:
            paddle.disable_static()
        return lambda: executor.run(main, feed={"x": X, "y": Y}, fetch_list=[loss])

    return prepare


def policy_step(static: bool) -> Callable[[], Job]:
    """Make a step of the policy network of seed 001: a second layer by the input's sign, dropout, softmax, Adam."""

    def prepare() -> Job:
        paddle = importlib.import_module("dy2st")
        functional = paddle.nn.functional

        class Policy(paddle.nn.Layer):
            def __init__(self):
                super().__init__()
                self.affine1, self.affine2 = paddle.nn.Linear(4, 128), paddle.nn.Linear(128, 2)
                self.extra = paddle.nn.Linear(128, 128)

            def forward(self, x):
                hidden = functional.relu(functional.dropout(self.affine1(x), 0.6))
                if x.sum() > 0:
                    hidden = functional.relu(self.extra(hidden))
                self.seen = hidden
                return functional.softmax(self.affine2(hidden), axis=1)

        paddle.seed(0)
        policy = paddle.jit.to_static(Policy()) if static else Policy()
        optimizer = paddle.optimizer.Adam(learning_rate=1e-3, parameters=policy.parameters())
        states = [paddle.to_tensor(x) for x in RANDOM.standard_normal((16, 1, 4)).astype("float32")]
        turn = [0]

        def step() -> None:
            turn[0] += 1
            (-paddle.log(policy(states[turn[0] % 16])[0, 0])).backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)

        return step

    return prepare


ROWS = (
    Row(
        f"dygraph tutorial, a step of SGD, batch {BATCH}",
        {
            "dy2st eager": paddle_step("dy2st", static=False),
            "dy2st to_static": paddle_step("dy2st", static=True),
            "dy2st executor": executor_step("dy2st"),
            "paddle eager": paddle_step("paddle", static=False),
            "paddle to_static": paddle_step("paddle", static=True),
            "paddle executor": executor_step("paddle"),
        },
    ),
    Row(
        "policy of seed 001, a step of Adam, batch 1",
        {"dy2st eager": policy_step(static=False), "dy2st to_static": policy_step(static=True)},
    ),
)
