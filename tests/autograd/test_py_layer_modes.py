"""PyLayer in every mode: forward, Taylor, vmap, Jacobians, nested; with a forward derivative of its own and without."""

import numpy as np
import pytest

import dy2st as paddle

AG = paddle.incubate.autograd


class Exp(paddle.autograd.PyLayer):
    """What is saved is the result."""

    @staticmethod
    def forward(ctx, x):
        y = paddle.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * y


class Cube(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy * 3 * x * x * w, dy * x * x * x


class OwnCube(Cube):
    @staticmethod
    def jvp(ctx, dx, dw):
        x, w = ctx.saved_tensor()
        return dx * 3 * x * x * w + dw * x * x * x


def t(value):
    return paddle.to_tensor(np.asarray(value, "float64"), stop_gradient=False)


def through(layer):
    return lambda x, w: layer.apply(paddle.sin(x), w) * Exp.apply(x * w)


def plain(x, w):
    return paddle.sin(x) ** 3 * w * paddle.exp(x * w)


def flat(found):
    return np.concatenate([np.ravel(one.numpy()) for one in (found if isinstance(found, (list, tuple)) else [found])])


MODES = {
    "forward": lambda f, x, w: AG.jvp(f, [x, w])[1],
    "forward along one": lambda f, x, w: AG.jvp(lambda x: f(x, w), x)[1],
    "taylor": lambda f, x, w: AG.jet(f, [x, w], order=4)[1],
    "taylor along a curve": lambda f, x, w: AG.jet(f, [x, w], [x, w], 3, [[w, x], [x, x]])[1],
    "hessian": lambda f, x, w: AG.Hessian(lambda v: f(v[0], v[1]), paddle.stack([x, w]))[:],
    "forward over forward": lambda f, x, w: AG.jvp(lambda x, w: AG.jvp(f, [x, w])[1], [x, w])[1],
    "reverse over forward": lambda f, x, w: AG.vjp(lambda x, w: AG.jvp(f, [x, w])[1], [x, w])[1],
    "forward over reverse": lambda f, x, w: AG.jvp(lambda x, w: AG.vjp(f, [x, w])[1][0], [x, w])[1],
    "reverse over taylor": lambda f, x, w: AG.vjp(lambda x, w: AG.jet(f, [x, w], order=2)[1][1], [x, w])[1],
    "vmap of forward": lambda f, x, w: paddle.vmap(lambda x: AG.jvp(f, [x, w])[1])(paddle.stack([x, x * 2])),
    "vmap of reverse": lambda f, x, w: paddle.vmap(lambda x: AG.vjp(f, [x, w])[1])(paddle.stack([x, x * 2])),
    "reverse over vmap": lambda f, x, w: AG.vjp(paddle.vmap(f), [paddle.stack([x, w]), paddle.stack([w, x])])[1],
}


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
@pytest.mark.parametrize("layer", [Cube, OwnCube])
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_layer_is_differentiated_in_every_mode(mode, layer, static):
    x, w = t(2.0), t(0.7)
    run = (lambda x, w: mode(through(layer), x, w)) if not static else None
    run = run or paddle.jit.to_static(lambda x, w: mode(through(layer), x, w), full_graph=True)
    np.testing.assert_allclose(flat(run(x, w)), flat(mode(plain, x, w)), rtol=1e-10)


@pytest.mark.parametrize("static", [False, True], ids=["eager", "static"])
def test_a_jvp_of_its_own_is_what_counts(static):
    class Ten(Cube):
        @staticmethod
        def jvp(ctx, dx, dw):
            return dx * 10 + dw

    f = paddle.jit.to_static(Ten.apply, full_graph=True) if static else Ten.apply
    assert float(AG.jvp(f, [t(1.0), t(1.0)])[1]) == 11.0
    assert [float(g) for g in AG.vjp(f, [t(1.0), t(1.0)])[1]] == [3.0, 1.0]


def test_a_wrong_jvp_is_refused():
    def layer(result):
        class Wrong(Cube):
            @staticmethod
            def jvp(ctx, dx, dw):
                return result

        return Wrong

    x, w = t(1.0), t(2.0)
    for result, kind, text in (
        ((x, w), ValueError, "Wrong.jvp returned 2 tangents for 1 tensors that forward returned"),
        (3.0, TypeError, "Wrong.jvp: tangent 0 must be a Tensor or None, not float"),
        (paddle.ones([2]), ValueError, r"Wrong.jvp: tangent 0 has shape \[2\], the tensor \[\]"),
    ):
        with pytest.raises(kind, match=text):
            AG.jvp(layer(result).apply, [x, w])

    static = paddle.jit.to_static(lambda x, w: layer((x, w)).apply(x, w), full_graph=True)
    with pytest.raises(paddle.errors.NeedsPythonValue, match="its jvp gives 2 tangents for 1 tensors"):
        static(x, w)


def test_several_results_of_which_one_is_constant():
    class Parts(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            whole = paddle.floor(x)
            ctx.mark_non_differentiable(whole)
            return whole, x * x

        @staticmethod
        def backward(ctx, _, dy):
            (x,) = ctx.saved_tensor()
            return 2 * x * dy

    found = AG.jvp(lambda x: sum(Parts.apply(x)), t([1.5, 2.5]))
    assert found[0].tolist() == [3.25, 8.25]
    assert found[1].tolist() == [3.0, 5.0]


def test_a_result_saved_under_hooks_keeps_its_derivative():
    x, packed = t(2.0), []
    with paddle.autograd.saved_tensors_hooks(lambda s: packed.append(s) or s.numpy(), paddle.to_tensor):
        y = Exp.apply(x)
    assert packed
    (first,) = paddle.grad(y, x, create_graph=True)
    (second,) = paddle.grad(first, x)
    np.testing.assert_allclose([float(first), float(second)], np.exp([2.0, 2.0]))


def test_a_loaded_layer_is_differentiated_like_a_fresh_one(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x, w):
            return through(OwnCube)(x, w)

    scalar = paddle.static.InputSpec([], "float64")
    paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=[scalar, scalar])
    loaded = paddle.jit.load(str(tmp_path / "net"))
    x, w = t(2.0), t(0.7)
    for name in ("forward", "taylor", "reverse over forward", "vmap of reverse", "hessian"):
        np.testing.assert_allclose(flat(MODES[name](loaded, x, w)), flat(MODES[name](plain, x, w)), rtol=1e-10)
