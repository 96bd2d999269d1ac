"""Rules for images: what runs without a call into Python, and what `eval` does."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.runtime.backends.cpu.test_same_as_interpreter import compare, program_of


def same(function, *arrays):
    """Check native results against the interpreter's; return the names of ops that every run leaves to Python."""
    program = program_of(function, *arrays)
    native = NativePlan(program)
    compare(native.run([*arrays]), compile_plan(program).run([*arrays]))
    return [call.name for call in native.host_calls]


@pytest.mark.parametrize("output", [(1, 1), (2, 3), (6, 6)])
@pytest.mark.parametrize("shape", [(2, 3, 6, 6), (1, 2, 5, 7), (0, 3, 6, 6)])
def test_adaptive_means_and_their_gradient(output, shape, rng):
    pool = nn.AdaptiveAvgPool2D(output)

    def f(x):
        x.stop_gradient = False
        y = pool(x)
        return y, paddle.grad((y * y).sum(), x)[0]

    assert same(f, rng.normal(size=shape).astype("float32")) == []


def test_adaptive_means_of_no_elements_raise():
    program = program_of(lambda x: nn.functional.adaptive_avg_pool2d(x, 1), np.zeros((1, 1, 2, 2), "float32"))
    with pytest.raises(ValueError, match="adaptive_avg_pool cannot pool extents"):
        NativePlan(program).run([np.zeros((1, 1, 0, 2), "float32")])


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_of_a_convolution_needs_no_python(training, rng):
    paddle.seed(0)
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU())
    net.train() if training else net.eval()

    @paddle.jit.to_static
    def f(x):
        y = net(x)
        return y, *paddle.grad((y * y).sum(), net.parameters())

    f(paddle.to_tensor(rng.normal(size=(2, 3, 6, 6)).astype("float32")))
    native = NativePlan(f.concrete_program.main_program)
    assert [call.name for call in native.host_calls] == []


@pytest.mark.parametrize("extent", range(1, 9))
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (2, 3, 1), (3, 1, 0), (1, 4, 0)])
def test_pools_whose_last_window_reaches_over_the_end(kernel, stride, padding, extent, rng):
    pool = nn.functional.max_pool2d, nn.functional.avg_pool2d

    def f(x):
        x.stop_gradient = False
        most, mean = (p(x, kernel, stride, padding, ceil_mode=True) for p in pool)
        return most, mean, paddle.grad((mean * mean).sum(), x)[0]

    assert same(f, rng.normal(size=(2, 2, extent, 5)).astype("float32")) == []


@pytest.mark.parametrize("quick", [False, True])
def test_places_that_nobody_reads_of_a_small_pool(quick):
    """They have no memory: reading them into registers reads address 0, where code made in a hurry really does so."""

    def f(x):
        return nn.functional.max_pool1d(x, 1) * 0.5, paddle.topk(x, 2)[0]

    x = np.array([[[1.0, -2.0, 3.0]]], "float32")
    static = paddle.jit.to_static(f, full_graph=True, input_spec=[paddle.static.InputSpec([1, 1, 3], "float32")])
    static(paddle.to_tensor(x))
    program = static.concrete_program.main_program
    native = NativePlan(program, quick=quick)
    for _ in range(3):
        compare(native.run([x]), compile_plan(program).run([x]))
