"""A policy net on one state, and a cart-pole that it steers for 500 steps inside of one call."""

from typing import Any

import numpy as np

from benchmarks.suite.names import Numpy
from benchmarks.suite.onnx_model import graph
from benchmarks.suite.pictures import jax_inference, onnx_inference
from benchmarks.suite.sides import inference, with_jax, with_onnx, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Work, layers, normal

TURNS = 500
GRAVITY, CART, POLE, HALF, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TOTAL = CART + POLE


def arrays(random: np.random.Generator, width: int) -> Arrays:
    shapes = {"w1": (4, width), "b1": (width,), "w2": (width, 2), "b2": (2,)}
    return normal(random, x=(1, 4)) | layers(random, **shapes)


def policy(names: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Return the chances of two actions."""
    return names.softmax(names.linear(names.relu(names.linear(x, w1, b1)), w2, b2))


def policy_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    x, w1, b1, w2, b2 = map(paddle.to_tensor, given.values())
    functional = paddle.nn.functional

    def run(x: Any) -> Any:
        hidden = functional.dropout(functional.relu(functional.linear(x, w1, b1)), 0.6, training=False)
        return functional.softmax(functional.linear(hidden, w2, b2), axis=1)

    return without_gradients(paddle, static(run), x)


def policy_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    x, w1, b1, w2, b2 = map(torch.from_numpy, given.values())

    def run(x: Any) -> Any:
        return torch.softmax(torch.addmm(b2, torch.relu(torch.addmm(b1, x, w1)), w2), 1)

    return inference(torch, compiled(run), x)


# ---- the cart and its pole ------------------------------------------------------------------------------------------
def moved(sin: Any, cos: Any, state: Any, force: Any) -> tuple[Any, Any, Any, Any]:
    """Return place, speed, angle and turning speed a tick later (Barto, Sutton and Anderson 1983)."""
    place, speed, angle, turning = state
    push = (force + POLE * HALF * turning * turning * sin(angle)) / TOTAL
    bend = (GRAVITY * sin(angle) - cos(angle) * push) / (HALF * (4 / 3 - POLE * cos(angle) ** 2 / TOTAL))
    pull = push - POLE * HALF * bend * cos(angle) / TOTAL
    return place + TICK * speed, speed + TICK * pull, angle + TICK * turning, turning + TICK * bend


def rollout_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    start, w1, b1, w2, b2 = map(paddle.to_tensor, given.values())
    functional = paddle.nn.functional

    def run(start: Any, turns: Any) -> Any:
        state, falls, turn = start, paddle.zeros([], "int64"), paddle.zeros([], "int64")
        while turn < turns:
            scores = functional.linear(functional.relu(functional.linear(state, w1, b1)), w2, b2)
            force = paddle.where(scores[0, 1] > scores[0, 0], paddle.full([], FORCE), paddle.full([], -FORCE))
            parts = state[0, 0], state[0, 1], state[0, 2], state[0, 3]
            place, speed, angle, turning = moved(paddle.sin, paddle.cos, parts, force)
            state = paddle.stack([place, speed, angle, turning]).unsqueeze(0)
            if (angle.abs() > 0.2095) or (place.abs() > 2.4):
                state = start
                falls = falls + 1
            turn = turn + 1
        return state, falls

    return without_gradients(paddle, static(run), start, paddle.to_tensor(TURNS))


def rollout_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    start, w1, b1, w2, b2 = map(torch.from_numpy, given.values())

    @compiled
    def turned(state: Any, start: Any) -> Any:
        scores = torch.addmm(b2, torch.relu(torch.addmm(b1, state, w1)), w2)
        force = torch.where(scores[0, 1] > scores[0, 0], FORCE, -FORCE)
        state = torch.stack(moved(torch.sin, torch.cos, state[0].unbind(), force))[None]
        fell = (state[0, 2].abs() > 0.2095) | (state[0, 0].abs() > 2.4)
        return torch.where(fell, start, state), fell

    def run() -> Any:
        state, falls = start, torch.zeros((), dtype=torch.int64)
        for _ in range(TURNS):
            state, fell = turned(state, start)
            falls = falls + fell
        return state, falls

    return inference(torch, run)


def rollout_jax(jax: Any, given: Arrays) -> Job:
    start, w1, b1, w2, b2 = map(jax.numpy.asarray, given.values())
    where = jax.numpy.where

    def run(start: Any, turns: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        def turned(carried: Any) -> Any:
            state, falls, turn = carried
            scores = jax.nn.relu(state @ w1 + b1) @ w2 + b2
            force = where(scores[0, 1] > scores[0, 0], FORCE, -FORCE)
            state = jax.numpy.stack(moved(jax.numpy.sin, jax.numpy.cos, state[0], force))[None]
            fell = (abs(state[0, 2]) > 0.2095) | (abs(state[0, 0]) > 2.4)
            return where(fell, start, state), falls + fell, turn + 1

        return jax.lax.while_loop(lambda carried: carried[2] < turns, turned, (start, 0, 0))[:2]

    run = jax.jit(run)
    return lambda: run(start, TURNS, w1, b1, w2, b2)


def rollout_onnx(given: Arrays) -> tuple[Any, Arrays]:
    body = graph("body")
    body.input("turn", np.zeros((), "int64"))
    body.input("go", np.zeros((), "bool"))
    body.input("state", given["x"], [1, 4])
    body.input("falls", np.zeros((), "int64"), [])
    state, fell = _turned_onnx(body, given)
    one = body.constant(np.int64(1))
    zero = body.constant(np.int64(0))
    body.result(body.add("Identity", "go"), np.bool_)
    body.result(state)
    body.result(body.add("Add", "falls", body.add("Where", fell, one, zero)), np.int64)
    g = graph("rollout")
    g.input("x", given["x"])
    g.input("turns", np.zeros((), "int64"))
    yes, none = g.constant(np.array(True)), g.constant(np.int64(0))
    last, falls = g.add("Loop", "turns", yes, "x", none, results=2, body=body.proto())
    g.result(last)
    g.result(falls, np.int64)
    return g.model(), {"x": given["x"], "turns": np.array(TURNS)}


class _Number:
    """A value of an ONNX graph, with Python's operators."""

    def __init__(self, body: Any, name: str):
        self.body, self.name = body, name

    def _with(self, op: str, other: Any, swapped: bool = False) -> "_Number":
        name = other.name if isinstance(other, _Number) else self.body.constant(np.float32(other))
        pair = (name, self.name) if swapped else (self.name, name)
        return _Number(self.body, self.body.add(op, *pair))

    def __add__(self, other: Any) -> "_Number":
        return self._with("Add", other)

    def __sub__(self, other: Any) -> "_Number":
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> "_Number":
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: Any) -> "_Number":
        return self._with("Mul", other)

    def __truediv__(self, other: Any) -> "_Number":
        return self._with("Div", other)

    def __pow__(self, power: int) -> "_Number":
        return self * self

    __radd__, __rmul__ = __add__, __mul__


