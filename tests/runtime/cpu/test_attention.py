"""Attention against the op's own arithmetic: shapes, views, masks, every target, no access outside of the arrays."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ops.attention import Attention
from dy2st.passes import optimise
from dy2st.runtime.cpu.attention import attention_kernel, attention_scratch
from dy2st.runtime.cpu.native import NativePlan
from dy2st.runtime.cpu.target import host_target
from dy2st.runtime.plan import compile_plan
from tests.runtime.cpu.attention import CAUSAL, LESSER, MASKED, numbers_of, scratch_of
from tests.runtime.cpu.native import DTYPES, INTEGER, POINTER, TARGETS, Guarded, callable_of, compiled, runnable
from tests.runtime.cpu.test_same_as_interpreter import compare, program_of

TOLERANCE = {"f32": 1e-5, "f64": 1e-12}
_compiled = {}


def functions(dtype, target=None):
    if (dtype, target) not in _compiled:
        kernels = [make(dtype, host_target(target)) for make in (attention_kernel, attention_scratch)]
        code = compiled(*kernels, target=target)
        run = callable_of(code, kernels[0], *[POINTER] * 7)
        _compiled[dtype, target] = code, run, callable_of(code, kernels[1], POINTER, result=INTEGER)
    return _compiled[dtype, target][1:]


def check(shape, dtype, mask=None, target=None, causal=False):
    outer, inner, n, m, d, e = shape
    run, size = functions(dtype, target)
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(outer, inner, *s)).astype(DTYPES[dtype]) for s in ((n, d), (m, d), (m, e)))
    masks = [rng.normal(size=mask).astype(DTYPES[dtype])] if mask else []
    row = numbers_of(shape, causal, {"q": q, "k": k, "v": v} | ({"mask": masks[0]} if masks else {}))
    scratch = scratch_of(size(row.address))
    wanted = Attention().eval(np, q, k, v, *masks, causal=causal)
    for at_start in (False, True):
        given = [Guarded(x, at_start) for x in (q, k, v, *masks)]
        out = Guarded(np.full_like(wanted, np.nan), at_start)
        places = [x.address for x in given] + [None] * (4 - len(given))
        run(*places, out.address, row.address, scratch.address)
        assert np.allclose(out.array, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]), shape


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
