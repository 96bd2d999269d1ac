"""`vmap`: eager and under to_static, nested with derivatives and itself, against loops."""

import threading

import numpy as np
import pytest

import dy2st as paddle
from dy2st.incubate.autograd.vectorize import LanesWarning

X = np.array([[0.3, -0.7], [1.5, 2.0], [-4.0, 0.5]])


def tensor(x, **keywords):
    return paddle.to_tensor(x, **keywords)


def branchy(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = paddle.exp(x)
    while (y * y).sum() < 20:
        y = y * 1.5
    return y


def close(found, wanted, rounding=1e-12):
    np.testing.assert_allclose(found.numpy(), np.asarray(wanted), rtol=rounding, atol=rounding)


@pytest.fixture(params=["eager", "static"])
def run(request):
    """Call a function, as it is or under to_static."""
    return (lambda f: f) if request.param == "eager" else (lambda f: paddle.jit.to_static(f, full_graph=True))


def test_branches_and_loops_are_those_of_each_item(run):
    found = run(lambda x: paddle.vmap(branchy)(x))(tensor(X))
    close(found, [branchy(tensor(x)).numpy() for x in X])


def test_axes_of_arguments_and_results(run):
    f = paddle.vmap(lambda x, w, s: (x @ w, s * x), in_axes=(1, None, -1), out_axes=(1, 0))
    w, s = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    product, scaled = run(lambda x, w, s: f(x, w, s))(tensor(X.T), tensor(w), tensor(s))
    close(product, (X @ w).T)
    close(scaled, X * s[:, None])


def test_structures_of_arguments_and_results(run):
    def f(pair, *, shift):
        return {"sum": [pair["a"] + pair["b"][0]], "shifted": pair["a"] + shift}

    def over(a, b, shift):
        return paddle.vmap(f)({"a": a, "b": [b]}, shift=shift)

    found = run(over)(tensor(X), tensor(2 * X), tensor([1.0, 2.0, 3.0], dtype="float64"))
    close(found["sum"][0], 3 * X)
    close(found["shifted"], X + np.array([[1.0], [2.0], [3.0]]))


def test_numbers_become_tensors(run):
    def f(x):
        n = 0
        while x < 100.0:
            x = x * 3
            n += 1
        return n, 2.5

    turns, number = run(lambda x: paddle.vmap(f)(x))(tensor([1.0, 50.0, 200.0]))
    assert turns.tolist() == [5, 1, 0]
    assert number.tolist() == [2.5] * 3


def test_it_nests_with_itself(run):
    table = paddle.vmap(paddle.vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    found = run(lambda a, b: table(a, b))(tensor([1.0, 2.0, 3.0]), tensor([10.0, 20.0]))
    assert found.tolist() == [[10.0, 20.0], [20.0, 40.0], [30.0, 60.0]]


def test_gradients_of_each_sample(run):
    """Vmap of grad is a loop over the samples."""
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 4), paddle.nn.Tanh(), paddle.nn.Linear(4, 1))
    parameters = net.parameters()

    def gradients(x, y):
        loss = ((net(x) - y) ** 2).sum()
        return paddle.grad(loss, parameters)

    x, y = tensor(X.astype("float32")), tensor(np.ones((3, 1), "float32"))
    found = run(lambda x, y: paddle.vmap(gradients)(x, y))(x, y)
    for i in range(3):
        for one, wanted in zip(found, gradients(x[i], y[i]), strict=True):
            close(one[i], wanted.numpy(), 1e-5)


def test_gradients_of_each_sample_of_a_convolution():
    net = paddle.nn.Sequential(paddle.nn.Conv2D(2, 3, 3), paddle.nn.ReLU(), paddle.nn.MaxPool2D(2))
    images = tensor(np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype("float32"))

    def gradients(x):
        return paddle.grad((net(x.unsqueeze(0)) ** 2).sum(), net.parameters())

    found = paddle.vmap(gradients)(images)
    for i in range(3):
        for one, wanted in zip(found, gradients(images[i]), strict=True):
            close(one[i], wanted.numpy(), 1e-4)


def test_it_is_differentiated(run):
    def total(x):
        return (paddle.vmap(branchy)(x) ** 2).sum()

    def gradient(x):
        return paddle.grad(total(x), x, create_graph=True)[0]

    x = tensor(X, stop_gradient=False)
    wanted = []
    for one in X:
        item = tensor(one, stop_gradient=False)
        wanted.append(paddle.grad((branchy(item) ** 2).sum(), item)[0].numpy())
    close(run(gradient)(x), wanted)


def test_forward_and_second_derivatives_inside():
    def curvature(x):
        return paddle.incubate.autograd.Hessian(lambda y: (y**3).sum() * y[0], x)[:]

    def slope(x):
        return paddle.incubate.autograd.jvp(branchy, x, paddle.ones_like(x))[1]

    def fourth(x):
        return paddle.incubate.autograd.jet(paddle.tanh, x, order=4)[1][3]

    for f in (curvature, slope, fourth):
        close(paddle.vmap(f)(tensor(X)), [f(tensor(x)).numpy() for x in X], 1e-9)


def test_random_numbers_are_those_of_a_loop(run):
    def noisy(x):
        return x + paddle.rand([2], "float64") * paddle.randn([2], "float64")

    paddle.seed(7)
    found, after = run(lambda x: paddle.vmap(noisy)(x))(tensor(X)), paddle.rand([1])
    paddle.seed(7)
    wanted, then = [noisy(tensor(x)).numpy() for x in X], paddle.rand([1])
    close(found, wanted)
    assert after.tolist() == then.tolist()


