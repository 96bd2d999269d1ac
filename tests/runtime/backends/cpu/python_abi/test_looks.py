"""Signals end a run between large operations, in a straight line too."""

import signal
import time

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.python_abi import interrupts


class Enough(Exception):
    pass


def enough(*_):
    raise Enough


def sorts(b, x):
    for _ in range(8):
        x = b.sort(b.neg(x), axis=0, descending=False)
    return x


def sums(b, x):
    total = b.max(x, axis=(0, 1), keepdim=False)
    for _ in range(60):
        total = b.max(b.sin(b.mul(x, total)), axis=(0, 1), keepdim=False)
    return total


def products(b, x):
    for _ in range(60):
        x = b.matmul(x, x, transpose_x=False, transpose_y=False)
    return x


@pytest.mark.parametrize(("f", "rows"), [(sorts, 800), (sums, 2000), (products, 800)])
def test_a_signal_ends_a_straight_line(f, rows, rng, monkeypatch):
    b = Builder()
    x = b.argument(b.named(TensorType(paddle.float32, (None, None))))
    b.block.results = [f(b, x)]
    native = NativePlan(Program({"main": b.block}))
    given = [rng.normal(size=(rows, rows)).astype("float32")]
    wanted, whole = native.run(given)[0], []
    for _ in range(2):
        began = time.perf_counter()
        native.run(given)
        whole.append(time.perf_counter() - began)
    ended = []
    monkeypatch.setattr(
        interrupts, "raise_kept", lambda error, kept=interrupts.raise_kept: ended.append(1) or kept(error)
    )
    before = signal.signal(signal.SIGALRM, enough)
    try:
        signal.setitimer(signal.ITIMER_REAL, min(whole) / 8)
        with pytest.raises(Enough):
            native.run(given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended  # it was the run that found the signal, not Python after it
    np.testing.assert_array_equal(native.run(given)[0], wanted)
    assert native.elsewhere == 0
