"""Derivatives of attention: no weights are kept, and what asks for the weights themselves still gets them."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.autodiff.programs import vjp
from dy2st.passes import optimise
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import program

TEXT = """
func main(%q: float64[B, N, 4], %k: float64[B, M, 4], %v: float64[B, M, 2], %m: float64[1, N, M]) {
  %s: float64[B, N, M] = matmul(%q, %k) {transpose_x=false, transpose_y=true}
  %i: int(B) = dim(%q) {axis=0}
  %j: int(N) = dim(%q) {axis=1}
  %l: int(M) = dim(%k) {axis=1}
  %b: float64[B, N, M] = broadcast(%m, %i, %j, %l) {shape=(none, none, none)}
  %t: float64[B, N, M] = add(%s, %b)
  %w: float64[B, N, M] = softmax(%t) {axis=2}
  %y: float64[B, N, 2] = matmul(%w, %v) {transpose_x=false, transpose_y=false}
  return %y
}
"""


def names(made):
    return {operation.name for operation in optimise(made).walk()}


def inputs_of(rng):
    return [rng.normal(size=shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 2), (1, 3, 5))]


def assert_slope(slope, inputs, i, ct, rng):
    """Compare the cotangent of one input with differences."""
    move, step = rng.normal(size=inputs[i].shape), 1e-6
    shifted = [[*inputs[:i], inputs[i] + s * move, *inputs[i + 1 :]] for s in (step, -step)]
    above, below = (evaluate(program(TEXT), given)[0] for given in shifted)
    assert np.isclose((slope * move).sum(), (ct * (above - below)).sum() / (2 * step), rtol=1e-6)


def test_no_weights_are_kept_for_the_gradient(rng):
    made = vjp(program(TEXT), [0, 1, 2], [(0, False)])
    assert "softmax" not in names(made.forward) | names(made.backward)
    inputs, ct = inputs_of(rng), rng.normal(size=(2, 3, 2))
    y, *residuals = evaluate(made.forward, inputs)
    assert all(r.shape in [x.shape for x in inputs] for r in residuals if isinstance(r, np.ndarray))
    slopes = evaluate(made.backward, [*residuals, ct])
    for i, slope in enumerate(slopes):
        assert_slope(slope, inputs, i, ct, rng)
    assert np.allclose(y, evaluate(program(TEXT), inputs)[0])


def test_a_mask_that_learns_has_a_gradient(rng):
    made = vjp(program(TEXT), [0, 3], [(0, False)])
    inputs, ct = inputs_of(rng), rng.normal(size=(2, 3, 2))
    _, *residuals = evaluate(made.forward, inputs)
    slope = evaluate(made.backward, [*residuals, ct])[1]
    assert_slope(slope, inputs, 3, ct, rng)


def both(f, x):
    """Return what a function gives eagerly and converted."""
    return [
        np.asarray(g(paddle.to_tensor(x, stop_gradient=False))) for g in (f, paddle.jit.to_static(f, full_graph=True))
    ]


@pytest.mark.parametrize("seen", ["afterwards", "as root", "blocked"])
def test_weights_that_somebody_asks_for_are_there(seen, rng):
    def f(x):
        weights = paddle.nn.functional.softmax(paddle.matmul(x, x, transpose_y=True))
        loss = (paddle.matmul(weights, x) ** 2).sum()
        blocked = [weights] if seen == "blocked" else None
        slope = paddle.grad(loss, [weights if seen == "as root" else x], no_grad_vars=blocked)[0]
        return slope * weights if seen != "blocked" and seen != "afterwards" else slope.sum() * weights

    eager, static = both(f, rng.normal(size=(2, 5, 4)))
    assert np.allclose(eager, static, rtol=1e-12)


def test_second_derivatives(rng):
    def f(x):
        y = paddle.nn.functional.scaled_dot_product_attention(x, x * 2, x - 1, is_causal=True)
        slope = paddle.grad((y**3).sum(), [x], create_graph=True)[0]
        return paddle.grad((slope**2).sum(), [x])[0]

    eager, static = both(f, rng.normal(size=(2, 5, 1, 4)))
    assert np.allclose(eager, static, rtol=1e-9)


def test_layers_in_a_loop(rng):
    def f(x, turns):
        y = x
        for _ in range(turns):
            y = paddle.nn.functional.scaled_dot_product_attention(y, x, y)
        return paddle.grad((y**2).sum(), [x])[0]

    x, turns = rng.normal(size=(2, 5, 1, 4)), paddle.to_tensor(3)
    eager, static = (
        np.asarray(g(paddle.to_tensor(x, stop_gradient=False), turns))
        for g in (f, paddle.jit.to_static(f, full_graph=True))
    )
    assert np.allclose(eager, static, rtol=1e-9)


def test_in_a_branch_and_in_a_loop_that_may_not_turn(rng):
    def f(x, flag, turns):
        y = x
        if flag > 0:
            y = paddle.nn.functional.scaled_dot_product_attention(x, x + 1, x, is_causal=True)
        while turns > 0:
            y = paddle.nn.functional.scaled_dot_product_attention(y, y, x)
            turns = turns - 1
        return paddle.grad((y**2).sum(), [x])[0]

    x = rng.normal(size=(2, 5, 1, 4))
    static = paddle.jit.to_static(f, full_graph=True)
    for flag, turns in ((1, 2), (0, 1), (1, 0), (0, 0)):
        given = paddle.to_tensor(flag), paddle.to_tensor(turns)
        eager, made = (np.asarray(g(paddle.to_tensor(x, stop_gradient=False), *given)) for g in (f, static))
        assert np.allclose(eager, made, rtol=1e-9)


def test_in_forward_mode_and_over_lanes(rng):
    def f(x):
        return paddle.nn.functional.scaled_dot_product_attention(x, x * 2, x - 1, is_causal=True)

    def both_ways(x, v):
        _, pushed = paddle.incubate.autograd.jvp(f, x, v)
        _, pulled = paddle.incubate.autograd.vjp(f, x, v)
        return pushed, pulled

    x, v = (paddle.to_tensor(rng.normal(size=(2, 5, 1, 4))) for _ in range(2))
    pushed, pulled = both_ways(x, v)
    static = paddle.jit.to_static(both_ways, full_graph=True)(x, v)
    assert np.allclose(static[0], pushed, rtol=1e-9)
    assert np.allclose(static[1], pulled, rtol=1e-9)
    lanes = paddle.to_tensor(rng.normal(size=(3, 2, 5, 1, 4)))
    slope = paddle.vmap(lambda x: paddle.incubate.autograd.vjp(f, x)[1])
    made = paddle.jit.to_static(lambda xs: slope(xs), full_graph=True)(lanes)
    assert np.allclose(made, np.stack([paddle.incubate.autograd.vjp(f, x)[1] for x in lanes]), rtol=1e-9)
