"""Whole workloads: loops whose length only the run tells, recurrent nets, fused chains; dy2st runs them as native code.

torch runs eagerly, because torch.compile breaks the graph at each of these loops. JAX's loops are `lax.while_loop` and
`lax.scan`, jitted. The number of threads is each package's own choice; dy2st's native code has one.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from harness import Job, Row

RANDOM = np.random.default_rng(0)


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return arrays of small random numbers."""
    return [(RANDOM.standard_normal(shape) * 0.2).astype("float32") for shape in shapes]


# ---- how each package runs a function of arrays ---------------------------------------------------------------------
def with_dy2st(function: Callable[..., Any], given: list[np.ndarray]) -> Callable[[], Job]:
    """Run under `to_static`, without gradients; all but the first array are state of the function, as weights are."""

    def prepare() -> Job:
        paddle = importlib.import_module("dy2st")
        first, *state = [paddle.to_tensor(x) for x in given]
        spec = [paddle.static.InputSpec([None, *given[0].shape[1:]] if given[0].ndim else [], "float32")]
        static = paddle.jit.to_static(lambda x: function(paddle, x, *state), input_spec=spec, full_graph=True)

        def job() -> object:
            with paddle.no_grad():
                return static(first)

        job()
        return job

    return prepare


def with_torch(function: Callable[..., Any], given: list[np.ndarray]) -> Callable[[], Job]:
    """Run eagerly, without gradients."""

    def prepare() -> Job:
        torch = importlib.import_module("torch")
        tensors = [torch.from_numpy(x) for x in given]

        def job() -> object:
            with torch.no_grad():
                return function(torch, *tensors)

        return job

    return prepare


def with_jax(function: Callable[..., Any], given: list[np.ndarray]) -> Callable[[], Job]:
    """Run jitted."""

    def prepare() -> Job:
        jax = importlib.import_module("jax")
        jitted = jax.jit(lambda *xs: function(jax, *xs))
        tensors = [jax.numpy.asarray(x) for x in given]
        return lambda: jitted(*tensors).block_until_ready()

    return prepare


def row(name: str, given: list[np.ndarray], python: Callable[..., Any], jax: Callable[..., Any]) -> Row:
    """Make a row of one function in Python, which dy2st and torch share, and one for JAX."""
    candidates: Mapping[str, Callable[[], Job]] = {
        "dy2st": with_dy2st(python, given),
        "torch eager": with_torch(python, given),
        "jax jit": with_jax(jax, given),
    }
    return Row(name, candidates, repeats=9)


# ---- the workloads --------------------------------------------------------------------------------------------------
def counter(p: Any, n: Any) -> Any:
    """Count to n, a float, one by one."""
    i = p.zeros([])
    while i < n:
        i = i + 1
    return i


def counter_jax(jax: Any, n: Any) -> Any:
    """Do the same."""
    return jax.lax.while_loop(lambda i: i < n, lambda i: i + 1, jax.numpy.zeros([]))


def newton(p: Any, a: Any) -> Any:
    """Square roots by Newton's method, until nothing moves by more than 1e-6."""
    x, change = a * 0.5 + 0.5, p.ones([])
    while change > 1e-6:
        y = 0.5 * (x + a / x)
        change = (y - x).abs().max()
        x = y
    return x


def newton_jax(jax: Any, a: Any) -> Any:
    """Do the same."""

    def turn(state: Any) -> Any:
        y = 0.5 * (state[0] + a / state[0])
        return y, abs(y - state[0]).max()

    return jax.lax.while_loop(lambda s: s[1] > 1e-6, turn, (a * 0.5 + 0.5, jax.numpy.ones([])))[0]


def lorenz(p: Any, state: Any, n: Any) -> Any:
    """N steps of Runge and Kutta through Lorenz' equations."""

    def slope(s: Any) -> Any:
        x, y, z = s[0], s[1], s[2]
        return p.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.6667 * z])

    i, h = p.zeros([]), 0.01
    while i < n:
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        d = slope(state + h * c)
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        i = i + 1
    return state


