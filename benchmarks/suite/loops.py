"""Loops and branches over numbers: counting, one `if`, Newton's method, Lorenz' equations with adaptive steps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.suite.onnx_model import graph
from benchmarks.suite.sides import (
    inference,
    with_jax,
    with_numpy,
    with_onnx,
    with_paddle,
    with_torch,
    without_gradients,
)
from benchmarks.suite.workload import Arrays, Job, Row, Work


# ---- counting -------------------------------------------------------------------------------------------------------
def count(n: Any, i: Any) -> Any:
    """Count to n one by one."""
    while i < n:
        i = i + 1
    return i


def count_arrays(dtype: str) -> Callable[..., Arrays]:
    return lambda random, turns: {"n": np.array(turns, dtype), "i": np.array(0, dtype)}


def count_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    return without_gradients(paddle, static(count), *map(paddle.to_tensor, given.values()))


def count_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    return inference(torch, count, *map(torch.from_numpy, given.values()))


def count_jax(jax: Any, given: Arrays) -> Job:
    run = jax.jit(lambda n, i: jax.lax.while_loop(lambda i: i < n, lambda i: i + 1, i))
    arrays = [jax.numpy.asarray(x) for x in given.values()]
    return lambda: run(*arrays)


def count_numpy(given: Arrays) -> Job:
    n, i = (x[()].item() for x in given.values())
    return lambda: count(n, i)


def count_onnx(given: Arrays) -> tuple[Any, Arrays]:
    dtype = given["i"].dtype
    body = graph("body")
    body.input("turn", np.zeros((), "int64"))
    body.input("go", np.zeros((), "bool"))
    body.input("before", given["i"])
    after = body.add("Add", "before", body.constant(np.ones((), dtype)))
    body.result(body.add("Less", after, "n"), np.bool_)
    body.result(after, dtype)
    g = graph("count")
    g.input("n", given["n"])
    g.input("i", given["i"])
    g.result(g.add("Loop", "", g.add("Less", "i", "n"), "i", body=body.proto()), dtype)
    return g.model(), given


def counter(name: str, dtype: str) -> Row:
    return Row(
        name,
        f"while counter, 1e6 turns, {dtype}",
        count_arrays(dtype),
        {"turns": 1_000_000},
        {"turns": 10},
        with_paddle(count_paddle, eager=False)
        | with_torch(count_torch, compiled=False)
        | with_jax(count_jax)
        | with_onnx(count_onnx)
        | with_numpy(count_numpy),
        lambda given: given["n"],
        limit=0.3e-3,
    )


# ---- one branch -----------------------------------------------------------------------------------------------------
def branch(x: Any) -> Any:
    """Add or subtract, as the one number of x says."""
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y


def branch_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    return without_gradients(paddle, static(branch), paddle.to_tensor(given["x"]))


def branch_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    return inference(torch, compiled(branch), torch.from_numpy(given["x"]))


def branch_jax(jax: Any, given: Arrays) -> Job:
    run = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x))
    x = jax.numpy.asarray(given["x"])
    return lambda: run(x)


def branch_onnx(given: Arrays) -> tuple[Any, Arrays]:
    then, other = graph("then"), graph("other")
    then.result(then.add("Add", "x", then.constant(np.ones(1, "float32"))))
    other.result(other.add("Sub", "x", other.constant(np.ones(1, "float32"))))
    g = graph("branch")
    g.input("x", given["x"])
    up = g.add("Greater", g.add("ReduceSum", "x", keepdims=0), g.constant(np.float32(0.0)))
    g.result(g.add("If", up, then_branch=then.proto(), else_branch=other.proto()), np.float32)
    return g.model(), given


# ---- Newton ---------------------------------------------------------------------------------------------------------
def newton_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    def roots(a: Any) -> Any:
        x, change = a * 0.5 + 0.5, paddle.ones([])
        while change > 1e-6:
            y = 0.5 * (x + a / x)
            change = (y - x).abs().max()
            x = y
        return x

    return without_gradients(paddle, static(roots), paddle.to_tensor(given["a"]))


def newton_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    @compiled
    def turn(a: Any, x: Any) -> Any:
        y = 0.5 * (x + a / x)
        return y, (y - x).abs().max()

    def roots(a: Any) -> Any:
        x, change = a * 0.5 + 0.5, 1.0
        while change > 1e-6:
            x, change = turn(a, x)
        return x

    return inference(torch, roots, torch.from_numpy(given["a"]))


def newton_jax(jax: Any, given: Arrays) -> Job:
    def roots(a: Any) -> Any:
        def turn(state: Any) -> Any:
            y = 0.5 * (state[0] + a / state[0])
            return y, abs(y - state[0]).max()

        return jax.lax.while_loop(lambda s: s[1] > 1e-6, turn, (a * 0.5 + 0.5, jax.numpy.ones([])))[0]

    run, a = jax.jit(roots), jax.numpy.asarray(given["a"])
    return lambda: run(a)


def newton_numpy(given: Arrays) -> Job:
    def roots() -> Any:
        a, change = given["a"], 1.0
        x = a * 0.5 + np.float32(0.5)
        while change > 1e-6:
            y = 0.5 * (x + a / x)
            change = np.abs(y - x).max()
            x = y
        return x

    return roots


NEWTON_TURNS = 6  # what numbers between 0.5 and 1.5 take


ROWS = (
    counter("counter", "float32"),
    counter("counter-int", "int32"),
    Row(
        "cond",
        "if on a tensor of shape [1]: the cost of a call",
        lambda random, n: {"x": np.ones(n, "float32")},
        {"n": 1},
        {"n": 1},
        with_paddle(branch_paddle) | with_torch(branch_torch) | with_jax(branch_jax) | with_onnx(branch_onnx),
        lambda given: given["x"] + 1,
        limit=2e-6,
    ),
    Row(
        "newton",
        "Newton's method on 1e5 numbers, to a tolerance",
        lambda random, n: {"a": random.random(n).astype("float32") + np.float32(0.5)},
        {"n": 100_000},
        {"n": 17},
        with_paddle(newton_paddle) | with_torch(newton_torch) | with_jax(newton_jax) | with_numpy(newton_numpy),
        lambda given: np.sqrt(given["a"]),
        lambda n: Work(5.0 * n * NEWTON_TURNS, 8.0 * n),
    ),
)
