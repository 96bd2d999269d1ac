"""Random tensors follow their laws, keep the shape and dtype that are asked for, and repeat with the seed."""

import numpy as np
import pytest
import scipy.stats as stats

import dy2st as paddle
from dy2st.nn import functional as F

N = [60, 50]
LIKE = paddle.zeros(N, "float64")
CONTINUOUS = {
    "rand": (lambda: paddle.rand(N), stats.uniform()),
    "uniform": (lambda: paddle.uniform(N, min=-2.0, max=3.0), stats.uniform(-2, 5)),
    "uniform seed": (lambda: paddle.uniform(N, "float64", 0.0, 2.0, 7), stats.uniform(0, 2)),
    "randn": (lambda: paddle.randn(N), stats.norm()),
    "standard_normal": (lambda: paddle.standard_normal(N, "float64"), stats.norm()),
    "normal": (lambda: paddle.normal(2.0, 0.5, N), stats.norm(2, 0.5)),
    "normal of tensors": (lambda: paddle.normal(LIKE + 2.0, LIKE + 0.5), stats.norm(2, 0.5)),
    "log_normal": (lambda: paddle.log_normal(0.5, 0.25, N), stats.lognorm(0.25, scale=np.exp(0.5))),
    "rand_like": (lambda: paddle.rand_like(LIKE), stats.uniform()),
    "randn_like": (lambda: paddle.randn_like(LIKE, "float32"), stats.norm()),
    "uniform_": (lambda: LIKE.clone().uniform_(-1.0, 4.0), stats.uniform(-1, 5)),
    "normal_": (lambda: LIKE.clone().normal_(1.0, 3.0), stats.norm(1, 3)),
    "log_normal_": (lambda: LIKE.clone().log_normal_(0.5, 0.25), stats.lognorm(0.25, scale=np.exp(0.5))),
    "cauchy_": (lambda: LIKE.clone().cauchy_(1.0, 2.0), stats.cauchy(1, 2)),
    "geometric_": (lambda: LIKE.clone().geometric_(0.3), stats.expon(scale=-1 / np.log(0.7))),
    "exponential_": (lambda: LIKE.clone().exponential_(2.0), stats.expon(scale=0.5)),
}  # fmt: skip


@pytest.mark.proves(
    "rand uniform randn standard_normal normal log_normal rand_like randn_like Tensor.uniform_ Tensor.normal_ "
    "normal_ Tensor.exponential_ log_normal_ Tensor.log_normal_ cauchy_ Tensor.cauchy_ geometric_ Tensor.geometric_"
)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_follow_their_law_and_repeat_with_the_seed(name):
    draw, law = CONTINUOUS[name]
    paddle.seed(5)
    first = draw()
    assert first.shape == N
    assert stats.kstest(first.numpy().ravel(), law.cdf).pvalue > 1e-4
    paddle.seed(5)
    np.testing.assert_array_equal(draw().numpy(), first.numpy())


@pytest.mark.proves("randint randint_like")
def test_integers_fill_their_range():
    for draw, low, high, dtype in (
        (lambda: paddle.randint(3, 8, N), 3, 8, "int64"),
        (lambda: paddle.randint(5, shape=N, dtype="int32"), 0, 5, "int32"),
        (lambda: paddle.randint_like(LIKE, 2, 6), 2, 6, "float64"),
        (lambda: paddle.randint_like(LIKE, 4, dtype="int64"), 0, 4, "int64"),
    ):
        found = draw()
        assert (found.shape, found.dtype) == (N, dtype)
        counts = np.bincount(found.numpy().astype(int).ravel(), minlength=high)
        assert counts[:low].sum() == 0
        assert stats.chisquare(counts[low:]).pvalue > 1e-4


@pytest.mark.proves("randperm")
def test_a_permutation_has_each_number_once():
    found = paddle.randperm(50, "int32")
    assert found.dtype == "int32"
    assert sorted(found.tolist()) == list(range(50))
    assert found.tolist() != list(range(50))


@pytest.mark.proves("bernoulli Tensor.bernoulli_ bernoulli_")
def test_bits_have_their_probability():
    chances = paddle.to_tensor(np.tile([0.1, 0.5, 0.9], (3000, 1)))
    np.testing.assert_allclose(paddle.bernoulli(chances).mean(0).numpy(), [0.1, 0.5, 0.9], atol=0.04)
    assert paddle.bernoulli(LIKE, p=0.3).mean().item() == pytest.approx(0.3, abs=0.04)
    assert LIKE.clone().bernoulli_(0.7).mean().item() == pytest.approx(0.7, abs=0.04)
    assert set(LIKE.clone().bernoulli_().unique().tolist()) == {0.0, 1.0}


