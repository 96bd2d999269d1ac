"""Loops that threads share by rows: the same bits for any number of threads, the interpreter's results and errors."""

import _thread
import os
import signal
import threading

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.lowering import lower, prepared
from dy2st.runtime.backends.cpu.shape_specialization import native_code
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import Guarded, runnable

WIDTH = 24
ROWS = (0, 1, 7, 8, 16, 17, 31, 32, 33, 47, 100)


def lstm(x, h, c, w, u, b):
    t = 0
    while t < x.shape[0]:
        z, n = x[t] @ w + h @ u + b, c.shape[1]
        c = F.sigmoid(z[:, n : 2 * n]) * c + F.sigmoid(z[:, :n]) * paddle.tanh(z[:, 2 * n : 3 * n])
        h = F.sigmoid(z[:, 3 * n :]) * paddle.tanh(c)
        t += 1
    return h, c, t


def counted(x, h, c, w, u, b):
    for t in range(x.shape[0]):
        h = F.layer_norm(F.relu(x[t] @ w[:, :WIDTH] + h @ u[:, :WIDTH]) + c, [WIDTH])
    return h


def stops(x, h, c, w, u, b):
    t = 0
    while t < 100:
        if t >= x.shape[0] - 2:
            break
        h, c = paddle.tanh((x[t] @ w + h @ u)[:, :WIDTH]) * c, c * 0.5 + h
        t += 1
    return h, c, t


def layers(x, h, c, w, u, b):
    hs, t = paddle.stack([h, c], axis=0), 0
    while t < x.shape[0]:
        hs = paddle.tanh(hs + (x[t] @ w)[:, :WIDTH])
        t += 1
    return hs


def swapped(x, h, c, w, u, b):
    t = 0
    while t < x.shape[0]:
        h, c = c + (x[t] @ w)[:, :WIDTH], h
        t += 1
    return h, c, h + c


def twice(x, h, c, w, u, b):
    d, t = h, 0
    while t < x.shape[0]:
        d, h = paddle.tanh((d @ u)[:, :WIDTH]) + h, (x[t] @ w)[:, :WIDTH] * d
        t += 1
    return d, h


def appends(x, h, c, w, u, b):
    outs, numbers, t = [c], [7], 0
    while t < x.shape[0]:
        h = paddle.tanh((x[t] @ w + h @ u)[:, :WIDTH])
        outs.append(h)
        numbers.append(t * t)
        t += 1
    return paddle.stack(outs), h, numbers[-1], len(numbers)


def takes_from_a_list(x, h, c, w, u, b):
    kept = []
    for t in range(x.shape[0]):
        kept.append(paddle.tanh((x[t] @ w)[:, :WIDTH]))
    t = 0
    while t < len(kept):
        h = h * kept[t] + kept[-1]
        t += 1
    while t > 0:
        h = paddle.tanh((h @ u)[:, :WIDTH]) + kept.pop()
        t -= 1
    return h, len(kept)


LOOPS = {f.__name__: f for f in (lstm, counted, stops, layers, swapped, twice, appends, takes_from_a_list)}


def inputs(rng, rows, turns=9, width=WIDTH):
    shapes = ((turns, rows, 5), (rows, width), (rows, width), (5, 4 * width), (width, 4 * width), (4 * width,))
    return [0.3 * rng.normal(size=shape).astype("float32") for shape in shapes]


def program_of(f, given):
    static = paddle.jit.to_static(f, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, given))
    return static.concrete_program.main_program


def native_of(f, given):
    return native_code(program_of(f, given), given)


def is_shared(native):
    """Say whether the newest version has a loop that threads share."""
    unit = lower(prepared(native.plans[-1].program), current_target())
    return any(name.startswith("dy2st.rows.") for name in unit.module.texts)