def lorenz_jax(jax: Any, state: Any, n: Any) -> Any:
    """Do the same."""

    def slope(s: Any) -> Any:
        x, y, z = s
        return jax.numpy.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.6667 * z])

    def turn(carried: Any) -> Any:
        s, i = carried
        a = slope(s)
        b = slope(s + 0.005 * a)
        c = slope(s + 0.005 * b)
        d = slope(s + 0.01 * c)
        return s + 0.01 / 6 * (a + 2 * b + 2 * c + d), i + 1

    return jax.lax.while_loop(lambda carried: carried[1] < n, turn, (state, jax.numpy.zeros([])))[0]


def _lstm_step(tanh: Any, sigmoid: Any, z: Any, c: Any) -> tuple[Any, Any]:
    n = c.shape[1]
    i, f, g, o = z[:, :n], z[:, n : 2 * n], z[:, 2 * n : 3 * n], z[:, 3 * n :]
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def lstm(p: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """An LSTM over x, step by step in a `while`."""
    t = 0
    while t < x.shape[0]:
        h, c = _lstm_step(p.tanh, p.nn.functional.sigmoid, x[t] @ w + h @ u + b, c)
        t += 1
    return h


def lstm_jax(jax: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """Do the same by a scan."""

    def step(state: Any, row: Any) -> Any:
        return _lstm_step(jax.numpy.tanh, jax.nn.sigmoid, row @ w + state[0] @ u + b, state[1]), None

    return jax.lax.scan(step, (h, c), x)[0][0]


def lstm_arrays(batch: int, width: int) -> list[np.ndarray]:
    """Return what an LSTM of 100 steps takes."""
    return arrays(
        (100, batch, width), (batch, width), (batch, width), (width, 4 * width), (width, 4 * width), (4 * width,)
    )


def softmax(p: Any, x: Any) -> Any:
    """Softmax of rows."""
    return p.nn.functional.softmax(x, 1) if p.__name__ == "torch" else p.nn.functional.softmax(x)


def norm_gelu(p: Any, x: Any, w: Any, b: Any) -> Any:
    """gelu(layer_norm(x))."""
    f = p.nn.functional
    return f.gelu(f.layer_norm(x, [1024], w, b))


def norm_gelu_jax(jax: Any, x: Any, w: Any, b: Any) -> Any:
    """Do the same."""
    off = x - x.mean(1, keepdims=True)
    y = off / jax.numpy.sqrt((off * off).mean(1, keepdims=True) + 1e-5) * w + b
    return jax.nn.gelu(y, approximate=False)


def chain(p: Any, x: Any) -> Any:
    """Twelve operations, element by element."""
    for _ in range(3):
        x = p.tanh(x) * 0.5 + x - 0.1
    return x


ROWS = [
    row("count to 1e6 in a while", [np.array(1e6, "float32")], counter, counter_jax),
    row("Newton on 1e5 elements", [RANDOM.random(100_000).astype("float32") + 0.5], newton, newton_jax),
    row("Lorenz, 1000 steps", [np.ones(3, "float32"), np.array(1000, "float32")], lorenz, lorenz_jax),
    row("LSTM, 100 steps, 1 x 64", lstm_arrays(1, 64), lstm, lstm_jax),
    row("LSTM, 100 steps, 1 x 256", lstm_arrays(1, 256), lstm, lstm_jax),
    row("LSTM, 100 steps, 32 x 64", lstm_arrays(32, 64), lstm, lstm_jax),
    row("LSTM, 100 steps, 32 x 256", lstm_arrays(32, 256), lstm, lstm_jax),
    row("softmax 4096 x 1024", arrays((4096, 1024)), softmax, lambda jax, x: jax.nn.softmax(x, 1)),
    row("gelu(layer_norm) 4096 x 1024", arrays((4096, 1024), (1024,), (1024,)), norm_gelu, norm_gelu_jax),
    row("12 operations on 4M", arrays((4096, 1024)), chain, lambda jax, x: chain(jax.numpy, x)),
]
