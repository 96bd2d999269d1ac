"""`paddle.framework` and `paddle.base`: checks, LayerHelper, kinds of variables, generators."""

import logging

import numpy as np
import pytest

import dy2st as paddle
from dy2st import framework
from dy2st.framework import core
from dy2st.framework.layer_helper import LayerHelper


def test_dtypes_have_names():
    assert framework.convert_dtype(paddle.float32) == framework.convert_dtype(np.float32) == "float32"
    assert framework.convert_np_dtype_to_dtype_(np.int64) is paddle.int64
    assert core.VarDesc.VarType.FP32 is paddle.float32
    assert paddle.ones([1]).dtype == core.VarDesc.VarType.FP32
    assert core.DataType.INT64 is paddle.int64


def test_arguments_are_checked():
    x = paddle.ones([2])
    framework.check_variable_and_dtype(x, "x", ["float32", "float64"], "f")
    with pytest.raises(TypeError, match="f: x must be Tensor, not list"):
        framework.check_variable_and_dtype([1], "x", "float32", "f")
    with pytest.raises(TypeError, match="f: the dtype of x must be int32 or int64, not float32"):
        framework.check_variable_and_dtype(x, "x", ("int32", "int64"), "f")
    with pytest.raises(TypeError, match=r"f: n must be int or str, not float\. Why\?"):
        framework.check_type(1.0, "n", (int, str), "f", "Why?")


def test_modes():
    assert framework.in_dygraph_mode()
    assert not framework.in_pir_mode()
    eager, static = framework.dygraph_only(lambda: 1), framework.static_only(lambda: 2)
    assert eager() == 1
    with pytest.raises(RuntimeError, match="is for static mode"):
        static()
    paddle.enable_static()
    try:
        assert static() == 2
        with pytest.raises(RuntimeError, match="is for eager mode"):
            eager()
        assert framework.in_pir_mode()
    finally:
        paddle.disable_static()


def test_a_layer_helper_makes_parameters():
    x = paddle.to_tensor([-1.0, 2.0])
    helper = LayerHelper("scaled", input=x, act="relu", param_attr="w", bias_attr=False)
    made = helper.create_parameter(helper.param_attr, [2], default_initializer=paddle.nn.initializer.Constant(3.0))
    assert (made.name, made.tolist()) == ("w", [3.0, 3.0])
    assert helper.create_parameter(False, [2]) is None
    assert helper.create_parameter(None, [2], stop_gradient=True).stop_gradient
    assert helper.bias_attr is None
    assert helper.append_activation(x).tolist() == [0.0, 2.0]
    assert helper.input() is x
    assert helper.input_dtype() is paddle.float32
    assert helper.name.startswith("scaled_")
    with pytest.raises(AttributeError, match=r"no 'append_op'; operators .* call paddle\._C_ops"):
        helper.append_op(type="relu")
    both = LayerHelper("f", input=[x, x.astype("int32")])
    with pytest.raises(ValueError, match=r"inputs of several dtypes: \['float32', 'int32'\]"):
        both.input_dtype()
    with pytest.raises(ValueError, match="f takes one input, not 2"):
        both.input()


@pytest.mark.proves("Generator")
def test_a_generator_has_a_state_of_its_own():
    a, b = paddle.Generator(), paddle.Generator("cpu")
    assert a.manual_seed(7).initial_seed() == b.manual_seed(7).initial_seed() == 7
    assert a.next() == b.next() == (7, 0)
    state = a.get_state()
    a.next()
    a.set_state(state)
    assert a.next() == (7, 1)


def test_flags_are_read_by_name():
    paddle.set_flags({"FLAGS_of_this_test": 3})
    assert core.globals()["FLAGS_of_this_test"] == 3


def test_what_will_go_warns():
    @paddle.utils.deprecated(update_to="new", since="2.0", reason="slow")
    def old(x):
        return x + 1

    with pytest.warns(DeprecationWarning, match=r"old is deprecated since 2\.0; use new instead: slow"):
        assert old(1) == 2
    with pytest.raises(RuntimeError, match="_gone is deprecated"):
        _gone()
    assert old.__name__ == "old"


@paddle.utils.deprecated(level=2)
def _gone():
    """Never runs."""


def test_a_logger_has_one_handler():
    for _ in range(2):
        logger = framework.get_logger("dy2st.test_framework", logging.INFO, "%(message)s")
    assert len(logger.handlers) == 1


def test_attributes_of_parameters_are_read():
    attr = paddle.ParamAttr(name="w")
    assert paddle.ParamAttr._to_attr(attr) is attr
    assert paddle.ParamAttr._to_attr(False) is False
    assert paddle.ParamAttr._to_attr(["a", None])[0].name == "a"


def test_derivatives_of_derivatives_with_and_without_the_switch_for_primitives():
    for enabled in (True, False):
        core.set_prim_eager_enabled(enabled)
        core._set_prim_all_enabled(enabled)
        x = paddle.to_tensor(2.0, stop_gradient=False)
        (first,) = paddle.grad(x**3, x, create_graph=True)
        assert paddle.grad(first, x)[0].item() == 12.0
