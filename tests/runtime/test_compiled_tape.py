"""Tapes that run as Programs: the gradients, errors and hooks of the walk, whatever the tape is made of."""

import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.ir.context import current
from dy2st.records import replace
from dy2st.runtime.autograd_engine import compiled_tape, tape_segment
from tests.runtime.backends.cpu.test_same_as_interpreter import compare

F = paddle.nn.functional


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Let every kind of tape run as a Program, at once and natively, and each op be a node of it."""
    context = current()
    monkeypatch.setattr(context, "process", replace(context.process, walks_of_tape=0, programs_from=math.inf))
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    for name in ("_kinds", "_shapes"):
        monkeypatch.setattr(compiled_tape, name, {})


def walked(function):
    """Return what a function gives where every tape is walked."""
    context = current()
    before, context.process = context.process, replace(context.process, walks_of_tape=math.inf)
    try:
        return function()
    finally:
        context.process = before


def programs():
    """Return the Programs of tapes that were made."""
    return [kind.program for kind in compiled_tape._kinds.values() if kind.program is not None]


def leaf(values, dtype="float64"):
    return paddle.to_tensor(np.asarray(values, dtype), stop_gradient=False)


@paddle.jit.to_static
def smooth(x, y):
    return paddle.tanh(x @ y), (x * x).sum(axis=1)


@paddle.jit.to_static
def looped(x, n):
    while n > 0:
        x = x * 0.5 + paddle.sin(x)
        n = n - 1
    return x


UNARY = (
    paddle.sin, F.gelu, lambda t: t * 3, lambda t: t.exp() * 0.1, lambda t: F.softmax(t, axis=-1), lambda t: t.T,
    lambda t: t.reshape([-1, t.shape[1]]), lambda t: t.cumsum(0), lambda t: F.relu(t), lambda t: t - t.mean(0),
    lambda t: t[:, :], lambda t: paddle.concat([t[1:], t[:1]]), lambda t: F.dropout(t, 0.5, training=False),
    lambda t: F.layer_norm(t, [t.shape[1]]), lambda t: paddle.clip(t, -1.0, 1.0), lambda t: paddle.flip(t, [0]),
    lambda t: smooth(t, t)[0], lambda t: smooth(t, t)[1] + t, lambda t: looped(t, paddle.to_tensor(3)),
    lambda t: paddle.where(t > 0, t, t * 0.1), lambda t: t.astype("float32").astype("float64"),
    lambda t: paddle.stack([t, t * 2]).max(0), lambda t: t.clone(), lambda t: t.detach() * t,
)  # fmt: skip
BINARY = (
    paddle.add, paddle.multiply, paddle.matmul, paddle.maximum, lambda a, b: a - b[:1], lambda a, b: a * b.sum(),
    lambda a, b: a / (b * b + 1), lambda a, b: smooth(a, b)[0],
)  # fmt: skip


def written(t):
    made = t * 1.5
    made[0] = t[1] * 2
    made += 1.0
    return made


def random_tape(seed, leaves, taps):
    """Build a tape of shared values on square leaves; return its roots."""
    rng = np.random.default_rng(seed)
    values = list(leaves)
    for _ in range(int(rng.integers(3, 14))):
        if rng.random() < 0.6:
            made = [*UNARY, written][rng.integers(len(UNARY) + 1)](values[rng.integers(len(values))])
        else:
            pair = rng.integers(len(values), size=2)
            made = BINARY[rng.integers(len(BINARY))](*(values[i] for i in pair))
        if rng.random() < 0.1 and not made.stop_gradient:
            made.register_hook(lambda g: (taps.append(g.numpy()), g * 2)[1])
        values.append(paddle.tanh(made))
    picked = [values[-1], values[rng.integers(len(values))]] if rng.random() < 0.4 else [values[-1]]
    return [value for value in picked if not value.stop_gradient]


@pytest.mark.parametrize("seed", range(60))
def test_random_tapes(seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=(4, 4)) for _ in range(3)]

    def run(times=1):
        taps = []
        for _ in range(times):
            leaves = [leaf(a) for a in arrays]
            roots = random_tape(seed, leaves, taps)
            if not roots:
                return [], taps
            keep = seed % 3 == 0
            paddle.autograd.backward(roots, [None, *(paddle.ones_like(r) * 0.5 for r in roots[1:])], keep)
            if keep:
                roots[0].sum().backward()
        return [None if x.grad is None else x.grad.numpy() for x in leaves], taps

    want, hooked = walked(run)
    found, taps = run(3)
    for one, other in zip(want, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)
    assert len(taps) == 3 * len(hooked)
    for one, other in zip(hooked * 3, taps, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11)


def test_one_program_serves_every_batch_size(rng):
    net = nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3))
    net = paddle.jit.to_static(net)
    for batch in (2, 5, 9, 6):
        x, y = paddle.to_tensor(rng.normal(size=(batch, 4)).astype("float32")), paddle.zeros([batch, 3])

        def gradients():
            net.clear_gradients()
            F.mse_loss(net(x), y).backward()
            return [p.grad.numpy() for p in net.parameters()]

        for one, other in zip(walked(gradients), gradients(), strict=True):
            compare(other, one)
    assert len(programs()) == 1


SHAPES = (4, 4), (3, 3), (2, 2), (5, 5)


@pytest.mark.parametrize("seed", range(60, 90))
def test_random_tapes_of_one_structure_and_several_shapes_and_dtypes(seed):
    rng = np.random.default_rng(seed)
    for turn, shape in enumerate((*SHAPES, *SHAPES)):
        arrays = [rng.normal(size=shape) for _ in range(3)]

        def run(dtype="float32" if turn % 3 == 2 else "float64", arrays=arrays):
            leaves = [leaf(a, dtype) for a in arrays]
            roots = random_tape(seed, leaves, [])
            if roots:
                paddle.autograd.backward(roots)
            return [x.grad for x in leaves]

        for one, other in zip(walked(run), run(), strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                close = 1e-9 if one.dtype == paddle.float64 else 1e-3
                np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=close, atol=close)


KINDS = ((2,), "float64"), ((2,), "float32"), ((3,), "float64"), ((1,), "float64"), ((2, 3), "float64"), ((), "float64")


@pytest.mark.parametrize("steps", [3, 700])
def test_shapes_of_what_lies_behind_a_segment_are_seen(steps):
    def found(shape, dtype):
        x = leaf(np.full(shape, 0.5), dtype)
        y = x * 2.0
        y.register_hook(lambda g: g + 0.0)
        for _ in range(steps):
            y = y * 0.999 + 0.001
        y.sum().backward()
        return x.grad.numpy()

    for shape, dtype in KINDS:
        want = walked(lambda of=(shape, dtype): found(*of))
        for _ in range(2):
            one = found(shape, dtype)
            assert (one.shape, one.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(one, want, rtol=1e-5)


def test_gradients_share_no_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    for _ in range(3):
        x.clear_grad()
        y.clear_grad()
        (x * y).sum().backward()
        assert len(programs()) == 1
        arrays = [x.payload, y.payload, x.grad.payload, y.grad.payload]
        assert not any(np.may_share_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_several_backwards_sum():
    x = leaf([1.0, 2.0])
    for turn in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * turn, 4.0 * turn]


def test_a_freed_tape_is_refused_and_a_kept_one_is_not():
    x = leaf([1.0, 2.0])
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="freed"):
        loss.backward()


def test_an_operand_that_was_changed_is_refused():
    x = leaf([1.0, 2.0])
    for turn in range(3):
        y = x * 2
        loss = (y * y).sum() + (x.exp() * 0.5).sum()
        if turn == 2:
            y.detach().zero_()
            with pytest.raises(RuntimeError, match="changed in place"):
                loss.backward()
        else:
            loss.backward()


def test_gradients_of_inner_tensors_and_through_blocked_ones():
    def found():
        x = leaf([1.0, 2.0])
        y = x * x
        z = paddle.sin(y) * x
        inner = paddle.grad(z.sum(), [y, x], retain_graph=True)
        stopped = paddle.grad(z.sum(), [x], no_grad_vars=[y], retain_graph=True)
        return [g.numpy() for g in (*inner, *stopped)]

    for one, other in zip(walked(found), found(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_seeds_of_another_shape_of_tape():
    x = leaf(np.arange(6.0).reshape(2, 3))
    for seed in (None, paddle.full([2, 3], 3.0, "float64"), None):
        x.clear_grad()
        (x * x + x).backward(seed)
        np.testing.assert_array_equal(x.grad.numpy(), (2 * x.numpy() + 1) * (1.0 if seed is None else 3.0))


def test_complex_numbers():
    values = np.array([1.0 + 2.0j, 0.5 - 1.0j])

    def found():
        x = paddle.to_tensor(values, stop_gradient=False)
        ((x * x).abs() + (x * paddle.conj(x)).real()).sum().backward()
        return x.grad.numpy()

    want = walked(found)
    for _ in range(3):
        np.testing.assert_allclose(found(), want, rtol=1e-12)


def test_a_tensor_that_is_shared_in_some_calls_only():
    x, y = leaf([1.0, 2.0]), paddle.to_tensor(np.array([3.0, 5.0]))
    for other in (x.detach(), y, x.detach(), y):
        x.clear_grad()
        held = x.detach()
        (paddle.sin(x * held) * (held if other is not y else y)).sum().backward()
        got, a, b = x.grad.numpy(), x.numpy(), other.numpy()
        np.testing.assert_allclose(got, np.cos(a * a) * a * b, rtol=1e-12)


def test_results_without_a_gradient_stay_without_one():
    @paddle.jit.to_static
    def either(x, w, go):
        if go:
            return x * w
        return x * 2

    x, w, go = leaf([1.0, 2.0]), leaf([3.0, 4.0]), paddle.to_tensor(False)
    for _ in range(3):
        x.clear_grad()
        (either(x, w, go) * 3).sum().backward()
        assert w.grad is None
        assert x.grad.tolist() == [6.0, 6.0]


def test_gradients_to_what_a_recorded_call_keeps():
    """A second derivative reaches residuals of the forward Program, which the walk alone sends cotangents to."""
    square = paddle.jit.to_static(lambda x, y: ((x - y) * (x - y)).mean())
    for n in (3, 5, 4, 5, 3, 1):
        x = paddle.ones([n, 4])
        x.stop_gradient = False
        out = square(x, x.detach() * 3.0)
        (first,) = paddle.grad(out * out, [x], create_graph=True)
        (second,) = paddle.grad((first * first).sum(), [x])
        assert round(float(second.sum()), 3) == round(-768.0 / n, 3)


def test_a_call_of_which_some_results_are_unused():
    x, y = leaf([[1.0, 2.0], [0.5, 1.5]]), leaf([[0.1, 0.2], [0.3, 0.4]])

    def found(which):
        x.clear_grad()
        y.clear_grad()
        (smooth(x, y)[which] * 3).sum().backward()
        return [None if t.grad is None else t.grad.numpy() for t in (x, y)]

    for which in (0, 1):
        want = walked(lambda: found(which))
        for _ in range(2):
            for one, other in zip(want, found(which), strict=True):
                assert other is None if one is None else np.allclose(other, one, rtol=1e-12)
    assert len(programs()) == 2


def test_a_long_loop_is_cut_into_pieces_that_are_alike():
    x, w = leaf([0.3, 0.2]), leaf([0.9, 0.8])

    def found(steps):
        x.clear_grad()
        w.clear_grad()
        y = x * 1.0
        for _ in range(steps):
            y = paddle.sin(y * w) + x
        y.sum().backward()
        return [x.grad.numpy(), w.grad.numpy()]

    for steps in (400, 801):
        for one, other in zip(walked(lambda: found(steps)), found(steps), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9)
    assert 1 < len(programs()) < 9
    assert all(len(made.pulled) <= tape_segment.FEW for made in programs())


def test_a_long_tape_without_a_loop_is_walked():
    x = leaf([0.3, 0.2])

    def found():
        x.clear_grad()
        y, rng = x * 1.0, np.random.default_rng(0)
        for _ in range(700):
            y = (paddle.sin, paddle.tanh, paddle.cos, paddle.atan, F.sigmoid)[rng.integers(5)](y)
        y.sum().backward()
        return x.grad.numpy()

    np.testing.assert_array_equal(walked(found), found())
    assert not programs()


def test_rows_of_a_large_tensor_are_added_in_place_by_the_walk(rng):
    x = leaf(rng.normal(size=(2000, 8)))

    def found():
        x.clear_grad()
        total = 0.0
        for i in range(0, 2000, 100):
            total = total + paddle.sin(x[i] * 2).sum()
        (total + x[:1500].sum()).backward()
        return x.grad.numpy()

    np.testing.assert_allclose(found(), walked(found), rtol=1e-12)
    assert programs()
    assert all(len(made.pulled) < 9 for made in programs())  # between two rows
