"""`incubate.autograd.jet`: its arguments, its results, its errors; eager, under to_static and in a loaded Program."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd import jet


def tensor(x, **options):
    return paddle.to_tensor(np.asarray(x, dtype="float64"), **options)


def values(tensors):
    return [t.numpy().tolist() for t in tensors]


def test_a_straight_line():
    y, found = jet(lambda x: x**3, tensor([2.0, -1.0]), tensor([1.0, 2.0]), order=3)
    assert y.tolist() == [8.0, -1.0]
    assert values(found) == [[12.0, 6.0], [12.0, -24.0], [6.0, 48.0]]


def test_a_curve():
    """x(t) = 1 + 2 t + 3 t**2 / 2 + 4 t**3 / 6, so (x**2)''' = 2 x x''' + 6 x' x''."""
    _, found = jet(lambda x: x * x, tensor(1.0), tensor(2.0), 3, bends=[tensor(3.0), [tensor(4.0)]])
    assert values(found) == [4.0, 2 * 4 + 2 * 3, 2 * 4 + 6 * 2 * 3]


def test_several_inputs_and_outputs():
    (y, z), found = jet(lambda a, b: [a * b, a], [tensor(2.0), tensor(3.0)], [tensor(1.0), tensor(-1.0)], order=2)
    assert (float(y), float(z)) == (6.0, 2.0)
    assert [values(row) for row in found] == [[1.0, 1.0], [-2.0, 0.0]]


def test_an_output_that_does_not_depend_on_the_input():
    _, found = jet(lambda x: tensor([5.0, 6.0]), tensor(1.0), order=2)
    assert values(found) == [[0.0, 0.0], [0.0, 0.0]]


def test_the_function_that_gives_its_input():
    _, found = jet(lambda x: x, tensor(1.0), order=2)
    assert values(found) == [1.0, 0.0]


def test_what_the_input_is_used_for_elsewhere_stays_out():
    x = tensor(2.0, stop_gradient=False)
    other = x * x
    _, found = jet(lambda u: u * other, x, order=2)
    assert values(found) == [4.0, 0.0]


def test_float32_stays_float32():
    _, found = jet(lambda x: paddle.exp(x) / (1 + x), paddle.to_tensor([0.5]), order=4)
    assert [d.dtype for d in found] == [paddle.float32] * 4


def test_the_derivatives_of_a_layer_along_its_input():
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 5), paddle.nn.Tanh(), paddle.nn.Linear(5, 1))
    static = paddle.jit.to_static(net, full_graph=True)
    x, v = paddle.to_tensor([[0.1, 0.2], [0.3, -0.4]]), paddle.to_tensor([[1.0, 0.0], [0.0, 1.0]])
    x.stop_gradient = False
    (slope,) = paddle.grad([(net(x) * 1.0).sum()], [x], create_graph=True)
    (bend,) = paddle.grad([(slope * v).sum()], [x])
    for f in (net, static):
        _, found = jet(f, x, v, order=2)
        np.testing.assert_allclose(found[1].numpy()[:, 0], (bend * v).sum(axis=1).numpy(), rtol=1e-4, atol=1e-6)


def test_the_derivatives_can_be_differentiated_by_what_the_function_uses():
    a = tensor(0.7, stop_gradient=False)
    _, found = jet(lambda x: paddle.sin(a * x), tensor(0.2), order=3)
    (got,) = paddle.grad([found[2]], [a])
    want = -3 * 0.7**2 * np.cos(0.14) + 0.7**3 * 0.2 * np.sin(0.14)
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_one_program_serves_every_length():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        return jet(lambda u: paddle.nn.functional.softmax(u * u, axis=-1), x, order=3)[1]

    for n in (3, 5, 1):
        x = tensor(np.linspace(-1, 1, n))
        want = jet(lambda u: paddle.nn.functional.softmax(u * u, axis=-1), x, order=3)[1]
        for ours, theirs in zip(f(x), want, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)
    assert len(f.program_cache) == 1


