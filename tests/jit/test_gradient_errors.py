"""Gradients that cannot be had: one clear error each, that names the user's line, eagerly and in a trace."""

import re
import traceback

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import AutodiffError

HERE = __file__


def line_of(error):
    """Return the last line of this file in an error's traceback."""
    return [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == HERE][-1]


def leaf(*numbers):
    return paddle.to_tensor(np.array(numbers), stop_gradient=False)


def through_argmax(x):
    y = paddle.argmax(x).astype("float64") * 2
    return paddle.grad(y, [x])  # asked


def of_another(x):
    z = leaf(1.0)
    return paddle.grad((x * x).sum(), [z])  # asked


def of_a_constant(x):
    paddle.argmax(x).astype("float64").backward()  # asked


def called(f, static):
    return paddle.jit.to_static(f, full_graph=True) if static else f


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (through_argmax, ValueError, r"input 0 \(.*\) has no gradient: .*; allow_unused=True gives None for it"),
        (of_another, ValueError, r"input 0 \(.*\) has no gradient: no output depends on it; allow_unused=True"),
        (of_a_constant, RuntimeError, r"backward\(\) of a tensor that needs no gradient \(its stop_gradient is True\)"),
    ],
)
def test_what_has_no_gradient(f, kind, message, static):
    with pytest.raises(kind, match=message) as caught:
        called(f, static)(leaf(1.0, 2.0))
    assert line_of(caught.value).endswith("# asked")


def test_a_trace_names_the_operation_without_a_derivative():
    line = through_argmax.__code__.co_firstlineno + 1
    with pytest.raises(ValueError, match=rf"'argmax' \(at {re.escape(HERE)}:{line}\) has no derivative"):
        called(through_argmax, True)(leaf(1.0, 2.0))


@pytest.mark.parametrize("static", [False, True])
def test_allow_unused_gives_none(static):
    def f(x, z):
        return paddle.grad((x * x).sum(), [x, z], allow_unused=True)

    assert called(f, static)(leaf(1.0), leaf(2.0))[1] is None


def test_a_second_backward_through_a_freed_tape():
    x = leaf(1.0, 2.0)
    for y in ((x * x).sum(), called(lambda x: (x * x).sum(), True)(x)):
        y.backward()
        message = (
            r"the tape behind this tensor \(made by '.*'\) was freed by an earlier backward; pass retain_graph=True"
        )
        with pytest.raises(AutodiffError, match=message) as caught:
            y.backward()  # again
        assert line_of(caught.value).endswith("# again")


def test_a_saved_value_that_was_overwritten():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    y.add_(leaf(1.0, 1.0).detach())
    with pytest.raises(AutodiffError, match=r"operand 0 of 'mul' was changed in place after it was used") as caught:
        z.backward()  # too late
    assert line_of(caught.value).endswith("# too late")


def test_a_python_function_has_no_forward_derivative():
    def run(x):
        out = paddle.static.py_func(lambda a: a * 2, x, paddle.static.InputSpec([2], "float64"), lambda a, b, c: c * 2)
        return out

    main = paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(main, paddle.static.Program()):
            x = paddle.static.data("x", [2], "float64")
            x.stop_gradient = False
            (tangent,) = paddle.incubate.autograd.forward_grad([run(x)], [x])
        with pytest.raises(AutodiffError, match=r"<lambda> has a derivative backwards only"):
            paddle.static.Executor().run(main, feed={"x": np.ones(2)}, fetch_list=[tangent])
    finally:
        paddle.disable_static()