@pytest.mark.proves("multinomial Tensor.multinomial")
def test_indices_are_drawn_by_their_weights():
    weights = paddle.to_tensor([1.0, 0.0, 3.0])
    found = paddle.multinomial(weights, 4000, replacement=True).numpy()
    np.testing.assert_allclose(np.bincount(found, minlength=3) / 4000, [0.25, 0.0, 0.75], atol=0.03)
    rows = weights.expand([40, 3]).multinomial(2)
    assert all(sorted(row) == [0, 2] for row in rows.tolist())


@pytest.mark.proves("nn.functional.dropout nn.Dropout")
def test_dropout_leaves_out_and_scales():
    x = paddle.ones([100, 80], "float64")
    found = F.dropout(x, 0.25).numpy()
    assert set(np.unique(found)) == {0.0, 1 / 0.75}
    assert np.mean(found == 0) == pytest.approx(0.25, abs=0.03)
    assert set(np.unique(F.dropout(x, 0.25, mode="downscale_in_infer").numpy())) == {0.0, 1.0}
    np.testing.assert_array_equal(F.dropout(x, 0.25, training=False).numpy(), x.numpy())
    np.testing.assert_allclose(F.dropout(x, 0.25, training=False, mode="downscale_in_infer").numpy(), 0.75)
    rows = F.dropout(x, 0.5, axis=0).numpy()
    assert all(len(set(row)) == 1 for row in rows)
    assert len(set(rows[:, 0])) == 2
    np.testing.assert_array_equal(F.dropout(x, 1.0).numpy(), 0 * x.numpy())
    layer = paddle.nn.Dropout(0.25, axis=1, mode="downscale_in_infer")
    assert all(len(set(column)) == 1 for column in layer(x).numpy().T)
    layer.eval()
    np.testing.assert_allclose(layer(x).numpy(), 0.75)


@pytest.mark.proves("nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d nn.Dropout2D nn.Dropout3D")
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_dropout_of_images_leaves_out_whole_channels(rank):
    x = paddle.ones([20, 30, *(3,) * rank])
    function = getattr(F, f"dropout{rank}d")
    made = [function(x, 0.25)] + ([getattr(paddle.nn, f"Dropout{rank}D")(0.25)(x)] if rank > 1 else [])
    for found in made:
        flat = found.numpy().reshape(20, 30, -1)
        assert (flat == flat[..., :1]).all()
        assert np.mean(flat == 0) == pytest.approx(0.25, abs=0.08)
    np.testing.assert_array_equal(function(x, 0.25, training=False).numpy(), x.numpy())
    if rank > 1:
        last = np.moveaxis(function(x, 0.5, data_format="NHWC" if rank == 2 else "NDHWC").numpy(), -1, 1)
        assert all(len(np.unique(last[b, c])) == 1 for b in range(20) for c in range(3))


@pytest.mark.proves("nn.functional.alpha_dropout nn.AlphaDropout")
@pytest.mark.proves("nn.functional.feature_alpha_dropout nn.FeatureAlphaDropout")
@pytest.mark.parametrize("kind", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(kind):
    x = paddle.randn([200, 60, 3], "float64")
    layer = getattr(paddle.nn, {"alpha_dropout": "AlphaDropout"}.get(kind, "FeatureAlphaDropout"))(0.2)
    for found in (getattr(F, kind)(x, 0.2), layer(x)):
        assert found.numpy().mean() == pytest.approx(0, abs=0.05)
        assert found.numpy().std() == pytest.approx(1, abs=0.06)
        values, counts = np.unique(found.numpy(), return_counts=True)
        dropped = found.numpy() == values[counts.argmax()]
        assert np.mean(dropped) == pytest.approx(0.2, abs=0.03)
        assert kind == "alpha_dropout" or (dropped == dropped[..., :1]).all()
    np.testing.assert_array_equal(getattr(F, kind)(x, 0.2, training=False).numpy(), x.numpy())


@pytest.mark.proves("nn.functional.gumbel_softmax")
def test_gumbel_softmax_draws_classes():
    logits = paddle.to_tensor(np.tile(np.log([0.2, 0.3, 0.5]), (3000, 1)), stop_gradient=False)
    soft = F.gumbel_softmax(logits, temperature=0.5)
    np.testing.assert_allclose(soft.sum(1).numpy(), 1, rtol=1e-6)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(hard.numpy().round(6))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0).numpy(), [0.2, 0.3, 0.5], atol=0.04)
    hard.square().sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0
    np.testing.assert_allclose(F.gumbel_softmax(logits.t(), axis=0).sum(0).numpy(), 1, rtol=1e-6)
