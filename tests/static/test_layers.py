"""Layers as functions: values against NumPy, names of parameters, and what they refuse."""

import numpy as np
import pytest

import dy2st as paddle

nn = paddle.static.nn
F32 = "float32"


def run(feed, *fetches):
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())
    return exe.run(feed=feed, fetch_list=list(fetches))


def data(*shape, name="x", dtype=F32):
    return paddle.static.data(name, list(shape), dtype)


@pytest.mark.proves("static.nn.fc")
def test_fc_flattens_the_last_axes(main, rng):
    x = rng.normal(size=(5, 2, 3)).astype(F32)
    out = nn.fc(data(None, 2, 3), 4, weight_attr="w", bias_attr="b", activation="relu")
    got, w, b = run({"x": x}, out, "w", "b")
    assert w.shape == (6, 4)
    np.testing.assert_allclose(got, np.maximum(x.reshape(5, 6) @ w + b, 0), rtol=1e-5, atol=1e-6)


def test_fc_keeps_leading_axes_and_sums_inputs(main, rng):
    x = rng.normal(size=(5, 2, 3)).astype(F32)
    v = data(None, 2, 3)
    out = nn.fc([v, v], 4, num_flatten_dims=2, bias_attr=False, name="both")
    got, w, u = run({"x": x}, out, *[p.name for p in main.all_parameters()])
    assert [p.name.split(".")[0] for p in main.all_parameters()] == ["both", "both"]
    np.testing.assert_allclose(got, x @ w + x @ u, rtol=1e-4, atol=1e-5)


@pytest.mark.proves("static.nn.conv2d")
def test_conv2d_with_groups(main, rng):
    x = rng.normal(size=(2, 4, 5, 5)).astype(F32)
    out = nn.conv2d(data(None, 4, 5, 5), 6, (3, 1), padding=1, stride=2, groups=2, param_attr="w", bias_attr="b")
    got, w, b = run({"x": x}, out, "w", "b")
    paddle.disable_static()
    want = paddle.nn.functional.conv2d(
        paddle.to_tensor(x), paddle.to_tensor(w), paddle.to_tensor(b), stride=2, padding=1, groups=2
    )
    assert w.shape == (6, 2, 3, 1)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)


def test_conv2d_is_named_by_its_axes(main):
    nn.conv2d(data(None, 1, 4, 4), 1, 3)
    assert "conv2d" in [op.type for op in main.global_block().ops]


@pytest.mark.proves("static.nn.conv2d_transpose")
def test_conv2d_transpose_undoes_a_stride(main):
    out = nn.conv2d_transpose(data(None, 3, 4, 4), 2, filter_size=2, stride=2)
    assert run({"x": np.ones((1, 3, 4, 4), F32)}, out)[0].shape == (1, 2, 8, 8)


@pytest.mark.proves("static.nn.conv3d static.nn.conv3d_transpose")
@pytest.mark.parametrize("kind", ["conv3d", "conv3d_transpose"])
def test_volumes_are_convolved(main, rng, kind):
    x = rng.normal(size=(2, 4, 3, 4, 5)).astype(F32)
    how = {"filter_size": (2, 1, 2), "stride": 2, "groups": 2, "param_attr": "w", "bias_attr": "b"}
    out = getattr(nn, kind)(data(None, 4, 3, 4, 5), 6, act="relu", **how)
    got, w, b = run({"x": x}, out, "w", "b")
    paddle.disable_static()
    want = getattr(paddle.nn.functional, kind)(*map(paddle.to_tensor, (x, w, b)), stride=2, groups=2)
    assert w.shape == ((6, 2, 2, 1, 2) if kind == "conv3d" else (4, 3, 2, 1, 2))
    np.testing.assert_allclose(got, np.maximum(want.numpy(), 0), rtol=1e-5, atol=1e-6)


