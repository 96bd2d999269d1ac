"""Operators by position: each is its public function, with the arguments where Paddle's operator has them."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import _C_ops
from dy2st.nn import functional as F

RNG = np.random.default_rng(2)
X = paddle.to_tensor(RNG.normal(size=[2, 4, 6, 6]).astype("float32"))
ROWS = paddle.to_tensor(RNG.normal(size=[3, 4]).astype("float32"))
W = paddle.to_tensor(RNG.normal(size=[4, 4, 3, 3]).astype("float32"))
SCALE = paddle.to_tensor(np.array([1.0, 2.0, 0.5, -1.0], "float32"))
HALF = F.sigmoid(ROWS)
LABEL = paddle.to_tensor([[1], [0], [3]])

CASES = {
    "matmul": ((ROWS, ROWS, False, True), ROWS @ ROWS.T),
    "scale": ((ROWS, 2.0, 1.0, True), ROWS * 2 + 1),
    "transpose": ((ROWS, [1, 0]), ROWS.T),
    "relu": ((ROWS,), F.relu(ROWS)),
    "full": (([2], 3.0, "float32"), paddle.full([2], 3.0, "float32")),
    "slice": ((ROWS, [0, 1], [0, 1], [1, 3], [1, 1], [0]), ROWS[0, 1:3]),
    "conv2d": ((X, W, [1, 1], [1, 1], "EXPLICIT", [1, 1], 1, "NCHW"), F.conv2d(X, W, padding=1)),
    "depthwise_conv2d": ((X, W[:, :1], 1, 0, "VALID", 4, 1, "NCHW"), F.conv2d(X, W[:, :1], groups=4)),
    "pool2d": ((X, [2, 2], [2, 2], [0, 0], False, True, "NCHW", "avg", False, False), F.avg_pool2d(X, 2)),
    "bilinear_interp": (
        (X, None, None, None, "NCHW", -1, 3, 4, [], "bilinear", False, 0), F.interpolate(X, [3, 4], mode="bilinear"),
    ),
    "group_norm": ((X, SCALE, SCALE, 1e-5, 2, "NCHW"), F.group_norm(X, 2, 1e-5, SCALE, SCALE)),
    "instance_norm": ((X, SCALE, None, 1e-5), F.instance_norm(X, weight=SCALE)),
    "huber_loss": ((ROWS, ROWS * 0, 0.5), F.smooth_l1_loss(ROWS, ROWS * 0, "none", 0.5)),
    "kldiv_loss": ((ROWS, F.softmax(ROWS), "sum", False), F.kl_div(ROWS, F.softmax(ROWS), "sum")),
    "bce_loss": ((HALF, HALF), F.binary_cross_entropy(HALF, HALF, reduction="none")),
    "logsumexp": ((ROWS, [1], False, False), paddle.logsumexp(ROWS, 1)),
    "p_norm": ((ROWS, 2.0, 1, 1e-12, True, False), paddle.norm(ROWS, 2, 1, True)),
    "frobenius_norm": ((ROWS, [0, 1], False, True), paddle.norm(ROWS)),
    "squared_l2_norm": ((ROWS,), (ROWS * ROWS).sum().reshape([1])),
    "argmax": ((ROWS, 0, False, True, "int64"), paddle.argmax(ROWS)),
    "argmin": ((ROWS, 1, True, False, "int32"), paddle.argmin(ROWS, 1, True, "int32")),
    "prod": ((ROWS, [0], True, False), paddle.prod(ROWS, 0, True)),
    "split_with_num": ((ROWS, 2, 1), paddle.split(ROWS, 2, 1)),
    "tril_triu": ((ROWS, 0, False), paddle.triu(ROWS)),
    "pad3d": (
        (X[None], [1, 0, 0, 0, 0, 1], "constant", 2.0, "NCDHW"),
        F.pad(X[None], [1, 0, 0, 0, 0, 1], value=2.0, data_format="NCDHW"),
    ),
    "full_batch_size_like": ((ROWS, [1, 2], "float32", 1.5, 0, 0), paddle.full([3, 2], 1.5)),
    "einsum": (([ROWS, ROWS], "ij,kj->ik"), [ROWS @ ROWS.T]),
    "mean_all": ((ROWS,), ROWS.mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_its_function(name):
    arguments, wanted = CASES[name]
    found = getattr(_C_ops, name)(*arguments)
    pairs = zip(found, wanted, strict=False) if isinstance(wanted, list) else [(found, wanted)]
    for f, w in pairs:
        assert f.dtype == w.dtype
        np.testing.assert_allclose(f.numpy(), w.numpy(), rtol=1e-6)


def test_operators_that_return_more():
    probabilities, loss = _C_ops.cross_entropy_with_softmax(ROWS, LABEL, False, True, True, -100, -1)
    np.testing.assert_allclose(probabilities.numpy(), F.softmax(ROWS).numpy(), rtol=1e-6)
    wanted = -np.log(probabilities.numpy()[np.arange(3), LABEL.numpy()[:, 0]])[:, None]
    np.testing.assert_allclose(loss.numpy(), wanted, rtol=1e-5)
    out, mean, variance = _C_ops.layer_norm(ROWS, SCALE, None, 1e-5, 1)
    np.testing.assert_allclose(out.numpy(), F.layer_norm(ROWS, 4, SCALE).numpy(), rtol=1e-6)
    np.testing.assert_allclose(mean.numpy(), ROWS.numpy().mean(1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(variance.numpy(), ROWS.numpy().var(1), rtol=1e-5)
    values, places = _C_ops.argsort(ROWS, 1, True)
    assert values.tolist() == (-np.sort(-ROWS.numpy(), 1)).tolist()
    assert places.tolist() == np.argsort(-ROWS.numpy(), 1).tolist()


def test_running_sums():
    x = paddle.to_tensor([1.0, 2.0, 4.0])
    assert _C_ops.cumsum(x, 0, False, True, False).tolist() == [0.0, 1.0, 3.0]
    assert _C_ops.cumsum(x, 0, True, False, True).tolist() == [7.0, 6.0, 4.0]


def test_what_is_dropped_is_what_the_mask_says():
    x = paddle.ones([100])
    out, mask = _C_ops.dropout(x, None, 0.5, False, "upscale_in_train", 0, False)
    np.testing.assert_allclose(out.numpy(), mask.numpy() * 2.0)
    assert 0 < mask.numpy().sum() < 100
    assert _C_ops.dropout(x, None, 0.5, True, "downgrade_in_infer")[0].tolist() == [0.5] * 100


def test_sure_losses():
    label = paddle.to_tensor([[1.0, 0.0, -100.0, 1.0]] * 3)
    found = _C_ops.sigmoid_cross_entropy_with_logits(ROWS, label, None, True, -100).numpy()
    x, y = ROWS.numpy(), label.numpy()
    wanted = (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))) * (y != -100) / 9
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_an_unknown_operator_is_near_another():
    with pytest.raises(AttributeError, match="did you mean 'matmul'"):
        _ = _C_ops.matmull
    assert paddle._C_ops.add_ is paddle.add_
