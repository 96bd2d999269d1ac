"""The pull-back of attention against the op's own arithmetic: shapes, views, masks, every target, guarded memory."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ops.attention import AttentionGrad
from dy2st.passes import optimise
from dy2st.runtime.cpu.attention import attention_gradient_kernel, attention_gradient_scratch
from dy2st.runtime.cpu.native import NativePlan
from dy2st.runtime.cpu.target import host_target
from dy2st.runtime.plan import compile_plan
from tests.runtime.cpu.attention import CAUSAL, LESSER, MASKED, numbers_of, scratch_of
from tests.runtime.cpu.native import (
    DTYPES,
    INTEGER,
    POINTER,
    TARGETS,
    Guarded,
    callable_of,
    compiled,
    runnable,
    thread_counts,
)
from tests.runtime.cpu.test_attention import native_names
from tests.runtime.cpu.test_same_as_interpreter import compare, program_of

TOLERANCE = {"f32": 2e-5, "f64": 1e-12}
ORDER = ("q", "k", "v", "ct", "mask")
_compiled = {}


def functions(dtype, target=None):
    if (dtype, target) not in _compiled:
        made = [make(dtype, host_target(target)) for make in (attention_gradient_kernel, attention_gradient_scratch)]
        code = compiled(*made, target=target)
        run = callable_of(code, made[0], *[POINTER] * 10)
        _compiled[dtype, target] = code, run, callable_of(code, made[1], POINTER, result=INTEGER)
    return _compiled[dtype, target][1:]


def check(shape, dtype, mask=None, target=None, causal=False):
    outer, inner, n, m, d, e = shape
    run, size = functions(dtype, target)
    rng = np.random.default_rng(0)
    shapes = [(outer, inner, *s) for s in ((n, d), (m, d), (m, e), (n, e))] + ([mask] if mask else [])
    parts = dict(zip(ORDER, (rng.normal(size=s).astype(DTYPES[dtype]) for s in shapes)))
    row = numbers_of(shape, causal, parts)
    scratch = scratch_of(size(row.address))
    wanted = AttentionGrad().eval(np, *parts.values(), causal=causal)
    for at_start in (False, True):
        given = {name: Guarded(x, at_start) for name, x in parts.items()}
        outs = [Guarded(np.full_like(x, np.nan), at_start) for x in wanted]
        places = [given[name].address if name in given else None for name in ("q", "k", "v", "mask", "ct")]
        run(*places, *(out.address for out in outs), row.address, scratch.address)
        for out, right in zip(outs, wanted, strict=True):
            assert np.allclose(out.array, right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]), shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "mask"), MASKED)
def test_shapes_and_masks(shape, mask, dtype):
    check(shape, dtype, mask)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", CAUSAL)
def test_a_query_sees_the_keys_up_to_its_own_place(shape, dtype):
    check(shape, dtype, causal=True)
    check(shape, dtype, (1, 1, 1, shape[3]), causal=True)


@pytest.mark.parametrize("target", LESSER)
def test_lesser_targets(target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    check((1, 2, 150, 151, 5, 9), "f32", None, target, causal=True)
    check((2, 2, 19, 13, 5, 9), "f32", (2, 1, 19, 13), target)


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
