"""Blocks of memory: their size classes, and those of sizes that are known when code is written."""

import ctypes

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import DECLARED, FUNCTIONS, size_class
from dy2st.runtime.backends.cpu.gemm import scratch_kernel
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.static import InputSpec
from tests.runtime.backends.cpu.native import compile_text, compiled, host_target


def test_size_classes_are_those_of_machine_code():
    code = compile_text("\n".join((DECLARED, FUNCTIONS["dy2st.class"])), host_target())
    of = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("dy2st.class"))
    sizes = [*range(5000), *(2**i + j for i in range(12, 40) for j in (-1, 0, 1)), *(3 * 2**i for i in range(10, 40))]
    assert [size_class(size) for size in sizes] == [of(size) for size in sizes]


def turns(x, w, n):
    h, kept = x, []
    for _ in range(n):
        h = paddle.tanh(h @ w) - h * 0.5
        kept.append(h.sum())
    return h, paddle.stack(kept).sum()


@pytest.mark.parametrize("width", [61, 64, 200])
def test_turns_take_the_blocks_that_others_gave_back(width, monkeypatch, rng):
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    specs = [InputSpec([4, width]), InputSpec([width, width]), InputSpec([], "int64")]
    static = paddle.jit.to_static(turns, input_spec=specs, full_graph=True)
    x, w = ((rng.normal(size=(n, width)) * 0.05).astype("float32") for n in (4, width))
    plan, peaks = NativePlan(static.concrete_program.main_program), []
    for n in (8, 3, 8):
        made, total, *_ = plan.run([x, w, np.array(n)])
        h, sums = turns(paddle.to_tensor(x), paddle.to_tensor(w), n)
        np.testing.assert_allclose(made, h.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(total, sums.numpy(), rtol=1e-3, atol=1e-3)
        peaks.append(plan.peak)
    assert "@dy2st.room.of" in plan.unit.module.text()
    assert peaks[0] >= peaks[2] > 0
    assert peaks[0] < 8 * x.nbytes + 2 * w.nbytes


def test_products_that_read_both_factors_as_they_lie_take_no_scratch():
    for turned, shape, some in (
        ((False, False), (20, 1, 64), False),
        ((False, True), (8, 500, 700), False),
        ((False, True), (9, 500, 700), True),
        ((True, False), (300, 600, 2000), True),
        ((True, True), (3, 5, 0), False),
    ):
        kernel = scratch_kernel("f32", *turned, host_target())
        size = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(compiled(kernel).address(kernel.name))
        assert (size(*shape) > 0) == some
