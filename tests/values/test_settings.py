"""Dtypes and what is known of them, default settings, and the modes of gradients and of mixed precision."""

import math

import numpy as np
import pytest

import dy2st as paddle
from dy2st import formatting

DTYPES = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "complex64": np.complex64,
    "complex128": np.complex128,
}  # fmt: skip
TWINS = {"float": "float32", "double": "float64", "half": "float16", "cfloat": "complex64", "cdouble": "complex128"}


@pytest.mark.proves(
    "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 "
    "float double half cfloat cdouble dtype"
)
def test_dtypes_are_numpys():
    for name, numpys in DTYPES.items():
        found = getattr(paddle, name)
        assert isinstance(found, paddle.dtype)
        assert found == name
        assert paddle.zeros([1], found).numpy().dtype == numpys
    for twin, name in TWINS.items():
        assert getattr(paddle, twin) is getattr(paddle, name)


@pytest.mark.proves("finfo iinfo")
def test_limits_are_numpys():
    for name in ("float16", "float32", "float64"):
        found, want = paddle.finfo(name), np.finfo(name)
        for what in ("min", "max", "eps", "tiny", "resolution", "smallest_normal"):
            assert getattr(found, what) == float(getattr(want, what)), (name, what)
        assert (found.bits, found.dtype) == (want.bits, name)
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        found, want = paddle.iinfo(name), np.iinfo(name)
        assert (found.min, found.max, found.bits, found.dtype) == (want.min, want.max, want.bits, name)