def test_random_numbers_in_lanes_of_lanes():
    def noisy(x):
        return x + paddle.rand([])

    paddle.seed(3)
    found = paddle.vmap(paddle.vmap(noisy))(paddle.zeros([2, 3]))
    paddle.seed(3)
    assert found.tolist() == [[float(paddle.rand([])) for _ in range(3)] for _ in range(2)]


def test_a_function_with_a_state_runs_item_by_item():
    seen = []

    def f(x):
        seen.append(1)
        return x * len(seen)

    with pytest.warns(LanesWarning, match="changes a list that is not its own, so its lanes have an order"):
        found = paddle.vmap(f)(tensor([1.0, 1.0, 1.0]))
    assert found.tolist() == [1.0, 2.0, 3.0]


def test_draws_that_a_branch_decides_run_item_by_item():
    def f(x):
        return x + paddle.rand([]) if x > 0 else x

    paddle.seed(1)
    with pytest.warns(LanesWarning, match="decides how many random numbers"):
        found = paddle.vmap(f)(tensor([1.0, -1.0, 2.0]))
    paddle.seed(1)
    assert found.tolist() == [float(f(tensor(x))) for x in (1.0, -1.0, 2.0)]


def test_results_of_several_kinds_run_item_by_item():
    def f(x):
        return [x, x + 1] if x > 0 else [x, -1.0]

    with pytest.warns(LanesWarning, match="the function under vmap returns one of several kinds of values"):
        found = paddle.vmap(f)(tensor([1.0, -1.0]))
    assert [one.tolist() for one in found] == [[1.0, -1.0], [2.0, -1.0]]


def test_lists_of_a_length_that_only_the_run_tells():
    def f(x):
        kept = []
        while x < 10:
            x = x * 2
            kept.append(x)
        return kept

    why, message = "a list whose length only the run will tell", "item 1 gives 2 results, item 0 gives 4"
    with pytest.warns(LanesWarning, match=why), pytest.raises(ValueError, match=message):
        paddle.vmap(f)(tensor([1.0, 4.0]))


def test_no_items():
    assert paddle.vmap(branchy)(paddle.zeros([0, 2])).shape == [0, 2]


def test_results_whose_shapes_differ_are_refused():
    with pytest.raises(ValueError, match="stack needs tensors of one shape"):
        paddle.vmap(lambda x: x[x > 0])(tensor(X))


def test_an_error_is_that_of_the_item_which_raises():
    def f(x):
        if x > 0:
            assert x < 10, "too large"
        return x

    assert paddle.vmap(f)(tensor([-50.0, 5.0])).tolist() == [-50.0, 5.0]
    with pytest.raises(AssertionError, match="too large"):
        paddle.vmap(f)(tensor([-50.0, 50.0]))


def test_a_variable_that_an_item_does_not_set_is_refused_for_that_item():
    def f(x):
        if x > 0:
            y = x * 2
        return y

    assert paddle.vmap(f)(tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(UnboundLocalError, match="'y'"):
        paddle.vmap(f)(tensor([1.0, -2.0]))


def test_it_prints_for_each_item(capsys):
    def f(x):
        if x > 0:
            print("positive", x > 1)
        return x

    paddle.vmap(f)(tensor([1.0, -1.0, 2.0]))
    assert capsys.readouterr().out.count("positive") == 2


def test_two_threads_use_one():
    f, found = paddle.vmap(branchy), {}

    def work(k):
        for _ in range(5):
            found[k] = f(tensor(X + k)).numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(2):
        np.testing.assert_allclose(found[k], [branchy(tensor(x + k)).numpy() for x in X])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: paddle.vmap(branchy, in_axes="0"), TypeError, "in_axes must be an int or a sequence of ints, not '0'"),
        (lambda: paddle.vmap(branchy, out_axes=None), TypeError, "out_axes must be an int"),
        (lambda: paddle.vmap(branchy, in_axes=None)(tensor(X)), ValueError, "no argument is a tensor with an axis"),
        (lambda: paddle.vmap(branchy, in_axes=(0, 0))(tensor(X)), ValueError, "in_axes has 2 entries for 1 arguments"),
        (
            lambda: paddle.vmap(branchy, in_axes=2)(tensor(X)),
            ValueError,
            "an argument of 2 axes has no axis 2 of items",
        ),
        (lambda: paddle.vmap(branchy, out_axes=(0, 1))(tensor(X)), ValueError, "out_axes has 2 entries for 1 results"),
        (
            lambda: paddle.vmap(lambda x, y: x + y)(tensor(X), tensor([1.0])),
            ValueError,
            "the mapped axes have different extents: 1, 3",
        ),
        (lambda: paddle.vmap(lambda x: "text")(tensor(X)), TypeError, "must return tensors and numbers, not str"),
    ],
)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_different_numbers_of_items_in_a_program():
    @paddle.jit.to_static(full_graph=True)
    def f(x, y):
        return paddle.vmap(lambda a, b: a * b)(x, y)

    assert f(tensor([1.0, 2.0]), tensor([3.0, 4.0])).tolist() == [3.0, 8.0]
    with pytest.raises(AssertionError, match="the mapped axes have different extents"):
        f(tensor([1.0, 2.0]), tensor([3.0, 4.0, 5.0]))
