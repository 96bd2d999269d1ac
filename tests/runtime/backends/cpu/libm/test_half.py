"""float16 and bfloat16 in native code: conversions of all numbers, and loop nests with the interpreter's bits."""

import ctypes

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import bfloat16
from dy2st.nn import functional
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_text
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.libm.core.half import (
    conversion,
    from_bfloat,
    from_half,
    rounded_to_bfloat,
    to_bfloat,
    to_half,
)
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition, gathered
from tests.runtime.backends.cpu.native import runnable, same_natively

ON = [(target, lanes) for target, lanes in (("avx512", 16), ("avx2", 8), ("sse", 4), ("scalar", 1)) if runnable(target)]


def converted(formula, x, target, lanes):
    """Apply a conversion to words of 32 bits, whose number is a multiple of the lanes."""
    definition = conversion(formula, lanes)
    kinds = [kind if lanes == 1 else f"<{lanes} x {kind}>" for kind in ("i32", "float")]
    source = kinds[formula not in (from_half, from_bfloat)]
    made = kinds[formula not in (to_half, to_bfloat)]
    loop = f"""define void @run(ptr %x, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr i32, ptr %x, i64 %i
  %v = load {source}, ptr %from, align 4
  %y = call {made} @{definition.name}({source} %v)
  %to = getelementptr i32, ptr %out, i64 %i
  store {made} %y, ptr %to, align 4
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
    code = compile_text(gathered([definition, Definition("run", loop)]), host_target(target))
    out = np.empty_like(x)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.address("run"))
    run(x.ctypes.data, out.ctypes.data, x.size)
    return out


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_every_number_becomes_float32(target, lanes):
    words = np.arange(1 << 16, dtype=np.uint32)
    wanted = words.astype(np.uint16).view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(converted(from_half, words, target, lanes).view(np.float32), wanted)


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_float32_becomes_the_nearest_number(target, lanes, rng):
    near = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (near[:-1] + near[1:]) / 2
    edges = [65504, 65519.99, 65520, 65536, 1e30, 2.0**-25, 2.0**-25 * 1.0001, 2.0**-26, 1e-40, np.inf, np.nan, 0.0]
    with np.errstate(all="ignore"):
        x = np.concatenate([near, between, np.nextafter(between, np.float32(9e9)), np.float32(edges),
                            rng.integers(0, 2**32, 50_000, np.uint64).astype(np.uint32).view(np.float32)])  # fmt: skip
        x = np.concatenate([x, -x])
        x = x[: x.size // 16 * 16].astype(np.float32)
        found = converted(to_half, x.view(np.uint32), target, lanes).astype(np.uint16).view(np.float16)
        np.testing.assert_array_equal(found, x.astype(np.float16))


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_every_bfloat16_becomes_float32(target, lanes):
    words = np.arange(1 << 16, dtype=np.uint32)
    wanted = words.astype(np.uint16).view(bfloat16.numpy).astype(np.float32)
    np.testing.assert_array_equal(converted(from_bfloat, words, target, lanes).view(np.float32), wanted)


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_float32_becomes_the_nearest_bfloat16(target, lanes, rng):
    """All numbers, those half-way between two, those next to these, subnormal ones, and what overflows."""
    words = np.arange(1 << 16, dtype=np.uint32) << 16
    parts = [words, words + 0x7FFF, words + 0x8000, words + 0x8001, words + 0xFFFF]
    bits = np.concatenate([*parts, rng.integers(0, 2**32, 50_000, np.uint64).astype(np.uint32)])
    bits = bits[: bits.size // 16 * 16]
    with np.errstate(all="ignore"):
        wanted = bits.view(np.float32).astype(bfloat16.numpy).astype(np.float32)
    found = converted(to_bfloat, bits, target, lanes) << 16
    np.testing.assert_array_equal(found.view(np.float32), wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(found[number], wanted.view(np.uint32)[number])
    rounded = converted(rounded_to_bfloat, bits, target, lanes).view(np.float32)
    np.testing.assert_array_equal(rounded, wanted)


def test_the_number_next_to_each(each_cpu):
    x = np.array([0, 6e-8, 1, 2, -3, 1023, 65504, -65504, np.inf, -np.inf, np.nan, 0.1, 6.104e-05], "float16")
    x, y = (a.ravel().copy() for a in np.meshgrid(x, x))
    with np.errstate(all="ignore"):
        same_natively(paddle.nextafter, x, y, calls=None)


@pytest.mark.parametrize("cpu", ["", "avx2", "sse", "scalar"])
@pytest.mark.parametrize("length", [1, 15, 17, 300])
def test_loop_nests(cpu, length, monkeypatch, rng):
    if cpu and not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    monkeypatch.setenv("DY2ST_CPU", cpu)

    def f(x):
        y = x * 2 + 1
        h = (x * y + y) / 3 - x.abs()
        z = paddle.where(h > 0, h, -h).astype("float32")
        return h, z, (z * 2).astype("float16"), paddle.maximum(x, y), x.astype("int32"), x.astype("bool"), h * h * h

    same_natively(f, rng.normal(size=(3, length)).astype("float16") * 9)


def test_functions(rng):
    x = rng.normal(size=(4, 40)).astype("float16")
    same_natively(
        lambda x: (
            paddle.nn.functional.relu(x),
            paddle.sqrt(x.abs()),
            x.floor(),
            paddle.zeros_like(x),
            paddle.full_like(x, 3),
        ),
        x,
    )
    same_natively(lambda x: (paddle.exp(x), paddle.tanh(x), paddle.nn.functional.sigmoid(x)), x, half=True)


def test_overflow_and_special_numbers():
    x = np.array([65504, -65504, np.inf, np.nan, 6e-8, -0.0, 2.0**-14, 1000], np.float16)
    same_natively(lambda x: (x + x, x * x, x / 3, x - x, x > 1, x.isnan()), np.tile(x, 5))


def test_the_signs_of_zeros():
    x, y = np.meshgrid(np.array([0.0, -0.0, 1, -1, np.nan], np.float16), np.array([0.0, -0.0], np.float16))

    def f(x, y):
        choices = paddle.maximum(x, y), paddle.minimum(x, y), paddle.fmax(x, y), paddle.fmin(x, y)
        return *(1 / z for z in choices), 1 / paddle.nn.functional.relu(x), 1 / paddle.nextafter(x, y)

    same_natively(f, np.tile(x, 9), np.tile(y, 9), calls=None)


@pytest.mark.parametrize("axis", [None, 0, 1, [0, 2]])
def test_reductions(axis, rng):
    x = rng.normal(size=(3, 4, 50)).astype("float16")
    same_natively(lambda x: (x.max(axis), x.min(axis), x.prod(axis)), x, half=True)
    same_natively(lambda x: (x.sum(axis), x.mean(axis)), np.abs(x), half=True)


def test_products_of_matrices(rng):
    def f(x):
        return paddle.matmul(x, x, transpose_y=True), paddle.nn.functional.relu(paddle.matmul(x, x, True) + 1)

    same_natively(f, np.abs(rng.normal(size=(8, 20))).astype("float16"), half=True)


def test_a_long_sum_keeps_its_digits():
    same_natively(lambda x: x.sum(), np.ones(4096, "float16"))


def test_derivatives(rng):
    def f(x):
        x.stop_gradient = False
        h = (x * 2).astype("float16")
        return paddle.grad((h * h).sum() * 3 + h.max() + paddle.trace(h), x)[0]

    same_natively(f, rng.normal(size=(5, 5)).astype("float32"), calls=None)  # numbers of float16 are `eval`'s


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 4, 17), (1, 1, 1), (2, 0, 5)])
def test_normalisation(axis, shape, rng):
    def f(x):
        return functional.softmax(x, axis), functional.log_softmax(x, axis), functional.layer_norm(x, [x.shape[-1]])

    same_natively(f, (rng.normal(size=shape) * 4).astype("float16"), exact=False)


def test_sums_of_exponentials_of_any_size(rng):
    x = (rng.normal(size=(6, 40)) * 300).astype("float16")
    x[1, 3], x[2, 4], x[3] = np.inf, np.nan, -np.inf
    same_natively(lambda x: (paddle.logsumexp(x, -1, keepdim=True), functional.softmax(x, 0)), x, exact=False)


def test_losses(rng):
    labels = np.array([[1], [0], [-100], [8]])
    x = rng.normal(size=(4, 9)).astype("float16")
    same_natively(functional.softmax_with_cross_entropy, x, labels, calls=None, exact=False)


def test_derivatives_of_normalisation(rng):
    def f(x, at):
        x.stop_gradient = False
        h = functional.softmax(x * 2) * x + functional.layer_norm(x, [9])
        return paddle.grad(functional.softmax_with_cross_entropy(h, at).astype("float32").sum(), x)[0]

    same_natively(f, rng.normal(size=(4, 9)).astype("float16"), np.array([[1], [0], [3], [8]]), calls=None, exact=False)


@pytest.mark.parametrize("shape", [[1000], [3, 7], [0, 2]])
def test_draws(shape, monkeypatch):
    def f(x):
        return paddle.rand(shape, "float16"), paddle.bernoulli(x), functional.dropout(x, 0.3)

    x = np.linspace(0, 1, int(np.prod(shape)), dtype="float16").reshape(shape)
    drawn = []
    for backend in ("interpreter", "native"):
        monkeypatch.setenv("DY2ST_BACKEND", backend)
        paddle.seed(5)
        run = paddle.jit.to_static(f)
        drawn.append([t.numpy() for _ in range(2) for t in run(paddle.to_tensor(x))])
    for one, other in zip(*drawn, strict=True):
        np.testing.assert_array_equal(one, other)
