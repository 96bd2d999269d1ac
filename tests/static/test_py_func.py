"""Python functions as part of a hand-built Program, and their derivatives."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import static
from dy2st.errors import AutodiffError
from dy2st.ir.opdef import lookup
from dy2st.ops.control.host_call import Host

X = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")


@pytest.fixture(autouse=True)
def program():
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def run(fetch, **feed):
    return static.Executor().run(static.default_main_program(), feed=feed, fetch_list=fetch)


@pytest.mark.proves("static.py_func static.nn.py_func")
def test_a_function_is_called_at_each_run():
    calls = []

    def double(x):
        calls.append(x.shape)
        return x * 2

    x = static.data("x", [None, 2])
    y = static.py_func(double, x, static.InputSpec([None, 2], "float32")) + 1
    np.testing.assert_allclose(run([y], x=X)[0], X * 2 + 1)
    np.testing.assert_allclose(run([y], x=X[:1])[0], X[:1] * 2 + 1)
    assert calls == [(2, 2), (1, 2)]


def test_several_results_and_none():
    seen = []
    x = static.data("x", [2, 2])
    spec = static.InputSpec([2], "float32")
    low, high = static.py_func(lambda a: (a.min(0), a.max(0)), x, [spec, spec])
    assert static.py_func(lambda a: seen.append(a.sum()), x, None) is None
    got = run([low, high], x=X)
    np.testing.assert_allclose(got, [[1.0, 2.0], [3.0, 4.0]])
    assert seen == [10.0]


def test_gradients_come_from_the_backward_function():
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    y = static.py_func(np.sin, x, static.InputSpec([2, 2], "float32"), lambda a, out, ct: ct * np.cos(a))
    (grad,) = static.gradients([(y * y).sum()], [x])
    np.testing.assert_allclose(run([grad], x=X)[0], 2 * np.sin(X) * np.cos(X), rtol=1e-5)


def test_what_backward_does_not_need_is_left_out():
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    spec = static.InputSpec([2, 2], "float32")
    y = static.py_func(np.exp, x, spec, lambda out, ct: ct * out, skip_vars_in_backward_input=[x])
    (grad,) = static.gradients([y.sum()], [x])
    np.testing.assert_allclose(run([grad], x=X)[0], np.exp(X), rtol=1e-6)


def test_without_a_backward_function_no_gradient_flows():
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    y = static.py_func(np.sin, x, static.InputSpec([2, 2], "float32"))
    assert y.stop_gradient
    (grad,) = static.gradients([(y * x).sum()], [x])
    np.testing.assert_allclose(run([grad], x=X)[0], np.sin(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("func", "spec", "text"),
    [
        (lambda a: (a, a), [2, 2], r"returned 2 arrays, 1 were declared"),
        (lambda a: a[0], [2, 2], r"returned an array of shape \[2\] at place 0, not \[2, 2\]"),
    ],
)
def test_what_was_not_declared_is_refused_when_it_runs(func, spec, text):
    x = static.data("x", [2, 2])
    y = static.py_func(func, x, static.InputSpec(spec, "float32"))
    with pytest.raises(ValueError, match=text):
        run([y], x=X)


def test_a_backward_function_gives_one_gradient_for_each_input():
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    y = static.py_func(np.sin, x, static.InputSpec([2, 2], "float32"), lambda a, out, ct: (ct, ct))
    (grad,) = static.gradients([y.sum()], [x])
    with pytest.raises(ValueError, match="returned 2 gradients for 1 inputs"):
        run([grad], x=X)


def test_there_is_no_second_derivative():
    x = static.data("x", [2, 2])
    x.stop_gradient = False
    y = static.py_func(np.sin, x, static.InputSpec([2, 2], "float32"), lambda a, out, ct: ct * np.cos(a))
    (grad,) = static.gradients([y.sum()], [x])
    with pytest.raises(AutodiffError, match="<lambda> has no second derivative"):
        static.gradients([grad.sum()], [x])


def test_its_derivative_goes_backwards_only():
    host, one = Host(np.sin, np.cos), np.ones(1, "float32")
    with pytest.raises(AutodiffError, match="sin has a derivative backwards only"):
        lookup("host_tangent").eval(np, one, one, one, host=host, moving=(0,), types=())
    with pytest.raises(AutodiffError, match="sin has no second derivative"):
        lookup("host_tangent").jvp(None, [], [], [], host=host)


def test_wrong_arguments_are_refused():
    x = static.data("x", [2, 2])
    with pytest.raises(TypeError, match="py_func: func must be a function, not int"):
        static.py_func(3, x, None)
    with pytest.raises(TypeError, match="x must be tensors, and out variables or InputSpecs"):
        static.py_func(np.sin, x, 3)


def test_it_needs_static_mode():
    paddle.disable_static()
    with pytest.raises(RuntimeError, match=r"paddle\.static\.py_func builds a Program by hand"):
        static.py_func(np.sin, paddle.ones([1]), None)
    paddle.enable_static()