def test_a_loaded_program(tmp_path):
    class Turns(paddle.nn.Layer):
        def forward(self, x):
            while x.sum() < 10:
                x = x * x + paddle.sin(x)
            return x

    net = Turns()
    spec = paddle.static.InputSpec([None], "float64")
    paddle.jit.save(paddle.jit.to_static(net, input_spec=[spec], full_graph=True), str(tmp_path / "turns"))
    loaded, x = paddle.jit.load(str(tmp_path / "turns")), tensor([1.1, 0.9])
    for ours, theirs in zip(jet(loaded, x, order=4)[1], jet(net, x, order=4)[1], strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10)


def test_in_a_branch_of_a_program():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        y = x * 1.0
        if x.sum() > 0:
            y = jet(lambda u: u**3 * x, x, order=2)[1][1]
        return y

    assert f(tensor([2.0])).tolist() == [24.0]
    assert f(tensor([-2.0])).tolist() == [-2.0]


def test_threads_get_what_one_gets():
    want = values(jet(lambda x: paddle.exp(paddle.sin(x)), tensor(0.4), order=6)[1])
    found = [None] * 4

    def work(i):
        found[i] = values(jet(lambda x: paddle.exp(paddle.sin(x)), tensor(0.4), order=6)[1])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert found == [want] * 4


@pytest.mark.parametrize("order", [0, -1])
def test_the_order_is_positive(order):
    with pytest.raises(ValueError, match=f"jet: order must be 1 or more, not {order}"):
        jet(paddle.sin, tensor(1.0), order=order)


@pytest.mark.parametrize("order", [1.0, True, "2"])
def test_the_order_is_an_int(order):
    with pytest.raises(TypeError, match="jet: order must be an int, not"):
        jet(paddle.sin, tensor(1.0), order=order)


def test_more_bends_than_the_order_uses():
    with pytest.raises(ValueError, match="jet: bends has 2 entries, but order 2 uses 1 at most"):
        jet(paddle.sin, tensor(1.0), order=2, bends=[tensor(1.0), tensor(1.0)])


def test_a_direction_for_each_input():
    with pytest.raises(ValueError, match="jet: v has 2 tensors, but 1 are needed"):
        jet(paddle.sin, tensor(1.0), [tensor(1.0), tensor(1.0)])


def test_a_direction_of_another_shape():
    with pytest.raises(ValueError, match=r"jet: bends\[0\] has shape \[2\], but the tensor that it belongs to \[\]"):
        jet(paddle.sin, tensor(1.0), bends=[tensor([1.0, 2.0])])


def test_an_integer_has_no_derivatives():
    with pytest.raises(TypeError, match="there are no derivatives with respect to a tensor of dtype int64"):
        jet(paddle.abs, paddle.to_tensor([1, 2]))


def test_a_function_that_gives_no_tensor():
    with pytest.raises(TypeError, match="jet: what the function returns must be a Tensor"):
        jet(lambda x: 3, tensor(1.0))


def test_a_tape_that_was_freed():
    def f(x):
        y = paddle.sin(x)
        y.backward()
        return y

    with pytest.raises(paddle.errors.AutodiffError, match=r"made by 'sin'.* was freed by an earlier backward"):
        jet(f, tensor(1.0))


def test_an_operand_that_was_overwritten():
    def f(x):
        y = x * 1.0
        z = paddle.sin(y)
        y.fill_(3.0)
        return z

    with pytest.raises(paddle.errors.AutodiffError, match="operand 0 of 'sin' was changed in place"):
        jet(f, tensor([1.0, 2.0]))


def test_nan_stays_where_it_is():
    _, found = jet(paddle.log, tensor([1.0, float("nan")]), order=2)
    np.testing.assert_array_equal(found[1].numpy(), [-1.0, float("nan")])


def test_no_elements():
    _, found = jet(lambda x: paddle.exp(x), tensor(np.zeros((0, 2))), order=3)
    assert [d.shape for d in found] == [[0, 2]] * 3
