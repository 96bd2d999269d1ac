"""Every in-place form under to_static: values, the tensor itself, gradients, in four calls with changing inputs."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.nn.functional as F

X = np.array([[0.3, 0.6], [0.2, 0.9], [0.45, 0.7]])
ROWS = lambda: paddle.to_tensor(np.array([0, 2]))
OTHER = lambda: paddle.to_tensor(X * 0.7 + 0.05)
MASK = lambda: paddle.to_tensor(X > 0.4)
INTEGERS = {"bitwise_and_", "bitwise_or_", "bitwise_xor_", "bitwise_not_", "bitwise_invert_", "bitwise_left_shift_",
            "bitwise_right_shift_", "gcd_", "lcm_"}  # fmt: skip
NEW_SHAPE_OR_DTYPE = {"reshape_", "squeeze_", "unsqueeze_", "flatten_", "transpose_", "t_", "cast_", "resize_"}
ARGUMENTS = {
    "lerp_": (OTHER, 0.3), "masked_fill_": (MASK, 2.0), "masked_scatter_": (MASK, OTHER), "renorm_": (2.0, 0, 0.5),
    "index_add_": (ROWS, 0, lambda: OTHER()[:2]), "index_fill_": (ROWS, 0, 1.5), "polygamma_": (1,),
    "index_put_": (lambda: (ROWS(),), lambda: OTHER()[:2]), "scatter_": (ROWS, lambda: OTHER()[:2]),
    "put_along_axis_": (lambda: paddle.to_tensor([[0, 1]]), 2.0, 0), "where_": (OTHER,), "cumsum_": (0,),
    "scatter_add_": (0, lambda: paddle.to_tensor([[0, 1]]), lambda: OTHER()[:1]), "cumprod_": (0,),
    "addmm_": (OTHER, lambda: paddle.to_tensor(np.eye(2))), "fill_": (2.0,), "fill_diagonal_": (2.0,),
    "fill_diagonal_tensor_": (lambda: paddle.to_tensor([1.0, 2.0], dtype="float64"),), "multigammaln_": (2,),
    "ldexp_": (lambda: paddle.to_tensor(np.full((3, 2), 2)),), "clip_": (0.25, 0.65), "clamp_": (0.25, 0.65),
    "geometric_": (0.4,), "baddbmm_": None, "set_": None, "apply_": None,
}  # fmt: skip
WITH_ANOTHER = set(
    "gammainc_ gammaincc_ "
    "add_ sub_ mul_ div_ subtract_ multiply_ divide_ floor_divide_ remainder_ mod_ floor_mod_ pow_ hypot_ copysign_ "
    "equal_ not_equal_ less_than_ less_ less_equal_ greater_than_ greater_equal_ logical_and_ logical_or_ "
    "logical_xor_ copy_ gcd_ lcm_ bitwise_and_ bitwise_or_ bitwise_xor_ bitwise_left_shift_ "
    "bitwise_right_shift_".split()
)
DRAWS = {"uniform_", "normal_", "exponential_", "bernoulli_", "cauchy_", "geometric_", "log_normal_", "random_"}
BOOLS = set("equal_ not_equal_ less_than_ less_ less_equal_ greater_than_ greater_equal_ logical_and_ logical_or_ "
            "logical_xor_ logical_not_".split())  # fmt: skip


def forms():
    seen = set(NEW_SHAPE_OR_DTYPE | {"requires_grad_", "where_"})
    for space, label in ((F, "F"), (paddle, "paddle"), (paddle.Tensor, "Tensor")):
        names = [name for name in sorted(dir(space)) if name.endswith("_") and not name.startswith("_")]
        for name in names:
            wanted = name not in seen and callable(getattr(space, name)) and ARGUMENTS.get(name, ()) is not None
            seen.add(name)
            if wanted:
                yield pytest.param(name, getattr(space, name), id=f"{label}.{name}")


def arguments(name):
    other = () if name not in WITH_ANOTHER else (OTHER,)
    made = [a() if callable(a) else a for a in ARGUMENTS.get(name, other)]
    if name in INTEGERS:
        made = [paddle.cast(a * 10, "int64") for a in made]
    return [a.astype("bool") for a in made] if name in BOOLS else made


@pytest.mark.parametrize(("name", "form"), list(forms()))
def test_in_place_form(name, form):
    def f(x):
        x = x.clone()
        form(x, *arguments(name))
        return x

    weights = paddle.to_tensor(np.arange(1.0, 7.0).reshape(3, 2))
    static = paddle.jit.to_static(f, full_graph=True)
    for factor in (1.0, 0.9, 0.8, 1.05):
        outcomes = []
        for run in (f, static):
            paddle.seed(7)
            given = (X * factor * 10).astype("int64") if name in INTEGERS else X * factor
            given = given > 0.5 if name in BOOLS else given
            x = paddle.to_tensor(given, stop_gradient=given.dtype.kind != "f")
            y = run(x)
            slope = None
            if not y.stop_gradient:
                (y * weights).sum().backward()
                slope = x.grad.numpy()
            outcomes.append((y.numpy(), slope))
        (y, slope), (static_y, static_slope) = outcomes
        assert static_y.dtype == y.dtype
        np.testing.assert_allclose(static_y, y, rtol=1e-10)
        assert (slope is None) == (static_slope is None)
        if slope is not None:
            np.testing.assert_allclose(static_slope, slope, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["relu_", "elu_", "softmax_", "tanh_"])
def test_a_leaf_is_refused(name):
    x = paddle.to_tensor(X, stop_gradient=False)
    with pytest.raises(RuntimeError, match="a leaf that needs a gradient cannot be changed in place"):
        getattr(F, name)(x)


def test_an_operand_given_by_name_is_what_it_was_before_the_write():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 1
    y.multiply_(y=y)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
