"""Random numbers in registers are those of the ops, for every number of lanes and on every target."""

import numpy as np
import pytest

from dy2st.dtypes import float32, float64
from dy2st.ops.shape.philox import words, words64
from dy2st.ops.shape.random import RandomNormal, multiply_high, uniform
from dy2st.runtime.backends.cpu.llvm_ir.definition import Definition
from dy2st.runtime.backends.cpu.vector_ops.philox import (
    random_int,
    random_normal,
    random_uniform,
    random_words,
    random_words64,
)
from tests.runtime.backends.cpu.native import INTEGER, POINTER, callable_of, compiled, runnable, ulps, vector

COUNT = 512
PLACES = [(7, 3), (0x123456789ABCDEF0, 0x1_0000_0007), (-1, -2)]
LANES = {"avx512": (4, 16), "avx2": (8,), "sse": (2, 4), "scalar": (1,)}
ON = [(target, lanes) for target, counts in LANES.items() for lanes in counts]
ARRAYS = {"i32": np.uint32, "i64": np.uint64, "f32": np.float32, "f64": np.float64}


def drawn(definition, kind, lanes, target, seed, draw, *more, start=0):
    """Return elements of a draw from number `start` on."""
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    t, element = vector(kind, lanes), vector(kind, 1)
    names = ["%seed", "%draw", *(f"%m{i}" for i in range(len(more)))]
    parameters = ", ".join(f"i64 {name}" for name in names)
    operands = ", ".join(f"i64 {name}" for name in (*names[:2], "%i", *names[2:]))
    text = f"""define void @run(ptr %out, i64 %start, i64 %n, {parameters}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %back ]
  %y = call {t} @{definition.name}({operands})
  %at = sub i64 %i, %start
  %p = getelementptr {element}, ptr %out, i64 %at
  store {t} %y, ptr %p, align 4
  br label %back
back:
  %next = add i64 %i, {lanes}
  %written = sub i64 %next, %start
  %more = icmp ult i64 %written, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
    run = Definition("run", text, (definition,))
    code = compiled(run, target=target)
    out = np.empty(COUNT, ARRAYS[kind])
    callable_of(code, run, POINTER, *[INTEGER] * (4 + len(more)))(out.ctypes.data, start, COUNT, seed, draw, *more)
    return out


@pytest.mark.parametrize(("target", "lanes"), ON)
@pytest.mark.parametrize(("seed", "draw"), PLACES)
def test_words_are_those_of_the_op(seed, draw, target, lanes):
    assert np.array_equal(drawn(random_words(lanes), "i32", lanes, target, seed, draw), words(np, seed, draw, COUNT))
    assert np.array_equal(
        drawn(random_words64(lanes), "i64", lanes, target, seed, draw), words64(np, seed, draw, COUNT)
    )


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_uniform_numbers_are_those_of_the_op(target, lanes):
    for dtype, kind in ((float32, "f32"), (float64, "f64")):
        found = drawn(random_uniform(kind, lanes), kind, lanes, target, 7, 3)
        assert np.array_equal(found, uniform(np, 7, 3, COUNT, dtype))


@pytest.mark.parametrize(("target", "lanes"), ON)
@pytest.mark.parametrize(("low", "span"), [(-5, 11), (0, 2**63 + 12345), (-(2**63), 2**64 - 1), (3, 1)])
def test_integers_are_those_of_the_op(low, span, target, lanes):
    found = drawn(random_int(lanes), "i64", lanes, target, 7, 3, low, span if span < 2**63 else span - 2**64)
    wanted = multiply_high(words64(np, 7, 3, COUNT), span) + np.uint64(low & (2**64 - 1))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("target", "lanes"), ON)
def test_normal_numbers_are_within_4_ulp_of_the_op(target, lanes):
    for dtype, kind in ((float32, "f32"), (float64, "f64")):
        found = drawn(random_normal(kind, lanes), kind, lanes, target, 7, 3)
        wanted = RandomNormal().numbers(np, 7, 3, COUNT, dtype)
        assert ulps(found, wanted.astype(np.longdouble)).max() <= 4


@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_a_draw_may_begin_anywhere(lanes):
    target = "avx512" if runnable("avx512") else "sse"
    found = drawn(random_words(lanes), "i32", lanes, target, 7, 3, start=2**34 + 16)
    block = drawn(random_words(4), "i32", 4, target, 7, 3, start=2**34 + 16)
    assert np.array_equal(found, block)
