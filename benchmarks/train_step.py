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


def numpy_step() -> Job:
    """Make a step with the derivative written by hand."""
    random = np.random.default_rng(0)
    sizes = ((INPUT, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
    weights = [random.standard_normal(size).astype("float32") * 0.05 for size in sizes]
    biases = [np.zeros(size[1], "float32") for size in sizes]

    def step() -> None:
        used = [0, 1, 2] if random.random() > 0.5 else [0, 2]
        inputs = [X]
        for i in used:
            out = inputs[-1] @ weights[i] + biases[i]
            inputs.append(np.maximum(out, 0) if i < 2 else out)
        ct = 2 * (inputs[-1] - Y) / Y.size
        for at, i in reversed(list(enumerate(used))):
            if i < 2:
                ct = ct * (inputs[at + 1] > 0)
            before, dw, db = inputs[at], inputs[at].T @ ct, ct.sum(0)
            ct = ct @ weights[i].T if before is not X else ct
            weights[i] -= 0.01 * dw
            biases[i] -= 0.01 * db

    return step


def jax_step() -> Job:
    """Make a step that is compiled as a whole, the choice of the second layer inside."""
    jax = importlib.import_module("jax")
    jnp = jax.numpy
    keys = jax.random.split(jax.random.key(0), 4)
    sizes = ((INPUT, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
    made = [(jax.random.normal(k, s) * 0.05, jnp.zeros(s[1])) for k, s in zip(keys, sizes, strict=False)]
    state = {"parameters": made, "key": keys[3]}
    x, y = jnp.asarray(X), jnp.asarray(Y)

    def loss_of(parameters, key):
        (w1, b1), (w2, b2), (w3, b3) = parameters
        hidden = jax.nn.relu(x @ w1 + b1)
        twice = jax.random.uniform(key) > 0.5
        hidden = jax.lax.cond(twice, lambda h: jax.nn.relu(h @ w2 + b2), lambda h: h, hidden)
        return ((hidden @ w3 + b3 - y) ** 2).mean()

    @jax.jit
    def update(parameters, key):
        key, used = jax.random.split(key)
        slopes = jax.grad(loss_of)(parameters, used)
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, slopes), key

    def step() -> None:
        state["parameters"], state["key"] = update(state["parameters"], state["key"])
        jax.block_until_ready(state["parameters"])

    return step


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
            "numpy, by hand": numpy_step,
            "torch eager": torch_step,
            "jax jit": jax_step,
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
