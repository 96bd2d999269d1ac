"""PyLayer: an operation with a backward of its own."""

import numpy as np
import pytest

import dy2st as paddle


class Cube(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * 3 * x * x * ctx.scale


class Swap(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        return b * 1, a * 1

    @staticmethod
    def backward(ctx, first, second):
        return second, first


def wrong(result):
    class Wrong(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return result

    return Wrong


def t(value):
    return paddle.to_tensor(np.asarray(value, "float64"), stop_gradient=False)


@pytest.mark.proves("autograd.PyLayer autograd.py_layer.PyLayer autograd.PyLayerContext")
def test_backward_is_the_layers_own():
    x = t([1.0, 2.0])
    Cube.apply(x, scale=10.0).sum().backward()
    assert x.grad.tolist() == [30.0, 120.0]


def test_gradients_of_gradients_go_through_backward():
    x = t(2.0)
    (first,) = paddle.grad(Cube.apply(x), x, create_graph=True)
    assert first.item() == 12.0
    assert paddle.grad(first, x)[0].item() == 12.0


def test_several_results_and_missing_gradients():
    a, b = t(2.0), t(3.0)
    first, _ = Swap.apply(a, b)
    (first * 5).backward()
    assert a.grad is None
    assert b.grad.item() == 5.0


def test_without_gradients_nothing_is_recorded():
    assert Cube.apply(paddle.to_tensor(2.0)).stop_gradient
    with paddle.no_grad():
        assert Cube.apply(t(2.0)).stop_gradient


def test_marked_results_carry_no_gradient():
    class Parts(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            whole = x * 1
            ctx.mark_non_differentiable(whole)
            return whole, x * 2

        @staticmethod
        def backward(ctx, _, dy):
            return dy * 2

    whole, twice = Parts.apply(t(1.0))
    assert whole.stop_gradient
    assert not twice.stop_gradient


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        ((None, None), ValueError, "Wrong.backward returned 2 gradients for 1 tensors that forward took"),
        (3, TypeError, "Wrong.backward: gradient 0 must be a Tensor or None, not int"),
        (paddle.ones([2]), ValueError, r"Wrong.backward: gradient 0 has shape \[2\], the tensor \[\]"),
    ],
)
def test_a_wrong_backward_is_refused(result, kind, message):
    with pytest.raises(kind, match=message):
        wrong(result).apply(t(1.0)).backward()


def test_what_is_not_defined_says_so():
    with pytest.raises(NotImplementedError, match=r"a PyLayer needs a static method forward\(ctx, ...\)"):
        paddle.autograd.PyLayer.apply(t(1.0))

    class Half(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match=r"a PyLayer needs a static method backward\(ctx, ...\)"):
        Half.apply(t(1.0)).backward()


def test_a_program_built_by_hand_takes_a_layer_in():
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [2])
            x.stop_gradient = False
            (slope,) = paddle.static.gradients([Cube.apply(x)], [x])
            (found,) = paddle.static.Executor().run(program, {"x": np.array([1, 2], "float32")}, [slope])
    finally:
        paddle.disable_static()
    assert found.tolist() == [3, 12]


class Weighed(paddle.autograd.PyLayer):
    """(1 * a + 2 * b + ...) * scale of a list, with gradients that are not those of forward."""

    @staticmethod
    def forward(ctx, tensors, scale, *, last=()):
        ctx.count = len(tensors)
        total = sum(x * (i + 1) for i, x in enumerate(tensors)) * scale
        return total + last[0] if last else total

    @staticmethod
    def backward(ctx, dy):
        return (*(dy * 10.0 * (i + 1) for i in range(ctx.count)), None)


class Twice(paddle.autograd.PyLayer):
    """2 * x as two results that are one tensor; the gradients tell them apart."""

    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y, y

    @staticmethod
    def backward(ctx, first, second):
        return first * 2 + second * 7


def of_a_list(a, b):
    return Weighed.apply([a, b * b], 2.0, last=(a,))


def of_one_result_twice(a, b):
    first, second = Twice.apply(a * b)
    return first * 3 + second * 5


@pytest.mark.parametrize(("f", "wanted"), [(of_a_list, lambda a, b: (10.0 + 0 * a, 40.0 * b)),
                                           (of_one_result_twice, lambda a, b: (41.0 * b, 41.0 * a))])  # fmt: skip
def test_lists_and_results_that_are_one_tensor_have_their_gradients_in_every_call(f, wanted):
    static = paddle.jit.to_static(f, full_graph=True)
    for run in (f, static, static, static):
        for values in ((1.0, 2.0), (3.0, -4.0)):
            a, b = (paddle.to_tensor(v, stop_gradient=False) for v in values)
            out = run(a, b)
            assert float(out) == float(f(*map(paddle.to_tensor, values)))
            out.backward()
            assert (float(a.grad), float(b.grad)) == wanted(*values)


def test_a_list_needs_a_gradient_for_each_of_its_tensors():
    class OneShort(Weighed):
        @staticmethod
        def backward(ctx, dy):
            return (dy,)

    a, b = (paddle.to_tensor(v, stop_gradient=False) for v in (1.0, 2.0))
    with pytest.raises(ValueError, match=r"OneShort\.backward returned 1 gradients for 2 tensors that forward took"):
        OneShort.apply([a, b], 1.0).backward()
