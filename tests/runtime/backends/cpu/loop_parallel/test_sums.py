"""Sums over rows in loops that threads share: each part adds up its own, the same bits for any number of threads."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.loop_parallel.test_shared_loops import (
    ROWS,
    inputs,
    is_shared,
    lstm,
    native_of,
    same_for_any_threads,
)
from tests.runtime.backends.cpu.native import Guarded


def products(x, h, c, w, u, b):
    dw, t = w * 0.5, 0
    while t < x.shape[0]:
        z = paddle.tanh(x[t] @ w + h @ u)
        dw = dw + paddle.matmul(x[t], z, transpose_x=True)
        h, t = z[:, : h.shape[1]], t + 1
    return h, dw


def adding(what):
    def loop(x, h, c, w, u, b):
        db, t = b, 0
        while t < x.shape[0]:
            z = x[t] @ w + h @ u
            db, h, t = db + what(z, w), paddle.tanh(z[:, : h.shape[1]]), t + 1
        return h, db

    return loop


columns = adding(lambda z, w: z.sum(axis=0))
means = adding(lambda z, w: z.mean(axis=0))
of_no_rows = adding(lambda z, w: w.sum(axis=0))


def two_that_begin_alike(x, h, c, w, u, b):
    zeros = paddle.zeros(u.shape)
    du, dv, t = zeros, zeros, 0
    while t < x.shape[0]:
        z = x[t] @ w + h @ u
        du = du + paddle.matmul(h, z, transpose_x=True)
        dv = paddle.matmul(c, z, transpose_x=True) + dv
        h, t = paddle.tanh(z[:, : h.shape[1]]), t + 1
    return h, du, dv, zeros


def gradients(x, h, c, w, u, b):
    h, c, _ = lstm(x, h, c, w, u, b)
    return paddle.grad((h * c).mean(), [w, u, b])


SHARED = {"products": products, "columns": columns, "two_that_begin_alike": two_that_begin_alike}


def read_in_the_loop(x, h, c, w, u, b):
    db, t = b[: h.shape[1]], 0
    while t < x.shape[0]:
        h = paddle.tanh((x[t] @ w)[:, : h.shape[1]] + db)
        db, t = db + h.sum(axis=0), t + 1
    return h, db


def over_columns(x, h, c, w, u, b):
    db, t = c[:, 0], 0
    while t < x.shape[0]:
        h = paddle.tanh((x[t] @ w)[:, : h.shape[1]] + h)
        db, t = (db + h.sum(axis=1)) * 0.5, t + 1
    return h, db.sum()


NOT_SHARED = {"read_in_the_loop": read_in_the_loop, "means": means}


def agrees(native, given, counts=(1, 2, 3, 4)):
    want = compile_plan(native.program).run(given)
    for got, other in zip(same_for_any_threads(native, given, counts), want, strict=True):
        np.testing.assert_allclose(got, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SHARED)
def test_the_same_bits_for_any_number_of_threads(name, rng):
    native = native_of(SHARED[name], inputs(rng, 3))
    assert is_shared(native)
    for rows in ROWS:
        agrees(native, inputs(rng, rows))
    assert sum(plan.elsewhere for plan in native.plans) == 0


@pytest.mark.parametrize("name", NOT_SHARED)
def test_what_is_no_sum_over_rows_is_left(name, rng):
    native = native_of(NOT_SHARED[name], inputs(rng, 3))
    assert not is_shared(native)
    agrees(native, inputs(rng, 33))


@pytest.mark.parametrize("function", [over_columns, of_no_rows])
def test_sums_over_something_else(function, rng):
    native = native_of(function, inputs(rng, 3))
    for rows in (1, 33):
        agrees(native, inputs(rng, rows))


def test_a_backward_loop_is_shared(rng):
    static = paddle.jit.to_static(gradients, full_graph=True)
    for rows in (3, 16, 33, 100):
        given = [paddle.to_tensor(v, stop_gradient=i < 3) for i, v in enumerate(inputs(rng, rows))]
        made = []
        for count in (1, 2, 4):
            paddle.set_num_threads(count)
            made.append([v.numpy() for v in static(*given)])
        for got, want in zip(made[0], gradients(*given), strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)
        for other in made[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))


def test_large_sums_stay_with_one_part(rng):
    native = native_of(products, inputs(rng, 3))
    agrees(native, inputs(rng, 40, turns=3, width=300), (1, 2))


def test_no_turn_no_width_and_no_rows(rng):
    for function in SHARED.values():
        native = native_of(function, inputs(rng, 3))
        for given in (inputs(rng, 40, turns=0), inputs(rng, 0), inputs(rng, 40, width=0)):
            agrees(native, given)


def test_nan_and_infinity_reach_the_sums(rng):
    native = native_of(products, inputs(rng, 3))
    given = inputs(rng, 40)
    given[0][2, 39, 1], given[0][4, 0, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        agrees(native, given)


def test_on_every_kind_of_cpu(each_cpu, rng):
    native = native_of(two_that_begin_alike, inputs(rng, 3))
    for rows in (5, 40):
        agrees(native, inputs(rng, rows), (1, 2))


@pytest.mark.parametrize("at_start", [False, True])
def test_nothing_beside_the_inputs_is_touched(at_start, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_GUARD", "1")
    given = [Guarded(x, at_start).array for x in inputs(rng, 40)]
    before = [x.copy() for x in given]
    for function in SHARED.values():
        same_for_any_threads(native_of(function, given), given)
    for x, y in zip(given, before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_several_python_threads_at_once(rng):
    given = inputs(rng, 40)
    native = native_of(two_that_begin_alike, inputs(rng, 3))
    want, wrong = native.run(given), list[int]()

    def run() -> None:
        for _ in range(10):
            wrong.extend(not np.array_equal(a, b) for a, b in zip(native.run(given), want, strict=True))

    workers = [threading.Thread(target=run) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(wrong) == 0


def test_rows_of_another_number_end_in_the_same_error(rng):
    native = native_of(products, inputs(rng, 3))
    given = inputs(rng, 40)
    given[1] = given[1][:39]
    for run in (native.run, compile_plan(native.program).run):
        with pytest.raises(ValueError, match="39"):
            run(given)


def test_many_runs_give_the_same(rng):
    native, given = native_of(columns, inputs(rng, 3)), inputs(rng, 100)
    want = native.run(given)
    for _ in range(50):
        for got, other in zip(native.run(given), want, strict=True):
            np.testing.assert_array_equal(got, other)
