"""Products of batches of matrices, natively: one matrix for all of a batch, any strides, extents that do not fit."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.dump_stages import stage
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


def right(x, w):
    return x @ w


def right_transposed(x, w):
    return paddle.matmul(x, w, transpose_y=True)


def left(x, w):
    return w @ x


def columns(x, w):
    return paddle.matmul(x, w, transpose_x=True)


def used_twice(x, w):
    return paddle.tanh(x @ w) @ w.T


def of_a_view(x, w):
    return x[1:, :, ::2] @ w


CASES = [
    (right, (3, 5, 20), (20, 9)),
    (right, (2, 3, 5, 20), (20, 9)),
    (right, (2, 3, 5, 20), (3, 20, 9)),
    (right, (0, 5, 20), (20, 9)),
    (right, (3, 5, 0), (0, 9)),
    (right, (3, 1, 20), (20, 1)),
    (right_transposed, (3, 5, 20), (9, 20)),
    (left, (3, 5, 20), (9, 5)),
    (columns, (3, 5, 20), (5, 9)),
    (used_twice, (3, 5, 20), (20, 9)),
    (of_a_view, (3, 5, 20), (10, 9)),
]


def program_of(function, *inputs):
    static = paddle.jit.to_static(function, full_graph=True)
    with paddle.no_grad():
        static(*map(paddle.to_tensor, inputs))
    return static.concrete_program.main_program


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("function", "x", "w"), CASES, ids=lambda c: getattr(c, "__name__", str(c)))
def test_one_matrix_for_all_of_a_batch(function, x, w, dtype, rng):
    inputs = [rng.normal(size=shape).astype(dtype) for shape in (x, w)]
    program = program_of(function, *inputs)
    native = NativePlan(program)
    assert not native.host_calls
    np.testing.assert_allclose(native.run(inputs)[0], compile_plan(program).run(inputs)[0], rtol=1e-4, atol=1e-5)


def test_one_matrix_is_not_copied_for_each_of_a_batch(rng):
    program = program_of(right, *(rng.normal(size=shape).astype("float32") for shape in ((3, 5, 20), (20, 9))))
    assert "\n  broadcast -> float32[x_0, w_0, w_1]" in stage(program, "fused")  # a step of its own, in no loop nest


def test_extents_that_differ_are_refused_in_the_interpreters_words(rng):
    inputs = [rng.normal(size=shape).astype("float32") for shape in ((3, 5, 20), (20, 9))]
    program = program_of(right, *inputs)
    wrong = [inputs[0], inputs[1][:7]]
    errors = []
    for runner in (NativePlan(program), compile_plan(program)):
        with pytest.raises(ValueError, match="inner extents differ") as caught:
            runner.run(wrong)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