def same_for_any_threads(native, given, counts=(1, 2, 3, 4)):
    made = []
    for count in counts:
        paddle.set_num_threads(count)
        made.append(native.run(given))
    for other in made[1:]:
        for a, b in zip(made[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    return made[0]


@pytest.mark.parametrize("name", LOOPS)
def test_the_same_bits_for_any_number_of_threads(name, rng):
    program = program_of(LOOPS[name], inputs(rng, 3))
    plan = compile_plan(program)
    native = native_code(program, inputs(rng, 3))
    assert is_shared(native)
    for rows in ROWS:
        given = inputs(rng, rows)
        for got, want in zip(same_for_any_threads(native, given), plan.run(given), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    assert sum(plan.elsewhere for plan in native.plans) == 0


@pytest.mark.parametrize("cpu", ["avx2", "sse", "scalar"])
def test_other_cpus(cpu, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_CPU", cpu)
    if not runnable(cpu):
        pytest.skip(f"this CPU has no {cpu}")
    native = native_of(lstm, inputs(rng, 3))
    for rows in (5, 40):
        given = inputs(rng, rows)
        for got, want in zip(same_for_any_threads(native, given), compile_plan(native.program).run(given), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("at_start", [False, True])
def test_nothing_beside_the_inputs_is_touched(at_start, rng):
    given = [Guarded(x, at_start).array for x in inputs(rng, 33)]
    before = [x.copy() for x in given]
    native = native_of(lstm, given)
    same_for_any_threads(native, given)
    for x, y in zip(given, before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_no_turn_and_no_width(rng):
    native = native_of(lstm, inputs(rng, 3))
    given = inputs(rng, 40, turns=0)
    h, c, t, *told = same_for_any_threads(native, given)
    np.testing.assert_array_equal(h, given[1])
    np.testing.assert_array_equal(c, given[2])
    assert t == 0
    assert told == [1, 2]  # h and c are these inputs


def test_what_stays_beside_is_held_where_turns_copy_rows_of_it():
    def f(x, n, m):
        first, kept = paddle.full([m], 3.0), x * 2
        for _ in range(n):
            x[::-1] = kept
        return x, first

    x = np.arange(32, dtype="float32").reshape(4, 4, 2)
    native = native_of(f, [x, np.array(1), np.array(4)])
    assert is_shared(native)
    for turns in (0, 1, 5):
        written, first, _ = same_for_any_threads(native, [x, np.array(turns), np.array(8)])
        np.testing.assert_array_equal(written, x[::-1] * 2 if turns else x)
        np.testing.assert_array_equal(first, np.full(8, 3.0))


def test_nan_stays_in_its_row(rng):
    given = inputs(rng, 40)
    native = native_of(lstm, given)
    paddle.set_num_threads(2)
    want = native.run(given)[0]
    given[1][17, 3] = np.nan
    got = native.run(given)[0]
    assert np.isnan(got[17]).all()
    np.testing.assert_array_equal(np.delete(got, 17, 0), np.delete(want, 17, 0))


def test_what_begins_otherwise_than_it_ends(rng):
    given = inputs(rng, 40)
    native = native_of(twice, given)
    given[1] = given[1][:, :1]
    with pytest.raises(ValueError, match="inner extents"):
        native.run(given)

    def grows(x, h, w):
        t = 0
        while t < x.shape[0]:
            h = paddle.tanh((x[t] @ w)[:, :WIDTH] + h)
            t += 1
        return h

    given = [given[0], given[2][:, :1], given[3]]
    native = native_of(grows, given)
    want = compile_plan(native.program).run(given)[0]
    np.testing.assert_allclose(same_for_any_threads(native, given)[0], want, rtol=2e-5, atol=2e-5)


def test_lists_that_take_longer_than_the_turns_are_left_whole(rng):
    def many(x, h, w):
        a, b, c, t = [], [], [], 0
        while t < x.shape[0]:
            h = h + x[t]
            a.append(h)
            b.append(h * 2)
            c.append(h * 3)
            t += 1
        return h, paddle.stack(a), paddle.stack(b), paddle.stack(c)

    x, h = rng.normal(size=(7, 64, 300)).astype("float32"), rng.normal(size=(64, 300)).astype("float32")
    native = native_of(many, [x, h, h])
    assert is_shared(native)
    for got, want in zip(
        same_for_any_threads(native, [x, h, h]), compile_plan(native.program).run([x, h, h]), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_parts_that_give_up_keep_no_memory(rng):
    def uneven(x, h, w, n):
        outs, t = [h], 0
        while t < n:
            h = paddle.tanh((x[t] @ w)[:, :WIDTH] + h)
            outs.append(h)
            t += 1
        return outs[-1]

    x, h, _, w, *_ = inputs(rng, 64, turns=20)
    native = native_of(uneven, [x, h[:, :1], w, np.array(3)])
    assert is_shared(native)
    paddle.set_num_threads(2)
    peaks = set()
    for _ in range(10):
        native.run([x, h[:, :1], w, np.array(20)])
        peaks.add(native.plans[-1].peak)
    assert len(peaks) == 1


def test_what_only_python_computes_is_not_shared(rng):
    def complex_turns(h, n):
        t = 0
        while t < n:
            h = paddle.exp(h) * 0.5
            t += 1
        return h

    h, n = (rng.normal(size=(64, 30)) * 1j).astype("complex64"), np.array(3)
    native = native_of(complex_turns, [h, n])
    assert not is_shared(native)
    np.testing.assert_allclose(native.run([h, n])[0], compile_plan(native.program).run([h, n])[0], rtol=1e-6)


def test_what_nests_cannot_copy_is_not_shared(rng):
    def swaps(g, h, n):
        t = 0
        while t < n:
            g, h = h, g
            t += 1
        return g, h

    given = [(rng.normal(size=(64, 30)) * 1j).astype("complex64") for _ in range(2)]
    native = native_of(swaps, [*given, np.array(3)])
    assert not is_shared(native)
    g, h, *told = native.run([*given, np.array(3)])
    assert told == [1, 0]  # which inputs these are
    for found, wanted in zip((g, h), given[::-1], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_an_error_inside(rng):
    def too_far(x, h, n):
        t = 0
        while t < n:
            h = paddle.tanh(h + x[t])
            t += 1
        return h

    x, h = rng.normal(size=(5, 64, 300)).astype("float32"), rng.normal(size=(64, 300)).astype("float32")
    native = native_of(too_far, [x, h, np.array(5)])
    for count in (1, 2):
        paddle.set_num_threads(count)
        want = native.run([x, h, np.array(5)])[0]
        with pytest.raises(IndexError, match="5 is out of range"):
            native.run([x, h, np.array(6)])
        np.testing.assert_array_equal(native.run([x, h, np.array(5)])[0], want)


def test_inputs_that_differ_in_rows(rng):
    given = inputs(rng, 40)
    native = native_of(lstm, given)
    given[2] = given[2][:39]
    with pytest.raises(ValueError, match="extents"):
        native.run(given)


def test_python_threads_at_once(rng):
    given = inputs(rng, 64)
    native = native_of(lstm, given)
    paddle.set_num_threads(2)
    want, wrong = native.run(given)[0], []

    def work():
        for _ in range(50):
            if not np.array_equal(native.run(given)[0], want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork(rng):
    given = inputs(rng, 64)
    native = native_of(lstm, given)
    paddle.set_num_threads(2)
    want = native.run(given)[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(native.run(given)[0], want) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_signal_ends_a_shared_loop(rng):
    def forever(h, n):
        t = 0
        while t < n:
            h = paddle.tanh(h * 1.01 + paddle.sin(h))
            t += 1
        return h

    h = rng.normal(size=(64, 512)).astype("float32")
    native = native_of(forever, [h, np.array(3)])
    paddle.set_num_threads(2)
    want = native.run([h, np.array(3)])[0]
    waiting = threading.Timer(0.1, _thread.interrupt_main, [signal.SIGINT])
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        native.run([h, np.array(2**62)])
    waiting.join()
    np.testing.assert_array_equal(native.run([h, np.array(3)])[0], want)


def test_memory_is_counted_and_given_back(rng):
    given = inputs(rng, 64, width=64)
    native = native_of(lstm, given)
    paddle.set_num_threads(2)
    native.run(given)
    first = native.plans[-1].peak
    assert first >= 2 * 64 * 64 * 4
    for _ in range(20):
        native.run(given)
    assert native.plans[-1].peak == first
