"""The pull-back of attention in Programs: views, masks, memory, threads."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.passes import optimise
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.attention.test_attention import native_names
from tests.runtime.backends.cpu.native import (
    TARGETS,
    runnable,
    thread_counts,
)
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def attend(x):
    """Return the attention of three heads that are views of projections."""
    q, k, v = ((x * factor).reshape([x.shape[0], x.shape[1], 3, 8]).transpose([0, 2, 1, 3]) for factor in (1, 2, 3))
    weights = paddle.nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) / 2.0)
    return paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape(x.shape)


def slope(x):
    x.stop_gradient = False
    y = attend(x)
    return paddle.grad((y * y).sum(), [x])[0]


def test_a_step_holds_no_weights_and_is_the_interpreters(rng):
    x = rng.normal(size=(2, 20, 24))
    program = program_of(slope, x)
    names = native_names(program)
    assert {"attention", "attention_grad"} <= {*names}
    assert "softmax" not in names
    for case in (x, x[:, :1], x[:1] * 30):
        compare(NativePlan(program).run([case]), compile_plan(program).run([case]))


def test_the_gradient_is_that_of_eager_mode(rng):
    x = rng.normal(size=(2, 9, 24))
    assert np.allclose(paddle.jit.to_static(slope)(paddle.to_tensor(x)), slope(paddle.to_tensor(x)), rtol=1e-12)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values(special, rng):
    x = rng.normal(size=(2, 5, 24))
    program = program_of(slope, x)
    x[1, 2, 3] = special
    with np.errstate(all="ignore"):
        compare(NativePlan(program).run([x]), compile_plan(program).run([x]))


def test_any_number_of_threads_gives_the_same_bits(rng):
    x = rng.normal(size=(4, 130, 24)).astype("float32")
    plan = NativePlan(program_of(slope, x))
    runs = [plan.run([x])[0].tobytes() for _ in thread_counts()]
    assert len(set(runs)) == 1


@pytest.mark.slow
def test_strict_code_gives_the_same_bits_on_every_cpu(rng, monkeypatch):
    x = rng.normal(size=(2, 11, 24)).astype("float32")
    program = program_of(slope, x)
    runs = []
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        runs.append(NativePlan(program, strict=True).run([x])[0].tobytes())
    assert len(set(runs)) == 1


def test_memory_grows_with_the_length_not_with_its_square(rng):
    plan = NativePlan(optimise(program_of(slope, rng.normal(size=(1, 8, 24)).astype("float32"))))
    peaks = []
    for length in (1024, 4096):
        plan.run([rng.normal(size=(1, length, 24)).astype("float32")])
        peaks.append(plan.peak)
    assert peaks[1] < 5 * peaks[0]
    assert peaks[1] < 3 * 4096**2 * 4 / 8  # the weights of three heads


def test_a_causal_step_holds_no_mask(rng):
    def f(x):
        x.stop_gradient = False
        y = paddle.nn.functional.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True)
        return paddle.grad((y * y).sum(), [x])[0]

    program = optimise(program_of(f, rng.normal(size=(1, 8, 2, 4))))
    plan, names = NativePlan(program), native_names(program)
    assert {"attention", "attention_grad"} <= {*names}
    assert "tril" not in names
    x = rng.normal(size=(2, 19, 2, 4))
    compare(plan.run([x]), compile_plan(program).run([x]))
    assert np.allclose(plan.run([x])[0], f(paddle.to_tensor(x)), rtol=1e-9)
    plan.run([rng.normal(size=(1, 2048, 2, 4))])
    assert plan.peak < 2048**2 * 8
