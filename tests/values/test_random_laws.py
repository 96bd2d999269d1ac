"""Draws of further laws: their distributions, their repetition with the seed, the same in Programs."""

import numpy as np
import pytest
import scipy.stats as stats

import dy2st as paddle

N = 4000
MEANS, SHAPES = [0.3, 4.0, 60.0, 900.0], [0.2, 1.0, 3.5, 80.0]


def drawn(function, *arguments):
    """Return what a function draws, the same with the same seed in a Program."""
    paddle.seed(7)
    eager = function(*arguments)
    paddle.seed(7)
    made = paddle.jit.to_static(function, full_graph=True)(*arguments)
    np.testing.assert_array_equal(eager.numpy(), made.numpy())
    return eager


@pytest.mark.proves("standard_gamma")
def test_gamma_numbers():
    found = drawn(paddle.standard_gamma, paddle.to_tensor(SHAPES, "float64").expand([N, 4]))
    for column, shape in zip(found.numpy().T, SHAPES, strict=True):
        assert stats.kstest(column, stats.gamma(shape).cdf).pvalue > 1e-4


@pytest.mark.proves("poisson")
def test_poisson_numbers():
    found = drawn(paddle.poisson, paddle.to_tensor(MEANS).expand([N, 4]))
    assert found.dtype == "float32"
    for column, mean in zip(found.numpy().T, MEANS, strict=True):
        law = stats.poisson(mean)
        edges = np.unique(law.ppf([0.1, 0.25, 0.5, 0.75, 0.9]))
        counts = np.bincount(np.searchsorted(edges, column), minlength=len(edges) + 1)
        assert stats.chisquare(counts, N * np.diff([0, *law.cdf(edges), 1])).pvalue > 1e-4
    assert paddle.poisson(paddle.to_tensor([0.0])).tolist() == [0.0]


@pytest.mark.proves("binomial")
def test_binomial_numbers():
    counts = paddle.to_tensor([1, 20, 100]).expand([N, 3])
    found = drawn(paddle.binomial, counts, paddle.to_tensor([0.3, 0.5, 0.05]))
    assert found.dtype == "int64"
    np.testing.assert_allclose(found.numpy().mean(0), [0.3, 10, 5], rtol=0.1)
    np.testing.assert_allclose(found.numpy().var(0), [0.21, 5, 4.75], rtol=0.15)
    assert paddle.binomial(paddle.to_tensor([3, 0, 9]), paddle.to_tensor(1.0)).tolist() == [3, 0, 9]


@pytest.mark.proves("Tensor.random_")
def test_whole_numbers_in_place():
    x = paddle.zeros([N])
    assert x.random_(2, 5) is x
    assert set(x.tolist()) == {2.0, 3.0, 4.0}
    assert set(paddle.zeros([N], "int64").random_(3).tolist()) == {0, 1, 2}
    assert paddle.zeros([N]).random_().numpy().max() > 2**23
    assert set(paddle.zeros([N], "bool").random_().tolist()) == {True, False}
    assert paddle.zeros([N], "uint8").random_().numpy().max() > 200
    with pytest.raises(ValueError, match="from_ must be below to, not 5 and 5"):
        x.random_(5, 5)
    with pytest.raises(ValueError, match="draws from the default generator"):
        x.random_(2, generator=paddle.Generator())
    drawn(lambda x: paddle.clone(x).random_(2, 9), x)


@pytest.mark.proves("Tensor.top_p_sampling")
def test_the_likeliest_classes():
    odds = paddle.to_tensor([[0.1, 0.5, 0.15, 0.25]]).expand([N, 4])
    paddle.seed(3)
    value, place = odds.top_p_sampling(paddle.full([N], 0.7))
    assert value.shape == place.shape == [N, 1]
    counts = np.bincount(place.numpy().ravel(), minlength=4)
    assert (counts[0], counts[2]) == (0, 0)
    assert counts[1] / N == pytest.approx(2 / 3, abs=0.04)
    np.testing.assert_array_equal(paddle.take_along_axis(odds, place, 1).numpy(), value.numpy())
    assert set(odds.top_p_sampling(paddle.full([N], 0.0))[1].flatten().tolist()) == {1}
    assert set(odds.top_p_sampling(paddle.ones([N]), paddle.full([N], 0.2))[1].flatten().tolist()) == {1, 3}
    top = odds[:2].top_p_sampling(paddle.full([2], 0.7), k=2, return_top=True)
    assert (top[2].shape, top[3].tolist()) == ([2, 2], [[1, 3]] * 2)
    every = odds.top_p_sampling(paddle.full([N], 0.7), mode="non-truncated")[1]
    assert set(every.flatten().tolist()) == {0, 1, 2, 3}
    again = [odds.top_p_sampling(paddle.ones([N]), seed=5)[1].tolist() for _ in range(2)]
    assert again[0] == again[1]
    with pytest.raises(ValueError, match="rows have no seeds"):
        odds.top_p_sampling(paddle.ones([N]), topp_seed=paddle.ones([N]))
    drawn(lambda x, p: x.top_p_sampling(p)[1], odds, paddle.full([N], 0.9))
