"""Lists of tensors joined natively, and their gradients: what a recurrent layer does with its outputs."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("DY2ST_BACKEND", "native")


def collected(x, join):
    made = []
    for row in x:
        made.append(paddle.tanh(row) * 2)
    return join(made)


JOINS = {
    "stack": paddle.stack,
    "stack_last": lambda made: paddle.stack(made, axis=-1),
    "concat": paddle.concat,
    "concat_last": lambda made: paddle.concat(made, axis=-1),
}


@pytest.mark.parametrize("shape", [(4, 3, 5), (1, 2, 3), (3, 4, 2, 5), (5, 70, 3), (3, 0, 2)])
@pytest.mark.parametrize("name", JOINS)
def test_a_loops_list_becomes_one_tensor(name, shape, rng):
    static = paddle.jit.to_static(lambda x: collected(x, JOINS[name]), full_graph=True)
    x = paddle.to_tensor(rng.normal(size=shape).astype("float32"))
    with paddle.no_grad():
        static(x)
    program = static.concrete_program.main_program
    native = NativePlan(program)
    assert not native.host_calls
    np.testing.assert_allclose(native.run([x.numpy()])[0], compile_plan(program).run([x.numpy()])[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_numbers_and_other_dtypes(dtype):
    static = paddle.jit.to_static(
        lambda x: (paddle.stack([r[0] for r in x]), paddle.concat([r[1:] for r in x])), full_graph=True
    )
    x = paddle.to_tensor((np.arange(12).reshape(3, 4) % 3).astype(dtype))
    for _ in range(2):
        numbers, rest = static(x)
    np.testing.assert_array_equal(numbers.numpy(), x.numpy()[:, 0])
    np.testing.assert_array_equal(rest.numpy(), x.numpy()[:, 1:].reshape(-1))


@pytest.mark.parametrize("name", JOINS)
def test_gradients_go_back_into_the_list(name, rng):
    def gradient(x):
        return paddle.grad((collected(x, JOINS[name]) ** 2).sum(), x)[0]

    static = paddle.jit.to_static(gradient, full_graph=True)
    x = paddle.to_tensor(rng.normal(size=(4, 3, 5)).astype("float32"), stop_gradient=False)
    for _ in range(2):
        np.testing.assert_allclose(static(x).numpy(), gradient(x).numpy(), rtol=1e-5, atol=1e-6)


def test_tensors_of_several_lengths(rng):
    def pieces(x, n):
        made = []
        for i in range(n):
            made.append(x[: i + 1] * 2)
        return paddle.grad((paddle.concat(made) ** 2).sum(), x)[0]

    static = paddle.jit.to_static(pieces, full_graph=True)
    x = paddle.to_tensor(rng.normal(size=(4, 3)).astype("float32"), stop_gradient=False)
    for _ in range(2):
        np.testing.assert_allclose(static(x, paddle.to_tensor(4)).numpy(), pieces(x, 4).numpy(), rtol=1e-5)


@pytest.mark.parametrize(("join", "text"), [
    (paddle.stack, "stack needs tensors of one shape"), (paddle.concat, "concat along axis 0 needs tensors of equal"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(join, text):
    def pieces(x, n):
        made = []
        for i in range(n):
            made.append(paddle.ones([2, i + 1]) * x)
        return join(made)

    static = paddle.jit.to_static(pieces, full_graph=True)
    one = paddle.to_tensor(1.0)
    assert static(one, paddle.to_tensor(1)).shape[-1] == 1
    with pytest.raises(ValueError, match=text):
        static(one, paddle.to_tensor(2))
    with pytest.raises(ValueError, match="needs at least one tensor"):
        static(one, paddle.to_tensor(0))
