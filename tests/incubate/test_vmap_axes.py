"""vmap with an axis for each part of an argument: dicts, lists, tuples, nested."""

import numpy as np
import pytest

import dy2st as paddle

W, B, X = (np.random.default_rng(0).normal(size=s) for s in ((4, 3, 2), (2, 4), (4, 3)))


def model(params, x):
    return paddle.tanh(x @ params["w"] + params["b"]) * params["scale"]


def wanted():
    return np.stack([np.tanh(X[i] @ W[i] + B[:, i]) * 2.0 for i in range(4)])


def params():
    return {"w": paddle.to_tensor(W), "scale": paddle.to_tensor(2.0, dtype="float64"), "b": paddle.to_tensor(B)}


@pytest.mark.parametrize("in_axes", [({"w": 0, "b": 1, "scale": None}, 0), [{"b": 1, "scale": None, "w": 0}, 0]])
def test_each_entry_of_a_dict_has_its_axis(in_axes):
    f = paddle.vmap(model, in_axes=in_axes)
    for _ in range(3):
        np.testing.assert_allclose(f(params(), paddle.to_tensor(X)).numpy(), wanted())


def test_a_dict_alone_is_for_the_one_argument():
    f = paddle.vmap(lambda p: p["a"] * p["b"], in_axes={"a": 1, "b": None})
    a = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(f({"a": paddle.to_tensor(a), "b": paddle.to_tensor(3.0)}).numpy(), a.T * 3)


def test_lists_in_dicts_and_one_axis_for_all_below():
    def body(p, x):
        return p["pair"][0] * x + p["pair"][1] + p["same"][0]

    f = paddle.vmap(body, in_axes=({"pair": [0, 1], "same": None}, 0))
    pair = [paddle.to_tensor(X[:, 0]), paddle.to_tensor(B)]
    found = f({"pair": pair, "same": (paddle.to_tensor(1.0),)}, paddle.to_tensor(X[:, 1]))
    np.testing.assert_allclose(found.numpy(), (X[:, 0] * X[:, 1])[:, None] + B.T + 1)


@pytest.mark.parametrize(("in_axes", "text"), [
    (({"w": 0}, 0), r"vmap: in_axes has the keys \['w'\] for the keys \['w', 'scale', 'b'\]"),
    (([0, 0, 0], 0), "vmap: in_axes has 3 axes for a dict"),
    ((0, {"x": 0}), r"vmap: in_axes has the keys \['x'\] for a Tensor"),
    ({"w": 0}, "vmap: in_axes is a dict, which is for one argument, not 2"),
    (({"w": 0.5}, 0), "vmap: in_axes must be an int or a sequence of ints, not 0.5"),
])  # fmt: skip
def test_a_structure_that_the_argument_has_not_is_refused(in_axes, text):
    given = params()
    given["scale"] = paddle.ones([4])
    with pytest.raises((TypeError, ValueError), match=text):
        paddle.vmap(model, in_axes=in_axes)({**given, "b": paddle.to_tensor(B.T)}, paddle.to_tensor(X))
