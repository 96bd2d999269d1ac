"""Functions of `fluid.layers` against NumPy."""

import numpy as np
import pytest

import dy2st as paddle
import dy2st.fluid as fluid

L = fluid.layers
F32 = np.float32
X = np.arange(24, dtype=F32).reshape(2, 3, 4) - 11.5
ROW = np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]], F32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


CASES = {
    "elementwise_add": (lambda: L.elementwise_add(X, X), X + X),
    "elementwise_add axis": (lambda: L.elementwise_add(X, np.arange(3, dtype=F32), axis=1), X + np.arange(3)[:, None]),
    "elementwise_sub act": (lambda: L.elementwise_sub(X, X[0], act="relu"), np.maximum(X - X[0], 0)),
    "elementwise_mul": (lambda: L.elementwise_mul(X, X), X * X),
    "elementwise_div": (lambda: L.elementwise_div(X, X), X / X),
    "elementwise_div of ints": (lambda: L.elementwise_div(np.array([7, -7, 6]), np.array([2, 2, -3])), [3, -3, -2]),
    "elementwise_max": (lambda: L.elementwise_max(X, -X), np.abs(X)),
    "elementwise_min": (lambda: L.elementwise_min(X, -X), -np.abs(X)),
    "elementwise_pow": (lambda: L.elementwise_pow(ROW, ROW * 0 + 2), ROW**2),
    "elementwise_mod": (lambda: L.elementwise_mod(np.array([7, 8]), np.array([4, 3])), [3, 2]),
    "elementwise_floordiv": (lambda: L.elementwise_floordiv(np.array([7, 8]), np.array([4, 3])), [1, 2]),
    "scale": (lambda: L.scale(X, 2.0, 1.0, bias_after_scale=False), 2 * (X + 1)),
    "pow": (lambda: L.pow(X, 2.0), X**2),
    "leaky_relu": (lambda: L.leaky_relu(X), np.where(X > 0, X, 0.02 * X)),
    "hard_sigmoid": (lambda: L.hard_sigmoid(X), np.clip(0.2 * X + 0.5, 0, 1)),
    "sums": (lambda: L.sums([paddle.to_tensor(X), paddle.to_tensor(X)]), 2 * X),
    "mean": (lambda: L.mean(ROW), ROW.mean()),
    "clip_by_norm": (lambda: L.clip_by_norm(np.array([3.0, 4.0], F32), 1.0), [0.6, 0.8]),
    "has_nan": (lambda: L.has_nan(np.array([1.0, np.nan])), True),
    "has_inf": (lambda: L.has_inf(X), False),
    "reduce_sum": (lambda: L.reduce_sum(X, dim=[0, 1], keep_dim=True), X.sum((0, 1), keepdims=True)),
    "reduce_mean": (lambda: L.reduce_mean(X), X.mean()),
    "reduce_max": (lambda: L.reduce_max(X, 1), X.max(1)),
    "reduce_min": (lambda: L.reduce_min(X, -1), X.min(-1)),
    "reduce_prod": (lambda: L.reduce_prod(ROW, 0), ROW.prod(0)),
    "reduce_all": (lambda: L.reduce_all(X > 0), False),
    "reduce_any": (lambda: L.reduce_any(X > 0, 2), (X > 0).any(2)),
    "argmax": (lambda: L.argmax(ROW), ROW.argmax(0)),
    "argmin": (lambda: L.argmin(ROW, 1), ROW.argmin(1)),
    "argsort": (lambda: L.argsort(ROW, descending=True)[0], -np.sort(-ROW)),
    "argsort places": (lambda: L.argsort(ROW)[1], ROW.argsort()),
    "topk": (lambda: L.topk(ROW, 2)[0], [[5.0, 2.0], [7.0, 4.0]]),
    "accuracy": (lambda: L.accuracy(ROW, np.array([[1], [1]])), 0.5),
    "softmax": (lambda: L.softmax(ROW), softmax(ROW)),
    "cross_entropy": (lambda: L.cross_entropy(softmax(ROW), np.array([[1], [2]])),
                      -np.log(softmax(ROW)[[0, 1], [1, 2]])[:, None]),
    "softmax_with_cross_entropy": (lambda: L.softmax_with_cross_entropy(ROW, np.array([[1], [2]])),
                                   -np.log(softmax(ROW)[[0, 1], [1, 2]])[:, None]),
    "sigmoid_cross_entropy_with_logits": (
        lambda: L.sigmoid_cross_entropy_with_logits(np.array([0.0, 2.0, 5.0], F32), np.array([1.0, 0.0, -100.0], F32),
                                                    normalize=True),
        np.array([np.log(2), 2 + np.log1p(np.exp(-2)), 0]) / 2),
    "mse_loss": (lambda: L.mse_loss(ROW, ROW + 2), 4.0),
    "smooth_l1": (lambda: L.smooth_l1(np.array([[0.5, 3.0]], F32), np.zeros((1, 2), F32)), [[0.125 + 2.5]]),
    "smooth_l1 sigma": (lambda: L.smooth_l1(np.array([[0.1, 3.0]], F32), np.zeros((1, 2), F32), sigma=2.0),
                        [[0.5 * 0.04 + 3 - 0.125]]),
    "one_hot": (lambda: L.one_hot(np.array([[1], [0]]), 3), [[0, 1, 0], [1, 0, 0]]),
    "fluid.one_hot": (lambda: fluid.one_hot(np.array([[1], [0]]), 3), [[[0, 1, 0]], [[1, 0, 0]]]),
    "l2_normalize": (lambda: L.l2_normalize(ROW, 1), ROW / np.sqrt((ROW**2).sum(1, keepdims=True))),
    "reshape": (lambda: L.reshape(X, [0, -1]), X.reshape(2, 12)),
    "squeeze": (lambda: L.squeeze(X[:1, :1], [0]), X[0, :1]),
    "squeeze all": (lambda: L.squeeze(X[:1, :1], []), X[0, 0]),
    "unsqueeze": (lambda: L.unsqueeze(X, [0]), X[None]),
    "split": (lambda: L.split(X, 2)[1], X[..., 2:]),
    "expand": (lambda: L.expand(ROW, [2, 1]), np.tile(ROW, (2, 1))),
    "flatten": (lambda: L.flatten(X, 2), X.reshape(6, 4)),
    "flatten 0": (lambda: L.flatten(X, 0), X.reshape(1, 24)),
    "matmul": (lambda: L.matmul(ROW, ROW, transpose_y=True, alpha=2.0), 2 * ROW @ ROW.T),
    "mul": (lambda: L.mul(X, np.ones((12, 5), F32)), X.reshape(2, 12) @ np.ones((12, 5))),
    "mul by shape": (lambda: L.mul(X, np.ones((2, 2, 3), F32), 2, 2),
                     (X.reshape(6, 4) @ np.ones((4, 3))).reshape(2, 3, 3)),
    "pad": (lambda: L.pad(ROW, [0, 1, 2, 0], 9.0), np.pad(ROW, [(0, 1), (2, 0)], constant_values=9)),
    "slice": (lambda: L.slice(X, [1, 2], [1, 0], [3, -1]), X[:, 1:3, :-1]),
    "gather": (lambda: L.gather(ROW, np.array([1, 1])), ROW[[1, 1]]),
    "scatter": (lambda: L.scatter(ROW, np.array([1]), np.zeros((1, 3), F32)), [[1, 5, 2], [0, 0, 0]]),
    "where": (lambda: L.where(ROW > 4), [[0, 1], [1, 0]]),
    "fill_constant": (lambda: L.fill_constant([2], "int32", 3), [3, 3]),
    "fill_constant_batch_size_like": (lambda: L.fill_constant_batch_size_like(X, [-1, 2], "float32", 1),
                                      np.ones((2, 2))),
    "zeros": (lambda: L.zeros([2], "int64"), [0, 0]),
    "ones_like": (lambda: L.ones_like(ROW), np.ones_like(ROW)),
    "zeros_like": (lambda: L.zeros_like(ROW), np.zeros_like(ROW)),
    "range": (lambda: L.range(1, 7, 2, "int64"), [1, 3, 5]),
    "assign": (lambda: L.assign(ROW), ROW),
    "pool2d": (lambda: L.pool2d(X[None], 2),
               np.maximum.reduce([X[None][:, :, i:2 + i, j:3 + j] for i in (0, 1) for j in (0, 1)])),
    "pool3d": (lambda: L.pool3d(X[None, None], 2, "avg"),
               np.mean([X[None, None][:, :, i:1 + i, j:2 + j, k:3 + k]
                        for i in (0, 1) for j in (0, 1) for k in (0, 1)], 0)),
    "pool2d NHWC": (lambda: L.pool2d(X[None], global_pooling=True, data_format="NHWC"),
                    X[None].max((1, 2), keepdims=True)),
    "sum": (lambda: L.sum([paddle.to_tensor(ROW)] * 3), 3 * ROW),
    "concat": (lambda: L.concat([paddle.to_tensor(ROW)] * 2), np.concatenate([ROW, ROW])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    call, want = CASES[name]
    got = call().numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_functions_become_one_program():
    def model(x):
        h = L.relu(L.elementwise_mul(x, x))
        if L.reduce_mean(h) > 1.0:
            h = L.scale(h, 0.5)
        return L.reduce_sum(h, dim=1)

    static = paddle.jit.to_static(model, full_graph=True)
    for factor in (0.1, 3.0):
        x = paddle.to_tensor(ROW * factor)
        np.testing.assert_allclose(static(x).numpy(), model(x).numpy(), rtol=1e-6)
    assert len(static.program_cache) == 1


def test_random_numbers():
    assert L.gaussian_random([100], 5.0, 0.1).numpy().mean() == pytest.approx(5.0, abs=0.1)
    one, two = (L.uniform_random([5], seed=3).numpy() for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_fill_constant_and_assign_write_into_a_tensor():
    out = paddle.zeros([2])
    L.fill_constant([2], "float32", 4.0, out=out)
    assert out.tolist() == [4.0, 4.0]
    L.assign(np.array([1.0, 2.0], F32), out)
    assert out.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: L.elementwise_add(X, np.ones((3, 4), F32), axis=2), "axis 2 leaves no room"),
        (lambda: L.elementwise_add(X, X, act="jump"), "no activation is named 'jump'"),
        (lambda: L.one_hot(np.array([1, 0]), 3), "the ids need a last axis of 1"),
        (lambda: L.pad(ROW, [1, 1]), "2 axes need 4 paddings, not 2"),
        (lambda: L.flatten(ROW, 3), "axis must be from 0 to 2, not 3"),
        (lambda: L.pool2d(X[None], 2, "sum"), "pool_type must be 'max' or 'avg'"),
        (lambda: L.pool2d(X[None]), "pool_size must be given"),
        (lambda: fluid.embedding(np.array([1]), [3, 2], param_attr=False), "would leave no table"),
    ],
)
def test_bad_arguments(act, text):
    with pytest.raises(ValueError, match=text):
        act()


@pytest.mark.parametrize("module", [fluid, fluid.dygraph, fluid.initializer, fluid.optimizer, fluid.core])
def test_every_name_is_there(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
