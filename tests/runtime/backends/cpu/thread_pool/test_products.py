"""Products of matrices whose rows are split between threads: the same bits for any number of threads."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan

SIZES = [(121, 128, 100), (129, 64, 64), (1, 3000, 300), (7, 1000, 300), (9, 500, 300), (3001, 17, 31), (300, 1, 4000),
         (260, 270, 600), (4000, 8, 2), (1, 3011, 300), (13, 3000, 300), (24, 1090, 500),
         (2, 64 * 48 + 64, 300), (150, 1090, 400)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
def test_any_number_of_threads_gives_the_same_bits(a_turned, b_turned, dtype, rng):
    static = paddle.jit.to_static(
        lambda a, b: paddle.matmul(a, b, transpose_x=a_turned, transpose_y=b_turned), full_graph=True
    )
    with paddle.no_grad():
        static(paddle.ones([2, 2], dtype), paddle.ones([2, 2], dtype))
    native = NativePlan(static.concrete_program.main_program)
    for m, n, k in SIZES:
        a, b = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n)))
        inputs = [np.ascontiguousarray(x.T) if turned else x for x, turned in ((a, a_turned), (b, b_turned))]
        made = []
        for count in (1, 2, 4):
            paddle.set_num_threads(count)
            made.append(native.run(inputs)[0])
        np.testing.assert_allclose(made[0], a @ b, rtol=1e-4, atol=1e-3)
        assert all(np.array_equal(made[0], other) for other in made)


@pytest.mark.parametrize("shape", [(40,), (3, 1, 5), (0, 4), (2, 7)])
def test_batches_are_split_by_matrix(shape, rng):
    static = paddle.jit.to_static(lambda a, b: paddle.matmul(a, b.transpose([*range(len(shape)), -1, -2])),
                                  full_graph=True)  # fmt: skip
    with paddle.no_grad():
        static(paddle.ones([*shape, 1, 3]), paddle.ones([*shape, 4, 3]))
    native = NativePlan(static.concrete_program.main_program)
    a, b = (rng.normal(size=(*shape, rows, 40)).astype("float32") for rows in (67, 70))
    made = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        made.append(native.run([a, b])[0])
    np.testing.assert_allclose(made[0], a @ b.swapaxes(-1, -2), rtol=1e-4, atol=1e-4)
    assert all(np.array_equal(made[0], other) for other in made)


def test_a_matrix_that_a_loop_packs_is_packed_by_several_threads(rng):
    def function(h, u, t):
        i = 0
        while i < 3:
            h = paddle.tanh(h @ u + h @ t.transpose([1, 0]))
            i += 1
        return h

    static = paddle.jit.to_static(function, full_graph=True)
    given = [rng.normal(size=s).astype("float32") * 0.1 for s in ((1, 1090), (1090, 1090), (1090, 1090))]
    made = []
    for count in (1, 2, 4):
        paddle.set_num_threads(count)
        with paddle.no_grad():
            made.append(static(*map(paddle.to_tensor, given)).numpy())
    h, u, t = given
    for _ in range(3):
        h = np.tanh(h @ u + h @ t.T)
    np.testing.assert_allclose(made[0], h, rtol=1e-4, atol=1e-4)
    assert all(np.array_equal(made[0], other) for other in made)
