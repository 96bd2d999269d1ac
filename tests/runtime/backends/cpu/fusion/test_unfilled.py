"""Tensors that are filled and then written over: nobody fills them, and nobody sees that."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.runtime.backends.cpu.fusion.dead_fills import unfilled
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import thread_counts

SIZES = (0, 1, 2, 15, 16, 17, 255)


def rows_by_turns(xs: Any, w: Any) -> Any:
    """Outputs of a recurrent network, in a tensor that was there before."""
    out, h = paddle.zeros_like(xs), xs.sum(0) * 0
    for t in range(xs.shape[0]):
        h = paddle.tanh(xs[t] + h * w)
        out[t] = h
    return out


def columns_by_turns(xs: Any, w: Any) -> Any:
    out = paddle.full_like(xs, 7.0)
    for t in range(xs.shape[1]):
        out[:, t] = xs[:, t] * 2
    return out


def inside_and_ends(u: Any, w: Any) -> Any:
    """A step of a solver: what lies between the ends, then the ends."""
    n = paddle.zeros_like(u)
    n[1:-1] = u[1:-1] + w * (u[2:] - u[:-2])
    n[0] = 0.0
    n[-1] = w
    return n


def parts(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    y[:3] = x[:3] * 2
    y[3:] = w
    return y * 1


def branches(x: Any, w: Any) -> Any:
    y = paddle.zeros_like(x)
    if x.sum() > 0:
        y[:] = w
    else:
        y[:2] = x[:2]
        y[2:] = x[2:] * 2
    return y


def two_of_one(x: Any, w: Any) -> Any:
    """Two tensors that begin as the same zeros."""
    a, b = paddle.zeros_like(x), paddle.zeros_like(x)
    for t in range(x.shape[0]):
        a[t] = x[t] * 2
        b[t] = x[t] + w
    return a, b


DEAD = {f.__name__: f for f in (rows_by_turns, columns_by_turns, inside_and_ends, parts, branches, two_of_one)}


def half(x: Any, w: Any) -> Any:
    y = paddle.zeros_like(x)
    y[:-1] = x[:-1]
    return y


def read_by_turns(x: Any, w: Any) -> Any:
    """A row that a later turn is to write is read."""
    y = paddle.ones_like(x)
    for t in range(x.shape[0]):
        y[t] = x[t] + y[x.shape[0] - 1 - t]
    return y


def not_all_turns(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    for t in range(x.shape[0] - 1):
        y[t] = x[t]
    return y


def some_turns(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    for t in range(x.shape[0]):
        if x[t].sum() > 0:
            y[t] = x[t]
    return y


def left_early(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    for t in range(x.shape[0]):
        if x[t].sum() > 1:
            break
        y[t] = x[t]
    return y


def one_branch(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    if x.sum() > 0:
        y[:] = w
    return y


def view_before(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    z = y[:1] * 3
    y[:] = w
    return y, z


def every_other(x: Any, w: Any) -> Any:
    y = paddle.ones_like(x)
    y[::2] = w
    return y


READ = {
    f.__name__: f
    for f in (half, read_by_turns, not_all_turns, some_turns, left_early, one_branch, view_before, every_other)
}


def traced(function: Callable[..., Any], *inputs: np.ndarray) -> Program:
    static = paddle.jit.to_static(function, full_graph=True)
    static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


def count(p: Program) -> int:
    """Return how many tensors nobody fills, those of branches and loops too."""
    ready = prepared(p)
    return sum(len(unfilled(b)) for b in (ready.block, *(b for o in ready.walk() for b in o.blocks)))


def check(p: Program, *given: np.ndarray) -> list[np.ndarray]:
    found, wanted = NativePlan(p).run([*given]), compile_plan(p).run([*given])
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    return found


def two(rows: int, columns: int, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.normal(size=(rows, columns)).astype("float32"), np.array(0.5, "float32")]


@pytest.mark.parametrize("name", DEAD)
def test_what_nobody_reads_is_not_filled(name: str, rng: np.random.Generator) -> None:
    p = traced(DEAD[name], *two(5, 40, rng))
    assert count(p) == 1
    for size in (2, 15, 16, 17, 255):
        check(p, *two(size, 40, rng))
        check(p, *two(5, size, rng))


@pytest.mark.parametrize("name", READ)
def test_what_somebody_may_read_is_filled(name: str, rng: np.random.Generator) -> None:
    p = traced(READ[name], *two(5, 40, rng))
    assert count(p) == 0
    for size in (1, 17, 255):
        check(p, *two(size, 40, rng))


def test_every_cpu_within_its_memory(each_cpu: str, rng: np.random.Generator, guarded: None) -> None:
    for function in (rows_by_turns, columns_by_turns, branches, two_of_one):
        p = traced(function, *two(5, 40, rng))
        for size in SIZES:
            check(p, *two(size, 7, rng))
    p = traced(inside_and_ends, *two(5, 40, rng))
    for size in SIZES[1:]:
        check(p, *two(size, 7, rng))


def test_any_number_of_threads_gives_the_same(rng: np.random.Generator) -> None:
    p = traced(rows_by_turns, *two(5, 40, rng))
    given = two(300, 500, rng)
    found = [check(p, *given)[0].tobytes() for _ in thread_counts()]
    assert len(set(found)) == 1


def test_memory_that_held_something_else(rng: np.random.Generator) -> None:
    """Memory that is used again has other numbers in it: none of them is seen."""
    static, given = paddle.jit.to_static(inside_and_ends, full_graph=True), two(60, 40, rng)
    for _ in range(20):
        x, w = (paddle.to_tensor(a) for a in given)
        wanted = given[0] * 0
        wanted[1:-1] = given[0][1:-1] + given[1] * (given[0][2:] - given[0][:-2])
        wanted[-1] = given[1]
        np.testing.assert_array_equal(static(x, w).numpy(), wanted)


def test_an_error_in_the_middle_shows_nothing(rng: np.random.Generator) -> None:
    """What had been written when an index was outside is gone with the run."""

    @paddle.jit.to_static(full_graph=True)
    def run(x: Any, i: Any) -> Any:
        y = paddle.zeros_like(x)
        y[:2] = x[:2]
        y[2:] = x[i]
        return y

    x = paddle.to_tensor(rng.normal(size=(4, 40)).astype("float32"))
    for _ in range(2):
        assert run(x, paddle.to_tensor(3)).shape == [4, 40]
    with pytest.raises(IndexError, match="index 4 is out of range"):
        run(x, paddle.to_tensor(4))


def test_what_a_handler_sees_is_filled(rng: np.random.Generator) -> None:
    """Where the second write raises, the first one and the zeros are there."""

    class Holder(paddle.nn.Layer):
        def forward(self, x: Any, limit: Any) -> Any:
            y = paddle.zeros_like(x)
            try:
                y[:2] = x[:2]
                if x.sum() > limit:
                    raise ValueError("too large")
                y[2:] = x[2:]
            except ValueError:
                pass
            return y

    static = paddle.jit.to_static(Holder(), full_graph=True)
    x = np.ones((4, 40), "float32")
    for limit, rows in ((1e9, 4), (0.0, 2)):
        for _ in range(3):
            found = static(paddle.to_tensor(x), paddle.to_tensor(np.float32(limit))).numpy()
            np.testing.assert_array_equal(found.sum(1) > 0, np.arange(4) < rows)


def test_derivatives_past_writes(rng: np.random.Generator) -> None:
    def gradient(x: Any, w: Any) -> Any:
        x.stop_gradient = False
        return paddle.grad((rows_by_turns(x, w) ** 2).sum() + (parts(x, w) ** 3).sum(), [x])[0]

    p = traced(gradient, *two(5, 40, rng))
    for size in (1, 2, 16, 17):
        check(p, *two(size, 17, rng))


def test_numbers_that_are_no_extents() -> None:
    p = parse(
        "program main\nfunc main(%n: int(N), %x: float32[]) {\n%z: float32[] = constant() {value=float32[](0)}\n"
        "%y: float32[N, 20] = full(%z, %n) {shape=(none, 20)}\n"
        '%a: float32[N, 20] = index_set(%y, %x) {spec=(("slice", none, -1, none),)}\n'
        '%b: float32[N, 20] = index_set(%a, %x) {spec=(("slice", -1, none, none),)}\nreturn %b\n}\n'
    )
    assert count(p) == 1
    assert NativePlan(p).run([3, np.float32(2)])[0].tolist() == [[2.0] * 20] * 3
    with pytest.raises(ValueError, match="must not be negative"):
        NativePlan(p).run([-1, np.float32(2)])
