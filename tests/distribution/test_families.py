"""The distributions made of gamma numbers, of counts and of vectors against SciPy, eagerly and in Programs."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special as special
from scipy import stats

import dy2st as paddle
from dy2st import distribution as D

A, B = np.array([0.5, 1.5, 4.0]), np.array([1.0, 0.5, 2.5])
P = np.array([0.2, 0.5, 0.7])
SHARES, COUNTS = np.array([[0.1, 0.3, 0.8], [0.6, 0.2, 0.35]]), np.array([[0.0, 1.0, 4.0], [2.0, 3.0, 0.0]])
POSITIVE, REALS = np.array([[0.2, 1.3, 2.0], [0.1, 1.0, 3.7]]), np.array([[-1.0, 0.3, 2.0], [0.1, 1.0, 1.7]])
CASES: dict[str, tuple[tuple[Any, ...], Any, np.ndarray]] = {
    "Gamma": ((A, B), stats.gamma(A, scale=1 / B), POSITIVE),
    "Chi2": ((A * 2,), stats.chi2(A * 2), POSITIVE),
    "Beta": ((A, B), stats.beta(A, B), SHARES),
    "StudentT": ((A + 2, B, A), stats.t(A + 2, B, A), REALS),
    "Poisson": ((A,), stats.poisson(A), COUNTS),
    "Binomial": ((np.array([4.0, 5.0, 9.0]), P), stats.binom([4, 5, 9], P), COUNTS),
}
COVARIANCE = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.2], [0.1, -0.2, 0.5]])


def made(name: str) -> Any:
    return getattr(D, name)(*map(paddle.to_tensor, CASES[name][0]))


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_densities_entropies_and_moments_are_scipys(name: str, static: bool) -> None:
    parameters, scipys, values = CASES[name]

    def ask(x: Any, *given: Any) -> Any:
        one = getattr(D, name)(*given)
        return one.log_prob(x), one.prob(x), one.entropy(), one.mean, one.variance, one.stddev

    run = paddle.jit.to_static(ask, full_graph=True) if static else ask
    found = [t.numpy() for t in run(*map(paddle.to_tensor, (values, *parameters)))]
    logs = (scipys.logpmf if hasattr(scipys, "logpmf") and name in ("Poisson", "Binomial") else scipys.logpdf)(values)
    want = [logs, np.exp(logs), scipys.entropy(), scipys.mean(), scipys.var(), scipys.std()]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["Gamma", "Chi2", "Beta", "StudentT"])
def test_draws_have_the_distribution(name: str) -> None:
    paddle.seed(7)
    one, scipys = made(name), CASES[name][1]
    drawn = one.sample([3000])
    assert drawn.stop_gradient
    levels = scipys.cdf(drawn.numpy())
    assert levels.shape == (3000, 3)
    assert all(stats.kstest(levels[:, i], "uniform").pvalue > 1e-4 for i in range(3))


@pytest.mark.parametrize("name", ["Poisson", "Binomial"])
def test_counts_have_the_distribution(name: str) -> None:
    paddle.seed(7)
    drawn = made(name).sample([4000]).numpy()
    for count in range(4):
        np.testing.assert_allclose((drawn == count).mean(0), CASES[name][1].pmf(count), atol=0.03)


@pytest.mark.parametrize("name", [*CASES, "Dirichlet", "Multinomial", "MultivariateNormal", "ContinuousBernoulli"])
def test_a_program_draws_what_eager_code_draws(name: str) -> None:
    given = {
        "Dirichlet": (POSITIVE,), "Multinomial": (P,), "ContinuousBernoulli": (P,),
        "MultivariateNormal": (REALS, COVARIANCE),
    }  # fmt: skip
    tensors = [paddle.to_tensor(v) for v in (given[name] if name in given else CASES[name][0])]

    def draw(*parameters: Any) -> Any:
        one = D.Multinomial(6, *parameters) if name == "Multinomial" else getattr(D, name)(*parameters)
        return one.sample([4]), one.sample()

    paddle.seed(3)
    want = draw(*tensors)
    paddle.seed(3)
    got = paddle.jit.to_static(draw, full_graph=True)(*tensors)
    for one, other in zip(got, want, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


@pytest.mark.parametrize("static", [False, True])
def test_draws_are_differentiable_by_all_parameters(static: bool) -> None:
    """The derivative of a draw at a fixed level of its distribution function, by finite differences of SciPy's."""

    def draw(a: Any, b: Any) -> Any:
        drawn = D.Gamma(a, b).rsample([5])
        return (drawn, *paddle.grad([drawn.sum()], [a, b], create_graph=True))

    a, b = (paddle.to_tensor(v, stop_gradient=False) for v in (A, B))
    drawn, by_a, by_b = (paddle.jit.to_static(draw, full_graph=True) if static else draw)(a, b)
    levels = stats.gamma(A, scale=1 / B).cdf(drawn.numpy())
    h = 1e-5
    want = (special.gammaincinv(A + h, levels) - special.gammaincinv(A - h, levels)) / (2 * h * B)
    np.testing.assert_allclose(by_a.numpy(), want.sum(0), rtol=1e-5)
    np.testing.assert_allclose(by_b.numpy(), (-drawn.numpy() / B).sum(0), rtol=1e-6)
    second = paddle.grad([by_a.sum()], [a])[0].numpy()
    h = 1e-4
    bent = special.gammaincinv(A + h, levels) - 2 * drawn.numpy() * B + special.gammaincinv(A - h, levels)
    np.testing.assert_allclose(second, (bent / (h * h * B)).sum(0), rtol=1e-3)


