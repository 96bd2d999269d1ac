"""`polygamma` written as arithmetic: the values of `eval`, natively and step by step."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ops.elementwise.gamma import polygamma_values
from dy2st.passes.lowering.polygamma import MOST
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import TARGETS, runnable
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, program_of

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.0, 1e-160, -1e-160, 1e-308, 1e300, 10.5, 11.0, 1e7, -0.25)


def plans(n, x):
    program = program_of(lambda x: paddle.polygamma(x, n), x)
    return NativePlan(program), compile_plan(program)


@pytest.mark.parametrize("n", [1, 2, 3, 7, MOST])
def test_special_values_and_a_sweep(n, rng):
    x = np.array([*SPECIAL, *rng.uniform(-8, 40, size=300)])
    native, plan = plans(n, x[:4])
    assert [call.name for call in native.host_calls] == []
    with np.errstate(all="ignore"):
        (wanted,) = plan.run([x])
    np.testing.assert_allclose(native.run([x])[0], wanted, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_size(dtype, rng, guarded):
    native, plan = plans(1, rng.uniform(0.5, 4, size=3).astype(dtype))
    for size in SIZES:
        x = rng.uniform(0.5, 4, size=size).astype(dtype)
        (found,), (wanted,) = native.run([x]), plan.run([x])
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol={"float16": 1e-3, "float32": 2e-7, "float64": 1e-13}[dtype])


def test_every_cpu(rng, monkeypatch):
    x = rng.uniform(-3, 14, size=(3, 17))
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        np.testing.assert_allclose(plans(2, x)[0].run([x])[0], polygamma_values(np, x, 2), rtol=1e-11)


def test_a_tensor_without_axes():
    x = np.array(2.5)
    np.testing.assert_allclose(plans(2, x)[0].run([x])[0], polygamma_values(np, x, 2), rtol=1e-13)


def test_high_orders_are_left_to_the_op(rng):
    x = rng.uniform(0.5, 4, size=5)
    native, plan = plans(MOST + 1, x)
    assert [call.name for call in native.host_calls] == ["polygamma"]
    np.testing.assert_array_equal(native.run([x])[0], plan.run([x])[0])