@pytest.mark.proves("static.nn.group_norm static.nn.instance_norm")
def test_groups_and_channels_are_normalised(main, rng):
    x = rng.normal(size=(2, 4, 5)).astype(F32)
    v = data(None, 4, 5)
    half = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5))
    group = nn.group_norm(v, 2, epsilon=0.1, bias_attr=half)
    instance = nn.instance_norm(v, epsilon=0.1)
    got = run({"x": x}, group, instance)
    for found, parts, shift in ((got[0], x.reshape(2, 2, 10), 0.5), (got[1], x, 0.0)):
        want = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 0.1) + shift
        np.testing.assert_allclose(found, want.reshape(x.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.proves("static.nn.bilinear_tensor_product")
def test_a_bilinear_product_has_a_matrix_for_each_result(main, rng):
    x, y = rng.normal(size=(3, 2)).astype(F32), rng.normal(size=(3, 4)).astype(F32)
    out = nn.bilinear_tensor_product(data(None, 2), data(None, 4, name="y"), 5, param_attr="w", bias_attr="b")
    got, w, b = run({"x": x, "y": y}, out, "w", "b")
    np.testing.assert_allclose(got, np.einsum("bi,oij,bj->bo", x, w, y) + b, rtol=1e-4, atol=1e-5)


@pytest.mark.proves("static.nn.embedding")
def test_embedding_takes_rows(main):
    out = nn.embedding(data(None, dtype="int64"), [5, 3], param_attr="table")
    got, table = run({"x": np.array([4, 0, 4])}, out, "table")
    np.testing.assert_array_equal(got, table[[4, 0, 4]])


@pytest.mark.proves("static.nn.batch_norm")
def test_batch_norm_keeps_running_statistics(main, rng):
    x = rng.normal(size=(8, 3)).astype(F32)
    out = nn.batch_norm(data(None, 3), momentum=0.5, moving_mean_name="mean", moving_variance_name="variance")
    got, mean, variance = run({"x": x}, out, "mean", "variance")
    np.testing.assert_allclose(got, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, 0.5 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.5 + 0.5 * x.var(0), rtol=1e-5)


@pytest.mark.proves("static.nn.layer_norm")
def test_layer_norm_over_the_last_axes(main, rng):
    x = rng.normal(size=(4, 6)).astype(F32)
    got = run({"x": x}, nn.layer_norm(data(None, 6)))[0]
    np.testing.assert_allclose(got, (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), rtol=1e-4,
                               atol=1e-5)  # fmt: skip


@pytest.mark.proves("static.nn.prelu")
def test_prelu_has_a_slope(main):
    got = run({"x": np.array([[-4.0, 4.0]], F32)}, nn.prelu(data(None, 2), "all"))[0]
    assert got.tolist() == [[-1.0, 4.0]]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: nn.fc(3, 4), TypeError, "fc: the input must be a variable, not int"),
        (lambda: nn.fc(data(None, 2, dtype="int64"), 4), TypeError, "fc: the input must have a float dtype, not int64"),
        (lambda: nn.fc(data(None, 2), 4, num_flatten_dims=2),
         ValueError, "num_flatten_dims 2 does not fit an input of 2"),
        (lambda: nn.fc(data(2, None), 4), ValueError, "fc: the last axes of x must have known extents"),
        (lambda: nn.fc(data(None, 2), 4, activation="nope"), ValueError, "there is no activation 'nope'"),
        (lambda: nn.conv2d(data(1, 3, 4, 4), 4, 3, groups=2), ValueError, "groups=2 does not divide 3 channels"),
        (lambda: nn.conv2d(data(1, None, 4, 4), 4, 3), ValueError, "conv2d: the channels must have known extents"),
        (lambda: nn.conv2d_transpose(data(1, 3, 4, 4), 4), ValueError, "conv2d_transpose: give filter_size"),
        (lambda: nn.prelu(data(1, 3), "element"), ValueError, "prelu: mode must be 'all' or 'channel', not 'element'"),
    ],
)  # fmt: skip
def test_wrong_arguments(main, call, kind, message):
    with pytest.raises(kind, match=message):
        call()