def _turned_onnx(body: Any, given: Arrays) -> tuple[str, str]:
    """Add a tick to the body; return the state after it and whether the pole fell."""

    def number(x: Any) -> str:
        return body.constant(np.float32(x))

    def function(op: str) -> Any:
        return lambda x: _Number(body, body.add(op, x.name))

    w1, b1, w2, b2 = (body.constant(given[name]) for name in ("w1", "b1", "w2", "b2"))
    hidden = body.add("Relu", body.add("Gemm", "state", w1, b1))
    left, right = body.add("Split", body.add("Gemm", hidden, w2, b2), results=2, axis=1, num_outputs=2)
    force = _Number(body, body.add("Where", body.add("Greater", right, left), number(FORCE), number(-FORCE)))
    parts = [_Number(body, part) for part in body.add("Split", "state", results=4, axis=1, num_outputs=4)]
    after = moved(function("Sin"), function("Cos"), parts, force)
    state = body.add("Concat", *(part.name for part in after), axis=1)
    far = body.add("Greater", body.add("Abs", after[0].name), number(2.4))
    fell = body.add("Or", body.add("Greater", body.add("Abs", after[2].name), number(0.2095)), far)
    fell = body.add("Squeeze", fell)
    return body.add("Where", fell, "x", state), fell


def rollout_numpy(given: Arrays) -> Any:
    start, w1, b1, w2, b2 = given.values()
    state, falls = start, 0
    for _ in range(TURNS):
        scores = np.maximum(state @ w1 + b1, 0) @ w2 + b2
        force = np.float32(FORCE if scores[0, 1] > scores[0, 0] else -FORCE)
        state = np.stack(moved(np.sin, np.cos, state[0], force))[None].astype("float32")
        if abs(state[0, 2]) > 0.2095 or abs(state[0, 0]) > 2.4:
            state, falls = start, falls + 1
    return state, falls


ROWS = (
    Row(
        "policy",
        "policy net 4-128-2, one state",
        arrays,
        {"width": 128},
        {"width": 6},
        with_paddle(policy_paddle)
        | with_torch(policy_torch)
        | with_jax(lambda jax, given: jax_inference(jax, policy, list(given.values())))
        | with_onnx(lambda given: onnx_inference(policy, list(given.values()))),
        lambda given: policy(Numpy(), *given.values()),
    ),
    Row(
        "rollout",
        "cart-pole, 500 steps with the policy in the graph",
        arrays,
        {"width": 128},
        {"width": 6},
        with_paddle(rollout_paddle) | with_torch(rollout_torch) | with_jax(rollout_jax) | with_onnx(rollout_onnx),
        rollout_numpy,
        lambda width: Work(TURNS * 12.0 * width),
        tolerance=1e-3,
        goal=0.5,
    ),
)
