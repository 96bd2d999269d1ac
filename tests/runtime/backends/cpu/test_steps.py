"""Slices whose step only the run tells: reads and writes as `eval` has them, for every sign, bound and size."""

import itertools

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import INT, TensorType
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.native import TARGETS, runnable
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, compare

STEPS = (1, 2, 3, -1, -2, -5, 400, -400, 2**62, -(2**63))
WHOLE = ("slice", "?", "?", "?")


def plans(kind, spec, tensors=()):
    b = Builder()
    x = b.argument(b.named(TensorType(paddle.float32, (None, None))))
    numbers = [b.argument(INT) for _ in range(sum(item.count("?") for item in spec))]
    places = [b.argument(b.named(t)) for t in tensors]
    found = b.index(x, *numbers, *places, spec=spec)
    b.block.results = [found]
    if kind == "set":
        b.block.results = [b.index_set(x, b.mul(found, -2.0), *numbers, *places, spec=spec)]
    if kind == "add":
        b.block.results = [b.index_add(x, b.mul(found, -2.0), *numbers, *places, spec=spec)]
    program = Program({"main": b.block})
    native = NativePlan(program)
    assert [call.name for call in native.host_calls if not call.rare] == []
    return native, compile_plan(program)


@pytest.mark.parametrize("kind", ["read", "set", "add"])
def test_steps_and_bounds(kind, rng, guarded):
    native, plan = plans(kind, (("slice", None, None, None), WHOLE))
    for size in SIZES[:-1]:
        x = rng.normal(size=(2, size)).astype("float32")
        for start, stop, step in itertools.product((0, 2, -1, 300), (0, 1, -3, 300), STEPS):
            run = [x, start, stop, step]
            compare(native.run(list(run)), plan.run(list(run)), exact=True)
    assert native.elsewhere == 0


@pytest.mark.parametrize("kind", ["read", "set", "add"])
def test_bounds_that_are_left_out(kind, rng, guarded):
    native, plan = plans(kind, (("slice", None, None, "?"),))
    for size, step in itertools.product(SIZES, STEPS):
        x = rng.normal(size=(size, 3)).astype("float32")
        compare(native.run([x, step]), plan.run([x, step]), exact=True)


@pytest.mark.parametrize("kind", ["read", "set"])
def test_beside_places(kind, rng):
    native, plan = plans(kind, (("slice", None, None, "?"), ("tensor",)), [TensorType(paddle.int64, (None,))])
    x, places = rng.normal(size=(9, 5)).astype("float32"), np.array([4, 0, -2])
    for step in STEPS:
        compare(native.run([x, step, places]), plan.run([x, step, places]), exact=True)


@pytest.mark.parametrize("kind", ["read", "set", "add"])
def test_a_step_of_zero_is_pythons_error(kind, rng):
    native, plan = plans(kind, (WHOLE,))
    for run in (native.run, plan.run):
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            run([rng.normal(size=(4, 3)).astype("float32"), 0, 3, 0])


def test_every_cpu(rng, monkeypatch):
    x = rng.normal(size=(37, 17)).astype("float32")
    for cpu in filter(runnable, TARGETS):
        monkeypatch.setenv("DY2ST_CPU", cpu)
        native, plan = plans("read", (WHOLE,))
        for step in (2, -3):
            compare(native.run([x, -1, 1, step]), plan.run([x, -1, 1, step]), exact=True)
            compare(native.run([x, 1, 99, step]), plan.run([x, 1, 99, step]), exact=True)
