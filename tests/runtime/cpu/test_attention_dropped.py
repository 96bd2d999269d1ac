"""Attention that drops weights, and cotangents of masks: the ops' arithmetic, targets, guarded memory, memory used."""

import re

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn.functional import scaled_dot_product_attention
from dy2st.ops.attention import Attention, AttentionGrad, AttentionMaskGrad
from dy2st.runtime.cpu import attention
from dy2st.runtime.cpu.native import NativePlan
from dy2st.runtime.cpu.target import host_target
from dy2st.runtime.plan import compile_plan
from tests.runtime.cpu.attention import CAUSAL, LESSER, MASKED, numbers_of, scratch_of
from tests.runtime.cpu.native import DTYPES, INTEGER, POINTER, Guarded, callable_of, compiled, runnable, thread_counts
from tests.runtime.cpu.test_attention import native_names
from tests.runtime.cpu.test_same_as_interpreter import compare, program_of

TOLERANCE = {"f32": 2e-5, "f64": 1e-12}
ORDER = ("q", "k", "v", "ct", "mask")
KINDS = {
    "attention": (Attention(), ("q", "k", "v", "mask"), 1, "attention"),
    "gradient": (AttentionGrad(), ("q", "k", "v", "mask", "ct"), 3, "attention_gradient"),
    "mask": (AttentionMaskGrad(), ("q", "k", "v", "mask", "ct"), 1, "mask_gradient"),
}
"""The op, what its kernel reads, how many results it has, and what its makers are called."""
SEED, DRAW, KEEP, FACTOR = 2**40 + 7, 2**33 + 3, 0.6, 1.75
_compiled = {}


def functions(kind, dtype, drops, target=None):
    key = kind, dtype, drops, target
    if key not in _compiled:
        _, places, results, name = KINDS[kind]
        makers = [getattr(attention, f"{name}_{part}") for part in ("kernel", "scratch")]
        made = [make(dtype, host_target(target), drops) for make in makers]
        code = compiled(*made, target=target)
        run = callable_of(code, made[0], *[POINTER] * (len(places) + results + 2))
        _compiled[key] = code, run, callable_of(code, made[1], POINTER, result=INTEGER)
    return _compiled[key][1:]


def check(kind, shape, dtype, mask=None, target=None, causal=False, drawn=None):
    """Compare a kernel with its op; `drawn` are the batches of a draw."""
    op, order, _, _ = KINDS[kind]
    outer, inner, n, m, d, e = shape
    run, size = functions(kind, dtype, drawn is not None, target)
    rng = np.random.default_rng(0)
    shapes = dict(zip(ORDER, [(outer, inner, *s) for s in ((n, d), (m, d), (m, e), (n, e))])) | {"mask": mask}
    parts = {name: rng.normal(size=shapes[name]).astype(DTYPES[dtype]) for name in ORDER if shapes[name]}
    parts = {name: x for name, x in parts.items() if name in order}
    row = row_of(shape, causal, parts, drawn)
    scratch = scratch_of(size(row.address))
    drop = [SEED, DRAW, KEEP, FACTOR, *drawn] if drawn else []
    wanted = op.eval(np, *(parts[name] for name in ORDER if name in parts), *drop, causal=causal)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for at_start in (False, True):
        given = {name: Guarded(x, at_start) for name, x in parts.items()}
        outs = [Guarded(np.full_like(x, np.nan), at_start) for x in wanted]
        places = [given[name].address if name in given else None for name in order]
        run(*places, *(out.address for out in outs), row.address, scratch.address)
        for out, right in zip(outs, wanted, strict=True):
            assert np.allclose(out.array, right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]), shape


def row_of(shape, causal, parts, drawn):
    """Return the row of numbers that kernels read, with those of the mask's cotangent and of a draw."""
    numbers = dict(zip(attention.FIELDS, numbers_of(shape, causal, parts).array))
    extents = parts["mask"].shape if "mask" in parts else ()
    apart = [0 if e == 1 else int(np.prod(extents[i + 1 :])) for i, e in enumerate(extents)]
    numbers |= dict(zip(("slope_outer", "slope_inner", "slope_row", "slope_column"), apart))
    if drawn:
        numbers |= {"drawn_outer": drawn[1] * (drawn[0] != 1), "drawn_inner": int(drawn[1] != 1)}
        shares = np.array([KEEP, FACTOR]).view(np.int64)
        numbers |= {"seed": SEED, "draw": DRAW, "keep": shares[0], "factor": shares[1]}
    return Guarded(np.array([numbers[name] for name in attention.FIELDS], np.int64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["attention", "gradient"])
@pytest.mark.parametrize(("shape", "mask"), MASKED)
def test_weights_are_dropped(kind, shape, mask, dtype):
    check(kind, shape, dtype, mask, drawn=shape[:2])
    check(kind, shape, dtype, mask, drawn=(1, shape[1]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", CAUSAL)
def test_a_query_sees_the_keys_up_to_its_own_place(kind, shape):
    check(kind, shape, "f32", (1, shape[1], shape[2], shape[3]), causal=True, drawn=shape[:2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", [(2, 3, 70, 33), (1, 3, 70, 33), (2, 1, 70, 33), (1, 1, 70, 33), (2, 3, 1, 33),
                                  (1, 1, 1, 33), (2, 3, 70, 1), (1, 3, 70, 1), (1, 1, 1, 1)])  # fmt: skip
def test_masks_of_any_extents_have_cotangents(mask, dtype):
    check("mask", (2, 3, 70, 33, 8, 5), dtype, mask)
    check("mask", (2, 3, 70, 33, 8, 5), dtype, mask, drawn=(2, 1))


@pytest.mark.parametrize(("shape", "mask"), [case for case in MASKED if case[1]])
def test_cotangents_of_masks(shape, mask):
    check("mask", shape, "f32", mask)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4, 2, 2), (1, 2, 0, 4, 2, 2), (1, 2, 3, 0, 2, 2), (2, 0, 3, 4, 2, 2)])
