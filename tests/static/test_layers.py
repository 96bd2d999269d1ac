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
