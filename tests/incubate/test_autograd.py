"""incubate.autograd: grad, forward_grad, jvp, vjp, Jacobian, Hessian; eager and static, any order."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError

AG = paddle.incubate.autograd
V = np.array([0.3, -0.7, 1.1])


def t(value, needs=False):
    return paddle.to_tensor(np.asarray(value, "float64"), stop_gradient=not needs)


def run(feed, *fetches):
    return paddle.static.Executor().run(feed=feed, fetch_list=list(fetches))


def jacobian_by_differences(f, x, h=1e-6):
    columns = [(f(t(x + h * e)).numpy() - f(t(x - h * e)).numpy()).ravel() / (2 * h) for e in np.eye(x.size)]
    return np.stack(columns, axis=1)


def grow(x):
    while x.sum() < 20:
        x = x * x + 1
    return x


FUNCTIONS = {
    "elementwise": lambda x: paddle.tanh(x) * x + paddle.exp(-x),
    "broadcast": lambda x: (x.unsqueeze(0) * x.unsqueeze(1)).sum(axis=0),
    "matmul": lambda x: (x.unsqueeze(0) @ x.unsqueeze(1)).reshape([1]) * x,
    "reduction": lambda x: paddle.stack([x.max(), x.mean(), paddle.logsumexp(x), (x * x).prod()]),
    "indexing": lambda x: paddle.concat([x[1:], x[paddle.to_tensor([2, 0, 0])] ** 2]),
    "softmax": lambda x: paddle.nn.functional.softmax(x) * paddle.nn.functional.softplus(x),
    "where": lambda x: paddle.where(x > 0, x * x, paddle.sin(x)),
    "cumsum": lambda x: paddle.cumsum(x * x).flip(0),
    "integers between": lambda x: x * (x > 0).astype("int64").astype("float64"),
    "loop": grow,
    "static": paddle.jit.to_static(grow, full_graph=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.proves("incubate.autograd.jvp incubate.autograd.vjp incubate.autograd.Jacobian")
def test_forward_and_reverse_mode_are_the_jacobian(name):
    f, direction = FUNCTIONS[name], np.array([1.0, -2.0, 0.5])
    want = jacobian_by_differences(f, V)
    y, tangent = AG.jvp(f, t(V), t(direction))
    weights = np.linspace(-1.0, 2.0, y.size)
    _, cotangent = AG.vjp(f, t(V), t(weights.reshape(y.shape)))
    np.testing.assert_allclose(tangent.numpy().ravel(), want @ direction, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(cotangent.numpy(), weights @ want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["elementwise", "matmul", "softmax", "loop", "static"])
def test_second_derivatives_agree_in_every_mixture_of_modes(name):
    def f(x):
        return FUNCTIONS[name](x).sum()

    v, w = t([1.0, 0.0, 2.0]), t([0.5, -1.0, 1.0])
    forward_twice = AG.jvp(lambda x: AG.jvp(f, x, v)[1], t(V), w)[1]
    forward_over_reverse = (AG.jvp(lambda x: AG.vjp(f, x)[1], t(V), w)[1] * v).sum()
    reverse_over_forward = (AG.vjp(lambda x: AG.jvp(f, x, v)[1], t(V))[1] * w).sum()
    by_hessian = v.numpy() @ AG.Hessian(f, t(V))[:].numpy() @ w.numpy()
    for one in (forward_twice, forward_over_reverse, reverse_over_forward):
        np.testing.assert_allclose(one.item(), by_hessian, rtol=1e-9)


def test_grad_of_grad_of_grad_in_eager_mode():
    x = t(2.0, needs=True)
    y, orders = x**4, []
    for _ in range(4):
        y = AG.grad(y, x)
        orders.append(y.item())
    assert orders == [32.0, 48.0, 48.0, 24.0]


@pytest.mark.proves("incubate.autograd.grad")
def test_grad_gives_a_list_for_a_list_and_none_for_what_is_not_used():
    x, z = t(V, needs=True), t(V, needs=True)
    found = AG.grad([x * x, x], [x, z], [t(np.ones(3)), t([10.0, 10.0, 10.0])])
    np.testing.assert_allclose(found[0].numpy(), 2 * V + 10)
    assert found[1] is None


@pytest.mark.proves("incubate.autograd.forward_grad")
def test_forward_grad_of_eager_tensors():
    x, z = t(V, needs=True), t(V, needs=True)
    a, b, c = AG.forward_grad((x * z, x * 2, t(V) * 3), (x, z), [t([1.0, 1.0, 1.0]), t([0.0, 0.0, 1.0])])
    np.testing.assert_allclose(a.numpy(), V + V * [0, 0, 1])
    assert b.tolist() == [2.0] * 3
    assert c.tolist() == [0.0] * 3


def test_forward_grad_of_the_input_itself_is_its_tangent():
    x = t(V, needs=True)
    assert AG.forward_grad(x, x, t([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_derivatives_see_what_a_function_closes_over():
    w = t(3.0, needs=True)
    _, tangent = AG.jvp(lambda x: w * x * x, t(2.0))
    assert tangent.item() == 12.0
    assert paddle.grad(tangent, w)[0].item() == 4.0


def test_functions_of_several_tensors_and_results():
    ys, tangents = AG.jvp(lambda a, b: (a * b, a + b), [t(2.0), t(5.0)], [t(1.0), t(10.0)])
    assert [y.item() for y in ys] == [10.0, 7.0]
    assert [v.item() for v in tangents] == [25.0, 11.0]
    _, cts = AG.vjp(lambda a, b: (a * b, a + b), [t(2.0), t(5.0)], [t(1.0), t(10.0)])
    assert [c.item() for c in cts] == [15.0, 12.0]


def test_vjp_gives_zeros_where_nothing_depends():
    _, (first, second) = AG.vjp(lambda a, b: a * 2, [t(2.0), t(V)])
    assert first.item() == 2.0
    assert second.tolist() == [0.0, 0.0, 0.0]


def test_derivatives_of_functions_inside_no_grad():
    with paddle.no_grad():
        assert AG.jvp(lambda x: x * x, t(3.0))[1].item() == 6.0
        assert AG.vjp(lambda x: x * x, t(3.0))[1].item() == 6.0


def test_arguments_stay_as_they_are():
    x = t(V)
    AG.vjp(lambda v: v * v, x)
    AG.Jacobian(lambda v: v * v, x)[:]
    assert x.stop_gradient
    assert x.grad is None


def test_jvp_under_to_static():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        if x.sum() > 0:
            y = AG.jvp(lambda v: v * v * v, x, paddle.ones_like(x))[1]
        else:
            y = AG.vjp(paddle.exp, x)[1]
        return y

    np.testing.assert_allclose(f(t(V)).numpy(), 3 * V**2)
    np.testing.assert_allclose(f(t(-V)).numpy(), np.exp(-V))


# ---- static mode -------------------------------------------------------------------------------------------------


def test_static_orders_by_both_modes(main):
    x = paddle.static.data("x", [None], "float64")
    y = paddle.tanh(x)
    reverse = AG.grad(AG.grad(y, x), x)
    forward = AG.forward_grad(AG.forward_grad(y, x), x)
    mixed = AG.forward_grad(AG.grad(y, x), x)
    want = -2 * np.tanh(V) * (1 - np.tanh(V) ** 2)
    for got in run({"x": V}, reverse, forward, mixed):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_static_forward_mode_through_loop_and_branch(main):
    x = paddle.static.data("x", [], "float64")
    nn = paddle.static.nn
    (y,) = nn.while_loop(lambda v: v < 8, lambda v: v * v, [x])
    z = nn.cond(x > 1, lambda: y * x, lambda: x)
    first = AG.forward_grad(z, x)
    second = AG.forward_grad(first, x)
    np.testing.assert_allclose([v.item() for v in run({"x": np.array(2.0)}, first, second)], [5 * 16, 20 * 8])


def test_static_forward_grad_inside_of_a_branch(main):
    x = paddle.static.data("x", [], "float64")
    y = x * x
    z = paddle.static.nn.cond(x > 0, lambda: AG.forward_grad(y * x, x), lambda: AG.grad(y * x, x))
    assert [run({"x": np.array(v)}, z)[0].item() for v in (2.0, -3.0)] == [12.0, 27.0]


def test_static_jvp_and_vjp_of_functions(main):
    x, v = paddle.static.data("x", [None], "float64"), paddle.static.data("v", [None], "float64")
    _, tangent = AG.jvp(paddle.sin, x, v)
    _, cotangent = AG.vjp(paddle.sin, x, v)
    for got in run({"x": V, "v": V}, tangent, cotangent):
        np.testing.assert_allclose(got, np.cos(V) * V)


def test_static_hessian_of_an_open_batch(main):
    x = paddle.static.data("x", [None, 2], "float64")
    H = AG.Hessian(lambda v: (v[:, 0:1] ** 2) * v[:, 1:], x, is_batched=True)
    value = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    got = run({"x": value}, H[:])[0]
    np.testing.assert_allclose(got, [[[2 * b, 2 * a], [2 * a, 0]] for a, b in value])


# ---- matrices ----------------------------------------------------------------------------------------------------


def test_jacobian_rows_are_computed_when_asked_for_and_once():
    J = AG.Jacobian(lambda x: x * x, t(V))
    assert not J._rows
    J[1, :]
    J[1]
    assert list(J._rows) == [1]
    assert J.shape == [3, 3]
    np.testing.assert_allclose(J.numpy(), np.diag(2 * V))


@pytest.mark.parametrize(
    "index", [np.s_[:], np.s_[0], np.s_[-1, :], np.s_[1:, 0], np.s_[:, -1], np.s_[::2, 1:3], np.s_[..., 0],
              np.s_[2, ...], np.s_[0, 0], np.s_[3:3]],
)  # fmt: skip
def test_jacobian_is_indexed_as_an_array(index):
    J = AG.Jacobian(lambda a, b: (a * b, a.sum()), [t(V), t(V[:1])])
    want = J[:].numpy()
    assert want.shape == (4, 4)
    np.testing.assert_array_equal(J[index].numpy(), want[index])


def test_batched_jacobian_of_several_inputs(rng):
    x, y = rng.normal(size=(2, 4, 3))
    J = AG.Jacobian(paddle.multiply, (t(x), t(y)), is_batched=True)
    want = np.stack([np.concatenate([np.diag(b), np.diag(a)], 1) for a, b in zip(x, y, strict=True)])
    for index in (np.s_[:], np.s_[:, 0, :], np.s_[:, 1:, 2], np.s_[0], np.s_[1:3, 0]):
        np.testing.assert_allclose(J[index].numpy(), want[index])


@pytest.mark.proves("incubate.autograd.Hessian")
def test_hessian_of_several_inputs():
    H = AG.Hessian(lambda a, b: (a * b * b).sum(), [t([2.0]), t([3.0])])
    assert H[:].tolist() == [[0.0, 6.0], [6.0, 4.0]]


def test_jacobian_of_a_function_that_ignores_its_input_is_zero():
    assert AG.Jacobian(lambda x: t([1.0, 2.0]), t(V))[:].tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: AG.grad(3, x), TypeError, "grad: outputs must be a Tensor or a sequence of Tensors, not int"),
        (lambda x: AG.grad([x, 3], x), TypeError, "grad: outputs must have Tensors only, but has a int"),
        (lambda x: AG.grad([], x), ValueError, "grad: outputs must not be empty"),
        (lambda x: AG.grad(x * 1, x, [t(V), t(V)]), ValueError, "grad: grad_outputs has 2 tensors, but 1 are needed"),
        (lambda x: AG.grad(x * 1, x, t(1.0)), ValueError, r"grad_outputs has shape \[\], but the tensor .* \[3\]"),
        (lambda x: AG.grad(x * 1, x, [3]), TypeError, "grad: grad_outputs must have Tensors only, but has a int"),
        (lambda x: AG.jvp(paddle.exp, x, [t(V), t(V)]), ValueError, "jvp: v has 2 tensors, but 1 are needed"),
        (lambda x: AG.jvp(paddle.exp, x, t(V).astype("float32")), ValueError, "v is float32, but .* float64"),
        (lambda x: AG.vjp(lambda v: 3, x), TypeError, "vjp: what the function returns must be a Tensor or a sequence"),
        (lambda x: AG.vjp(paddle.exp, t(V).astype("int64")), TypeError, "no derivatives with respect to .* int64"),
        (lambda x: AG.Hessian(paddle.exp, x), ValueError, "the Hessian is of a function with one output, not 3"),
        (lambda x: AG.Hessian(paddle.exp, x.unsqueeze(0), True), ValueError, "with one output for each item, not 3"),
        (lambda x: AG.Jacobian(paddle.exp, x)[3], IndexError, "row 3 is outside of a matrix with 3 rows"),
        (lambda x: AG.Jacobian(paddle.exp, x)[0, 0, 0], IndexError, "too many indices: the matrix has 2 axes, not 3"),
        (lambda x: AG.Jacobian(paddle.exp, x)[..., ...], IndexError, "an index can have one ellipsis only"),
        (lambda x: AG.Jacobian(paddle.exp, x)["a"], TypeError, "is indexed by ints and slices, not str"),
        (lambda x: AG.Jacobian(paddle.sum, x, True), ValueError, "whose first axis is the batch, but an output is 0-D"),
    ],
)  # fmt: skip
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call(t(V, needs=True))


def test_a_jacobian_of_open_extents(main):
    x = paddle.static.data("x", [None], "float64")
    matrix = AG.Jacobian(lambda x: paddle.exp(x) * x[0], x)
    parts = [matrix[:], matrix[1], matrix[1:, 0]]
    for given in (V, V[:2]):
        whole = np.diag(np.exp(given) * given[0])
        whole[:, 0] += np.exp(given)
        found = paddle.static.Executor().run(main, feed={"x": given}, fetch_list=parts)
        for one, wanted in zip(found, [whole, whole[1], whole[1:, 0]], strict=True):
            np.testing.assert_allclose(one, wanted)


def test_rows_that_are_asked_for_together_are_one_pass():
    calls = []

    class Watched(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            calls.append(ct.shape)
            return ct * 2

    x = t(V, needs=True)
    direct = AG.Jacobian(lambda x: paddle.exp(x) * x[0], x)[:]
    one_by_one = AG.Jacobian(lambda x: paddle.exp(x) * x[0], x)
    np.testing.assert_allclose(direct.numpy(), np.stack([one_by_one[i].numpy() for i in range(3)]))
    through = AG.Jacobian(lambda x: paddle.exp(Watched.apply(x)), x)[:]
    np.testing.assert_allclose(through.numpy(), np.diag(2 * np.exp(2 * V)))
    assert calls == [[3]] * 3


def test_a_hook_sees_each_row():
    seen = []
    x = t(V, needs=True)
    y = x * 3
    y.register_hook(lambda g: seen.append(g.numpy()))
    matrix = paddle.autograd.jacobian(paddle.exp(y), x)[:]
    np.testing.assert_allclose(matrix.numpy(), np.diag(3 * np.exp(3 * V)))
    assert [g.shape for g in seen] == [(3,)] * 3


def test_a_freed_tape_is_refused():
    x = t(V, needs=True)
    y = paddle.exp(x)
    y.sum().backward()
    with pytest.raises(AutodiffError, match=r"the tape behind this tensor \(made by 'exp'\) was freed"):
        AG.forward_grad(y, x)


def test_an_overwritten_operand_is_refused():
    x = t(V, needs=True)
    y = x * 1
    z = y * y
    y.add_(t(1.0))
    with pytest.raises(AutodiffError, match="was changed in place"):
        AG.forward_grad(z, x)


@pytest.mark.proves("incubate.autograd.enable_prim incubate.autograd.disable_prim incubate.autograd.prim_enabled")
def test_prim_is_a_flag():
    AG.enable_prim()
    assert AG.prim_enabled()
    AG.disable_prim()
    assert not AG.prim_enabled()


def test_rows_of_rows_of_different_numbers():
    """A Jacobian of a Jacobian runs over two kinds of lanes, of which there are not equally many."""
    x = t(V, needs=True)
    w = t(np.arange(6.0).reshape(2, 3))
    first = AG.Jacobian(lambda x: paddle.tanh(w @ x), x)[:]
    second = paddle.autograd.jacobian(first.reshape([6]), x)[:]
    slope = 1 - np.tanh(w.numpy() @ V) ** 2
    wanted = np.einsum("i,ij,ik->ijk", -2 * np.tanh(w.numpy() @ V) * slope, w.numpy(), w.numpy())
    np.testing.assert_allclose(second.numpy().reshape(2, 3, 3), wanted)
