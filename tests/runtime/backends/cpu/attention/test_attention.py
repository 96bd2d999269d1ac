"""Programs that attention is found in: views, masks, what is read of the weights."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes import optimise
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import TARGETS, runnable
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def attend(x, heads, mask=None):
    parts = x.reshape([x.shape[0], x.shape[1], heads, -1]).transpose([0, 2, 1, 3])
    scores = paddle.matmul(parts * 0.5, parts, transpose_y=True)
    weights = paddle.nn.functional.softmax(scores if mask is None else scores + mask)
    return paddle.matmul(weights, parts).transpose([0, 2, 1, 3]).reshape(x.shape)


def native_names(program):
    return [step.name for step in NativePlan(program).unit.program.walk()]


def test_heads_are_read_as_they_lie(rng):
    x = rng.normal(size=(2, 20, 24)).astype("float32")
    program = program_of(lambda x: attend(x, 3), x)
    program = optimise(program)
    assert "attention" in native_names(program)
    for case in (x, x[:, :1], x * 30):
        compare(NativePlan(program).run([case]), compile_plan(program).run([case]))


def test_a_causal_mask(rng):
    x = rng.normal(size=(2, 9, 2, 4)).astype("float32")
    attention = paddle.nn.functional.scaled_dot_product_attention
    program = optimise(program_of(lambda x: attention(x, x, x, is_causal=True), x))
    assert "attention" in native_names(program)
    compare(NativePlan(program).run([x]), compile_plan(program).run([x]))


@pytest.mark.parametrize("drop", [0.0, 0.5])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_keys_that_are_not_seen_may_be_anything(special, drop, rng):
    def f(q, k, v):
        return paddle.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop)

    q, k, v = rng.normal(size=(3, 1, 20, 2, 4)).astype("float32")
    k[0, 12, 0, 3] = special
    static = paddle.jit.to_static(f, full_graph=True)
    found = []
    with np.errstate(all="ignore"):
        for call in (f, static, static, static):
            paddle.seed(5)
            found.append(call(*map(paddle.to_tensor, (q, k, v))).numpy())
    for one in found:
        assert np.isfinite(one[0, :12]).all()
        np.testing.assert_allclose(one, found[0], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, 40])
def test_strict_code_gives_the_same_bits_on_every_cpu(length, rng, monkeypatch):
    x = rng.normal(size=(2, length, 24)).astype("float32")
    program = optimise(program_of(lambda x: attend(x, 3), x))
    runs = []
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        runs.append(NativePlan(program, strict=True).run([x])[0].tobytes())
    assert len(set(runs)) == 1


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_stay_in_their_rows(special, rng):
    x = rng.normal(size=(1, 6, 8)).astype("float32")
    x[0, 2, 3] = special
    program = program_of(lambda x: attend(x, 2), x)
    program = optimise(program)
    with np.errstate(all="ignore"):
        compare(NativePlan(program).run([x]), compile_plan(program).run([x]))


def test_weights_that_are_read_are_written_down(rng):
    def f(x):
        weights = paddle.nn.functional.softmax(paddle.matmul(x, x, transpose_y=True))
        return paddle.matmul(weights, x), weights

    assert "attention" not in native_names(program_of(f, rng.normal(size=(2, 5, 4)).astype("float32")))