@pytest.mark.parametrize("name", ["Beta", "StudentT", "Dirichlet"])
def test_means_of_draws_have_the_derivative_of_the_mean(name: str) -> None:
    paddle.seed(11)
    first = paddle.to_tensor(A[1:] + 2.0, stop_gradient=False)
    others = {"Beta": [paddle.to_tensor(B[1:])], "StudentT": [first, first], "Dirichlet": []}[name]
    one = getattr(D, name)(first, *others)
    weight = paddle.to_tensor([1.0, 0.0], dtype="float64") if name == "Dirichlet" else 1.0
    (found,) = paddle.grad([(one.rsample([20000]) * weight).mean(0).sum()], [first])
    (want,) = paddle.grad([(getattr(D, name)(first, *others).mean * weight).sum()], [first])
    np.testing.assert_allclose(found.numpy(), want.numpy(), atol=0.05)


def test_dirichlet_is_scipys() -> None:
    one, values = D.Dirichlet(paddle.to_tensor(POSITIVE)), np.array([[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]])
    scipys = [stats.dirichlet(row) for row in POSITIVE]
    assert (one.batch_shape, one.event_shape) == ((2,), (3,))
    want = [s.logpdf(v) for s, v in zip(scipys, values, strict=True)]
    np.testing.assert_allclose(one.log_prob(paddle.to_tensor(values)).numpy(), want, rtol=1e-6)
    for ask in ("entropy", "mean", "var"):
        found = getattr(one, {"var": "variance"}.get(ask, ask))
        found = found() if callable(found) else found
        np.testing.assert_allclose(found.numpy(), [getattr(s, ask)() for s in scipys], rtol=1e-6)
    drawn = one.sample([4000]).numpy()
    np.testing.assert_allclose(drawn.sum(-1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(drawn.mean(0), one.mean.numpy(), atol=0.03)


def test_multinomial_is_scipys() -> None:
    weights = np.array([[1.0, 3.0, 4.0], [2.0, 0.0, 6.0]])
    one, values = D.Multinomial(5, paddle.to_tensor(weights)), np.array([[1, 2, 2], [2, 0, 3]])
    chances = weights / weights.sum(1, keepdims=True)
    want = [stats.multinomial.logpmf(v, 5, p) for v, p in zip(values, chances, strict=True)]
    np.testing.assert_allclose(one.log_prob(paddle.to_tensor(values)).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(one.entropy().numpy(), [stats.multinomial.entropy(5, p) for p in chances], rtol=1e-6)
    np.testing.assert_allclose(one.mean.numpy(), 5 * chances)
    np.testing.assert_allclose(one.variance.numpy(), 5 * chances * (1 - chances))
    drawn = one.sample([2000, 2]).numpy()
    assert drawn.shape == (2000, 2, 2, 3)
    np.testing.assert_allclose(drawn.sum(-1), 5.0)
    np.testing.assert_allclose(drawn.mean((0, 1)), 5 * chances, atol=0.1)


@pytest.mark.parametrize("given", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal_is_scipys(given: str) -> None:
    matrix = {"covariance_matrix": COVARIANCE, "precision_matrix": np.linalg.inv(COVARIANCE),
              "scale_tril": np.linalg.cholesky(COVARIANCE)}[given]  # fmt: skip
    means = np.array([[0.5, 1.0, -1.0], [0.0, 2.0, 0.0]])
    one = D.MultivariateNormal(paddle.to_tensor(means), **{given: paddle.to_tensor(matrix)})
    assert (one.batch_shape, one.event_shape) == ((2,), (3,))
    want = [stats.multivariate_normal(m, COVARIANCE).logpdf(REALS) for m in means]
    found = one.log_prob(paddle.to_tensor(REALS[:, None])).numpy()
    np.testing.assert_allclose(found, np.stack(want, 1), rtol=1e-6)
    entropy = stats.multivariate_normal(means[0], COVARIANCE).entropy()
    np.testing.assert_allclose(one.entropy().numpy(), [entropy] * 2, rtol=1e-6)
    np.testing.assert_allclose(one.variance.numpy(), [np.diag(COVARIANCE)] * 2, rtol=1e-6)
    drawn = one.sample([20000]).numpy()
    np.testing.assert_allclose(np.cov(drawn[:, 0].T), COVARIANCE, atol=0.08)


def test_multivariate_normal_takes_one_matrix() -> None:
    with pytest.raises(ValueError, match=r"needs one of covariance_matrix, precision_matrix, scale_tril, not 0"):
        D.MultivariateNormal(paddle.zeros([2]))
    with pytest.raises(ValueError, match=r"scale_tril must be a matrix, or several, not 1-D"):
        D.MultivariateNormal(paddle.zeros([2]), scale_tril=paddle.ones([2]))


@pytest.mark.parametrize("p", [0.02, 0.4985, 0.4999, 0.5, 0.5015, 0.9])
def test_continuous_bernoulli_is_its_integrals(p: float) -> None:
    one, scale = D.ContinuousBernoulli(paddle.to_tensor([p], dtype="float64")), 2 * np.arctanh(1 - 2 * p)
    scale = 2.0 if p == 0.5 else scale / (1 - 2 * p)

    def density(x: float) -> float:
        return scale * p**x * (1 - p) ** (1 - x)

    moments = [scipy.integrate.quad(lambda x, k=k: x**k * density(x), 0, 1)[0] for k in (1, 2)]
    np.testing.assert_allclose(one.mean.item(), moments[0], rtol=1e-6)
    np.testing.assert_allclose(one.variance.item(), moments[1] - moments[0] ** 2, rtol=1e-6)
    x = paddle.to_tensor([0.0, 0.3, 1.0], dtype="float64")
    np.testing.assert_allclose(one.prob(x).numpy(), [density(v) for v in (0, 0.3, 1)], rtol=1e-6)
    np.testing.assert_allclose(one.cdf(x).numpy(), [0, scipy.integrate.quad(density, 0, 0.3)[0], 1], atol=1e-6)
    np.testing.assert_allclose(one.icdf(one.cdf(x)).numpy(), x.numpy(), atol=1e-6)
    entropy = -scipy.integrate.quad(lambda v: density(v) * np.log(density(v)), 0, 1)[0]
    np.testing.assert_allclose(one.entropy().item(), entropy, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.sample([20000]).mean().item(), moments[0], atol=0.02)


@pytest.mark.parametrize("name", ["Gamma", "Chi2", "Beta", "Poisson", "Binomial", "ContinuousBernoulli"])
def test_divergences_are_the_mean_difference_of_logarithms(name: str) -> None:
    parameters = (P,) if name == "ContinuousBernoulli" else CASES[name][0]
    p = getattr(D, name)(*map(paddle.to_tensor, parameters))
    q = getattr(D, name)(*[paddle.to_tensor(v if i == 0 and name == "Binomial" else v * 0.8)
                           for i, v in enumerate(parameters)])  # fmt: skip
    found = D.kl_divergence(p, q).numpy()

    def loss(x: Any) -> Any:
        logs, others = (d.log_prob(paddle.to_tensor(x)).numpy() for d in (p, q))
        return np.exp(logs) * (logs - others)

    if name in ("Poisson", "Binomial"):
        with np.errstate(invalid="ignore"):  # past the number of trials
            want = np.nansum(loss(np.arange(60.0 if name == "Poisson" else 10.0)[:, None]), 0)
        np.testing.assert_allclose(found, want, rtol=1e-6)
        return
    nodes, weights = np.polynomial.legendre.leggauss(600)
    s, weights = (nodes[:, None] + 1) / 2, weights[:, None] / 2
    if name in ("Beta", "ContinuousBernoulli"):  # stretched where densities are infinite
        level = np.sin(s * np.pi / 2) ** 2
        x, slope = (
            np.clip(np.sin(level * np.pi / 2) ** 2, 0, 1 - 1e-15),
            np.pi**2 / 4 * np.sin(s * np.pi) * np.sin(level * np.pi),
        )
    else:
        x, slope = 81 * s**8, 648 * s**7
    np.testing.assert_allclose(found, (weights * slope * loss(x)).sum(0), rtol=1e-5)


def test_divergences_of_vectors_are_the_mean_difference_of_logarithms() -> None:
    paddle.seed(5)
    pairs = [
        (D.Dirichlet(paddle.to_tensor(POSITIVE + 1)), D.Dirichlet(paddle.to_tensor(POSITIVE + 2))),
        (D.MultivariateNormal(paddle.to_tensor(REALS), paddle.to_tensor(COVARIANCE)),
         D.MultivariateNormal(paddle.to_tensor(REALS * 0.5), paddle.to_tensor(COVARIANCE * 2 + np.eye(3)))),
    ]  # fmt: skip
    for p, q in pairs:
        x = p.sample([100_000])
        want = (p.log_prob(x) - q.log_prob(x)).mean(0).numpy()
        np.testing.assert_allclose(p.kl_divergence(q).numpy(), want, rtol=0.05)


@pytest.mark.parametrize("name", ["Gamma", "Beta"])
def test_exponential_families_follow_from_their_normalisers(name: str) -> None:
    p = made(name)
    q = getattr(D, name)(*[paddle.to_tensor(v + 0.3) for v in CASES[name][0]])
    if name == "Beta":  # the carrier of Beta's statistics is 1 / (x (1 - x))
        assert D.ExponentialFamily.entropy(p).shape == [3]
    else:
        np.testing.assert_allclose(D.ExponentialFamily.entropy(p).numpy(), p.entropy().numpy(), rtol=1e-6)

    class Own(type(p)):  # a law of the user's own, with the rule of its family alone
        pass

    rule = D.base._RULES[D.ExponentialFamily, D.ExponentialFamily]
    np.testing.assert_allclose(rule(p, q).numpy(), p.kl_divergence(q).numpy(), rtol=1e-6)
    assert D.kl_divergence(Own(*map(paddle.to_tensor, CASES[name][0])), q).shape == [3]


def test_counts_that_cannot_be_have_the_probability_0() -> None:
    zero = D.Poisson(paddle.to_tensor([0.0]))
    assert zero.prob(paddle.to_tensor([0.0, 1.0])).tolist() == [1.0, 0.0]
    assert D.Binomial(3, paddle.to_tensor([0.0, 1.0])).prob(paddle.to_tensor([0.0, 3.0])).tolist() == [1.0, 1.0]
    assert D.StudentT(paddle.to_tensor([1.0, 2.0, 3.0]), 0.0, 1.0).variance.tolist()[1:] == [float("inf"), 3.0]
    assert np.isnan(D.StudentT(1.0, 0.0, 1.0).mean.item())


def test_numbers_take_the_dtype_of_the_tensors_beside_them() -> None:
    assert D.Gamma(2.0, paddle.to_tensor(1.0, dtype="float64")).mean.dtype == paddle.float64
    assert D.Poisson(2.0).batch_shape == (1,)
    assert D.Binomial(4, 0.5).batch_shape == ()


@pytest.mark.parametrize(("make", "text"), [
    (lambda: D.Multinomial(0, paddle.ones([2])), "total_count must be a positive int, not 0"),
    (lambda: D.Multinomial(3, paddle.to_tensor(1.0)), "needs an axis of classes"),
    (lambda: D.Dirichlet(paddle.to_tensor(1.0)), "needs a concentration of at least one axis"),
    (lambda: D.Independent(made("Gamma"), 2), "the rank must be from 1 to 1, not 2"),
])  # fmt: skip
def test_what_is_no_distribution_is_named(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


def test_independent_counts_axes_as_one_draw() -> None:
    base = D.Gamma(paddle.to_tensor(POSITIVE), paddle.to_tensor(POSITIVE))
    one = D.Independent(base, 1)
    assert (one.batch_shape, one.event_shape, one.sample([4]).shape) == ((2,), (3,), [4, 2, 3])
    x = paddle.to_tensor(POSITIVE * 2)
    np.testing.assert_allclose(one.log_prob(x).numpy(), base.log_prob(x).numpy().sum(-1), rtol=1e-6)
    np.testing.assert_allclose(one.entropy().numpy(), base.entropy().numpy().sum(-1), rtol=1e-6)
    np.testing.assert_allclose(one.mean.numpy(), base.mean.numpy())


def test_what_leaves_a_program_is_the_distribution() -> None:
    def make(a: Any) -> Any:
        return D.Beta(a, a + 1.0), D.Independent(D.Gamma(a, a), 1), D.TransformedDistribution(
            D.Normal(a, a), [D.AffineTransform(a, a), D.ExpTransform()])  # fmt: skip

    a = paddle.to_tensor(A)
    for one, other in zip(paddle.jit.to_static(make, full_graph=True)(a), make(a), strict=True):
        assert type(one) is type(other)
        assert (one.batch_shape, one.event_shape) == (other.batch_shape, other.event_shape)
        x = paddle.to_tensor(SHARES)
        np.testing.assert_allclose(one.log_prob(x).numpy(), other.log_prob(x).numpy(), rtol=1e-6)