def test_where_there_are_no_weights_the_cotangent_is_zero(shape):
    check("mask", shape, "f32", (1, 1, 1, shape[3]))
    check("mask", shape, "f32", (1, 1, shape[2], 1), drawn=shape[:2])


@pytest.mark.parametrize("target", LESSER)
@pytest.mark.parametrize("kind", KINDS)
def test_lesser_targets(kind, target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    check(kind, (1, 2, 150, 151, 5, 9), "f32", (1, 1, 150, 151), target, causal=True, drawn=(1, 2))
    check(kind, (2, 2, 19, 13, 5, 9), "f64", (2, 1, 1, 13), target, drawn=(2, 2))


# ---- whole Programs -------------------------------------------------------------------------------------------------
def slopes(x, mask):
    x.stop_gradient = mask.stop_gradient = False
    y = scaled_dot_product_attention(x, x * 2, x - 1, attn_mask=mask, dropout_p=0.3)
    return paddle.grad((y**3).sum(), [x, mask])


@pytest.mark.parametrize("mask", [(1, 2, 9, 9), (2, 2, 9, 9), (9, 9), (2, 1, 1, 9)])
def test_a_step_is_that_of_eager_mode_and_of_the_interpreter(mask, rng):
    x, m = rng.normal(size=(2, 9, 2, 4)), rng.normal(size=mask)
    static = paddle.jit.to_static(slopes, full_graph=True)
    made = []
    for f in (slopes, static, static, static):
        paddle.seed(5)
        made.append([np.asarray(y) for y in f(paddle.to_tensor(x), paddle.to_tensor(m))])
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    program = static.concrete_program.main_program
    names = native_names(program)
    assert {"attention", "attention_grad", "attention_mask_grad"} <= {*names}
    assert {"softmax", "random_bernoulli"}.isdisjoint(names)
    inputs = [np.asarray(v) if v.shape else v for v in (x, m)]
    seeds = [3, 7][: len(program.block.arguments) - 2]
    compare(NativePlan(program).run([*inputs, *seeds]), compile_plan(program).run([*inputs, *seeds]))


def test_any_number_of_threads_gives_the_same_bits(rng):
    x, m = (paddle.to_tensor(rng.normal(size=s).astype("float32")) for s in ((2, 130, 2, 8), (2, 130, 130)))
    static = paddle.jit.to_static(slopes, full_graph=True)
    runs = []
    for _ in thread_counts(1, 1, 1, 2, 4):
        paddle.seed(1)
        runs.append([np.asarray(y).tobytes() for y in static(x, m)])
    assert runs[2] == runs[3] == runs[4]


def test_a_value_of_more_batches_than_the_draw_is_weighted_alike(rng):
    def f(q, v):
        q.stop_gradient = v.stop_gradient = False
        weights = paddle.nn.functional.softmax(paddle.matmul(q, q, transpose_y=True))
        y = paddle.matmul(paddle.nn.functional.dropout(weights, 0.4), v)
        return paddle.grad((y**2).sum(), [q, v])

    q, v = rng.normal(size=(1, 6, 4)), rng.normal(size=(3, 6, 4))
    made = []
    for g in (f, *[paddle.jit.to_static(f, full_graph=True)] * 3):
        paddle.seed(2)
        made.append([np.asarray(y) for y in g(paddle.to_tensor(q), paddle.to_tensor(v))])
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values(special, rng):
    x, m = rng.normal(size=(2, 5, 2, 4)), rng.normal(size=(5, 5))
    program = program_of(slopes, x, m)
    x[1, 2, 0, 3] = special
    seeds = [3, 7][: len(program.block.arguments) - 2]
    with np.errstate(all="ignore"):
        compare(NativePlan(program).run([x, m, *seeds]), compile_plan(program).run([x, m, *seeds]))


@pytest.mark.parametrize("learns", ["nothing", "a mask of rows", "a mask of all"])
def test_a_step_holds_no_weights(learns, rng, monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")

    def loss(x, *mask):
        y = scaled_dot_product_attention(x, x, x, attn_mask=mask[0] if mask else None, dropout_p=0.2)
        return (y**2).sum()

    static, length = paddle.jit.to_static(loss, full_graph=True), 1024
    shape = {"nothing": None, "a mask of rows": (1, 1, 1, length), "a mask of all": (length, length)}[learns]
    given = [(1, length, 8, 4), *([] if shape is None else [shape])]
    inputs = [paddle.to_tensor(rng.normal(size=s).astype("float32"), stop_gradient=False) for s in given]
    for _ in range(3):
        static(*inputs).backward()
    held = [float(size) for size in re.findall(r"at most ([0-9.]+) MB beside", str(static.explain()))]
    assert len(held) == 2  # the forward and the backward Program
    assert max(held) < 8 * length**2 * 4 / 1e6 / 3  # the weights of 8 heads


def test_multi_head_attention_with_dropout_trains_as_eager_mode(rng):
    paddle.seed(0)
    layer = paddle.nn.MultiHeadAttention(8, 2, dropout=0.5)
    static, x = paddle.jit.to_static(layer.forward, full_graph=True), rng.normal(size=(2, 7, 8)).astype("float32")
    made = []
    for forward in (layer.forward, static, static, static):
        paddle.seed(4)
        (forward(paddle.to_tensor(x)) ** 2).sum().backward()
        made.append([p.grad.numpy() for p in layer.parameters() if p.grad is not None])
        layer.clear_gradients()
    for other in made[1:]:
        for found, wanted in zip(other, made[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
