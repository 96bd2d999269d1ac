"""Lorenz' equations by Runge and Kutta's fourth order; each step is as long as an error of 1e-10 allows."""

from typing import Any

import numpy as np

from benchmarks.suite.sides import inference, with_jax, with_numpy, with_paddle, with_torch, without_gradients
from benchmarks.suite.workload import Arrays, Job, Row, Work

TOLERANCE = 1e-10
FLOPS_OF_TURN = 3 * 4 * (8 + 9) + 40.0  # eleven slopes and their sums, the error, the next step


def arrays(random: np.random.Generator, end: int) -> Arrays:
    return {"start": np.array([1.0, 1.0, 1.0]), "end": np.array(float(end))}


def slope(stack: Any, s: Any) -> Any:
    x, y, z = s[0], s[1], s[2]
    return stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])


def step(stack: Any, s: Any, h: Any) -> Any:
    """Go one step of length h."""
    a = slope(stack, s)
    b = slope(stack, s + h / 2 * a)
    c = slope(stack, s + h / 2 * b)
    d = slope(stack, s + h * c)
    return s + h / 6 * (a + 2 * b + 2 * c + d)


def two_ways(stack: Any, s: Any, h: Any) -> tuple[Any, Any]:
    """Return where two half steps lead, and how far from there one whole step does."""
    fine = step(stack, step(stack, s, h / 2), h / 2)
    return fine, abs(fine - step(stack, s, h)).max()


# ---- by package -----------------------------------------------------------------------------------------------------
def of_paddle(paddle: Any, static: Any, given: Arrays) -> Job:
    def run(s: Any, end: Any) -> Any:
        t = paddle.zeros([], "float64")
        h = paddle.full([], 0.01, "float64")
        turns = paddle.zeros([], "int64")
        while t < end:
            h = paddle.minimum(h, end - t)
            fine, error = two_ways(paddle.stack, s, h)
            if error <= TOLERANCE:
                s = fine
                t = t + h
            h = h * paddle.clip(0.9 * (TOLERANCE / (error + 1e-30)) ** 0.2, 0.2, 5.0)
            turns = turns + 1
        return s, turns

    return without_gradients(paddle, static(run), *map(paddle.to_tensor, given.values()))


def of_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
    @compiled
    def turned(s: Any, t: Any, h: Any, end: Any) -> Any:
        h = torch.minimum(h, end - t)
        fine, error = two_ways(torch.stack, s, h)
        good = error <= TOLERANCE
        s, t = torch.where(good, fine, s), torch.where(good, t + h, t)
        return s, t, h * torch.clamp(0.9 * (TOLERANCE / (error + 1e-30)) ** 0.2, 0.2, 5.0)

    def run(s: Any, end: Any) -> Any:
        t, h, turns = torch.zeros((), dtype=torch.float64), torch.tensor(0.01, dtype=torch.float64), 0
        while t < end:
            s, t, h = turned(s, t, h, end)
            turns += 1
        return s, torch.tensor(turns)

    return inference(torch, run, *map(torch.from_numpy, given.values()))


def of_jax(jax: Any, given: Arrays) -> Job:
    names = jax.numpy

    def run(s: Any, end: Any) -> Any:
        def turned(carried: Any) -> Any:
            s, t, h, turns = carried
            h = names.minimum(h, end - t)
            fine, error = two_ways(names.stack, s, h)
            good = error <= TOLERANCE
            s, t = names.where(good, fine, s), names.where(good, t + h, t)
            return s, t, h * names.clip(0.9 * (TOLERANCE / (error + 1e-30)) ** 0.2, 0.2, 5.0), turns + 1

        s, _, _, turns = jax.lax.while_loop(lambda carried: carried[1] < end, turned, (s, 0.0, 0.01, 0))
        return s, turns

    run, given_arrays = jax.jit(run), [names.asarray(x) for x in given.values()]
    return lambda: run(*given_arrays)


def of_numpy(given: Arrays) -> Job:
    def run() -> Any:
        s, end = given.values()
        t, h, turns = 0.0, 0.01, 0
        while t < end:
            h = min(h, end - t)
            fine, error = two_ways(np.stack, s, h)
            if error <= TOLERANCE:
                s, t = fine, t + h
            h *= min(max(0.9 * (TOLERANCE / (error + 1e-30)) ** 0.2, 0.2), 5.0)
            turns += 1
        return s, turns

    return run


ROWS = (
    Row(
        "lorenz",
        "Lorenz, adaptive Runge-Kutta, 4,417 turns, float64",
        arrays,
        {"end": 8},
        {"end": 1},
        with_paddle(of_paddle) | with_torch(of_torch) | with_jax(of_jax, double=True) | with_numpy(of_numpy),
        lambda given: of_numpy(given)(),
        lambda end: Work(552 * end * FLOPS_OF_TURN),
        tolerance=1e-3,
        goal=0.7,
    ),
)