@pytest.mark.proves("e pi inf nan newaxis")
def test_constants():
    assert (paddle.e, paddle.pi, paddle.inf, paddle.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(paddle.nan)


@pytest.mark.proves("empty empty_like from_numpy create_parameter")
def test_tensors_of_any_elements_have_the_shape_and_dtype():
    assert (paddle.empty([2, 3], "int32").shape, paddle.empty([2, 3], "int32").dtype) == ([2, 3], "int32")
    like = paddle.zeros([2, 3], "float64")
    assert (paddle.empty_like(like).shape, paddle.empty_like(like).dtype) == ([2, 3], "float64")
    assert paddle.empty_like(like, "int64").dtype == "int64"
    array = np.arange(3.0)
    assert paddle.from_numpy(array).tolist() == [0.0, 1.0, 2.0]
    made = paddle.create_parameter([2], "float64", default_initializer=paddle.nn.initializer.Constant(3.0))
    assert (made.tolist(), made.stop_gradient) == ([3.0, 3.0], False)


@pytest.mark.proves("set_default_dtype get_default_dtype")
def test_the_default_dtype_is_that_of_new_floats():
    before = paddle.get_default_dtype()
    try:
        paddle.set_default_dtype("float64")
        assert paddle.get_default_dtype() == "float64"
        made = (paddle.zeros([1]), paddle.to_tensor(1.5), paddle.rand([1]), paddle.nn.Linear(1, 1).weight)
        assert {t.dtype for t in made} == {paddle.float64}
    finally:
        paddle.set_default_dtype(before)


@pytest.mark.proves("set_flags get_flags")
def test_flags_are_kept():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
    assert paddle.get_flags(["FLAGS_check_nan_inf"]) == {"FLAGS_check_nan_inf": True}


@pytest.mark.proves("no_grad enable_grad set_grad_enabled is_grad_enabled")
def test_gradients_are_switched_off_and_on():
    x = paddle.ones([1])
    x.stop_gradient = False
    assert paddle.is_grad_enabled()
    with paddle.no_grad():
        assert (x * 2).stop_gradient
        assert not paddle.is_grad_enabled()
        with paddle.enable_grad():
            assert not (x * 2).stop_gradient
    with paddle.set_grad_enabled(False):
        assert (x * 2).stop_gradient
    assert not (x * 2).stop_gradient
    assert paddle.no_grad()(lambda t: t * 2)(x).stop_gradient


@pytest.mark.proves(
    "amp.get_autocast_cpu_dtype amp.get_autocast_dtype amp.get_autocast_gpu_dtype amp.is_autocast_enabled "
    "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_enabled"
)
def test_mixed_precision_says_what_it_is():
    for module in (paddle, paddle.amp):
        assert not module.is_autocast_enabled()
        with paddle.amp.auto_cast(dtype="float16"):
            assert module.is_autocast_enabled()
            found = (module.get_autocast_dtype(), module.get_autocast_cpu_dtype(), module.get_autocast_gpu_dtype())
            assert found == ("float16",) * 3


@pytest.mark.proves("autocast")
def test_autocast_is_auto_cast():
    x = paddle.ones([2, 2])
    with paddle.autocast("cpu"):
        assert (x @ x).dtype == "float16"
    with paddle.autocast("cpu", enabled=False):
        assert (x @ x).dtype == "float32"


@pytest.mark.proves("Tensor")
def test_tensors_are_of_one_class():
    assert isinstance(paddle.zeros([2]), paddle.Tensor)
    assert isinstance(paddle.create_parameter([2], "float32"), paddle.Tensor)
    np.testing.assert_array_equal(paddle.Tensor(np.ones(2)).numpy(), [1.0, 1.0])


@pytest.mark.proves("amp.is_float16_supported amp.is_bfloat16_supported")
def test_what_precision_there_is():
    assert paddle.amp.is_bfloat16_supported() is True
    assert isinstance(paddle.amp.is_float16_supported(), bool)


@pytest.mark.proves("set_printoptions")
def test_print_options_change_the_text():
    before = dict(formatting.OPTIONS)
    try:
        paddle.set_printoptions(precision=2)
        assert "0.33]" in str(paddle.to_tensor([1 / 3]))
        paddle.set_printoptions(sci_mode=True)
        assert "[3.33e-01, 1.23e+04, 0.00e+00]" in str(paddle.to_tensor([1 / 3, 12345.678, 0.0]))
        paddle.set_printoptions(sci_mode=False)
        assert "e-" not in str(paddle.to_tensor([1e-10, 12345.678]))
        paddle.set_printoptions(threshold=4, edgeitems=1)
        assert "[0., ..., 0.]" in str(paddle.zeros([9])).replace("0.00", "0.")
    finally:
        formatting.OPTIONS.update(before)


@pytest.mark.proves("enable_static disable_static in_dynamic_mode")
def test_modes_are_switched():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()


@pytest.mark.proves("nn.initializer.calculate_gain nn.initializer.Assign nn.initializer.Dirac nn.initializer.Bilinear")
def test_initializers_that_draw_nothing():
    make = paddle.nn.initializer
    gains = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": 2**0.5, "selu": 3 / 4}
    for name, want in gains.items():
        assert make.calculate_gain(name) == pytest.approx(want)
    assert make.calculate_gain("leaky_relu", 0.5) == pytest.approx((2 / 1.25) ** 0.5)

    def made(shape, initializer):
        return paddle.create_parameter(shape, "float64", default_initializer=initializer).numpy()

    np.testing.assert_array_equal(made([3], make.Assign(np.array([1.0, 2.0, 3.0]))), [1, 2, 3])
    np.testing.assert_array_equal(made([2, 2, 3], make.Dirac()), np.eye(2)[..., None] * [0, 1, 0])
    grouped = made([4, 2, 3], make.Dirac(groups=2))
    np.testing.assert_array_equal(grouped, np.tile(np.eye(2), (2, 1))[..., None] * [0, 1, 0])
    row = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(made([1, 1, 4, 4], make.Bilinear())[0, 0], np.outer(row, row))


@pytest.mark.proves("optimizer.Optimizer optimizer.Optimizer.clear_grad optimizer.Optimizer.step")
@pytest.mark.proves("nn.Layer.add_parameter")
def test_gradients_of_an_optimizer_are_cleared():
    layer = paddle.nn.Layer()
    p = layer.add_parameter("p", paddle.create_parameter([2], "float32"))
    assert [name for name, _ in layer.named_parameters()] == ["p"]
    optimizer = paddle.optimizer.SGD(0.5, parameters=layer.parameters())
    assert isinstance(optimizer, paddle.optimizer.Optimizer)
    before = p.numpy().copy()
    (p * paddle.to_tensor([2.0, 4.0])).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), before - [1.0, 2.0], rtol=1e-6)
    optimizer.clear_grad()
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.clear_grad(set_to_zero=False)
    assert p.grad is None


@pytest.mark.proves("jit.to_static jit.not_to_static jit.enable_to_static autograd.Function")
def test_conversion_is_switched_off_and_on():
    def twice(x):
        return x * 2 if x.sum() > 0 else x

    static = paddle.jit.to_static(twice, full_graph=True)
    x = paddle.ones([2])
    assert static(x).tolist() == [2.0, 2.0]
    assert len(static.program_cache) == 1
    assert paddle.jit.not_to_static(twice)(x).tolist() == [2.0, 2.0]
    plain = paddle.jit.to_static(twice, full_graph=True)
    paddle.jit.enable_to_static(False)
    try:
        assert plain(x).tolist() == [2.0, 2.0]
        assert len(plain.program_cache) == 0
    finally:
        paddle.jit.enable_to_static(True)
    assert paddle.autograd.Function is paddle.autograd.PyLayer


@pytest.mark.proves("static.create_global_var")
def test_a_global_variable_has_its_value(main):
    step = paddle.static.create_global_var([2], 3.0, "float32", name="step")
    executor = paddle.static.Executor()
    executor.run(paddle.static.default_startup_program())
    (found,) = executor.run(main, fetch_list=[step + 1.0])
    assert found.tolist() == [4.0, 4.0]
