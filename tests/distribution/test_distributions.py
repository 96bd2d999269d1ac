"""Distributions against SciPy: densities, entropies, moments, distribution functions, draws, divergences."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as stats

import dy2st as paddle
from dy2st import distribution as D

A, B = np.array([0.5, 1.5, 2.0]), np.array([1.0, 0.5, 2.5])
P = np.array([0.2, 0.5, 0.7])
REALS, POSITIVE = np.array([[-1.0, 0.3, 2.0], [0.1, 1.0, 1.7]]), np.array([[0.2, 1.3, 2.0], [0.1, 1.0, 3.7]])
COUNTS, BITS = np.array([[0.0, 1.0, 4.0], [2.0, 3.0, 0.0]]), np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
CASES = {
    "Normal": ((A, B), stats.norm(A, B), REALS),
    "LogNormal": ((A, B / 2), stats.lognorm(B / 2, scale=np.exp(A)), POSITIVE),
    "Uniform": ((A, A + B), stats.uniform(A, B), A + B * np.array([[0.1], [0.9]])),
    "Exponential": ((A,), stats.expon(scale=1 / A), POSITIVE),
    "Laplace": ((A, B), stats.laplace(A, B), REALS),
    "Gumbel": ((A, B), stats.gumbel_r(A, B), REALS),
    "Cauchy": ((A, B), stats.cauchy(A, B), REALS),
    "Bernoulli": ((P,), stats.bernoulli(P), BITS),
    "Geometric": ((P,), stats.geom(P, loc=-1), COUNTS),
}  # fmt: skip
CONTINUOUS = [n for n in CASES if n not in ("Bernoulli", "Geometric")]


def made(name, static=False):
    return getattr(D, name)(*map(paddle.to_tensor, CASES[name][0]))


@pytest.mark.parametrize("name", CASES)
def test_log_prob_is_scipys(name):
    _, scipys, values = CASES[name]
    want = scipys.logpdf(values) if name in CONTINUOUS else scipys.logpmf(values)
    np.testing.assert_allclose(made(name).log_prob(paddle.to_tensor(values)).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(made(name).prob(paddle.to_tensor(values)).numpy(), np.exp(want), rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_entropy_is_scipys(name):
    np.testing.assert_allclose(made(name).entropy().numpy(), CASES[name][1].entropy(), rtol=1e-5)


@pytest.mark.parametrize("name", [n for n in CASES if n != "Cauchy"])
def test_mean_and_variance_are_scipys(name):
    found, scipys = made(name), CASES[name][1]
    np.testing.assert_allclose(found.mean.numpy(), scipys.mean(), rtol=1e-6)
    np.testing.assert_allclose(found.variance.numpy(), scipys.var(), rtol=1e-6)
    np.testing.assert_allclose(found.stddev.numpy(), scipys.std(), rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n != "Uniform"])
def test_distribution_function_is_scipys(name):
    _, scipys, values = CASES[name]
    np.testing.assert_allclose(made(name).cdf(paddle.to_tensor(values)).numpy(), scipys.cdf(values), rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_distribution(name):
    """The largest distance of the distribution functions, by Kolmogorov and Smirnov, at a level of 1e-4."""
    drawn = made(name).sample([3000]).numpy()
    assert drawn.shape == (3000, 3)
    for i, parameters in enumerate(zip(*CASES[name][0])):
        one = CASES[name][1]
        kept = {k: np.asarray(v)[i] if np.ndim(v) else v for k, v in one.kwds.items()}
        scipys = one.dist(*(np.asarray(a)[i] for a in one.args), **kept)
        if name in CONTINUOUS:
            assert stats.kstest(drawn[:, i], scipys.cdf).pvalue > 1e-4
        else:
            share = np.mean(drawn[:, i] == 1)
            assert abs(share - scipys.pmf(1)) < 0.05, parameters


@pytest.mark.parametrize("name", CONTINUOUS)
def test_divergence_is_the_integral(name):
    if name == "Gumbel":
        with pytest.raises(NotImplementedError, match="no divergence of Gumbel and Gumbel is known: use register_kl"):
            made(name).kl_divergence(made(name))
        return
    parameters = CASES[name][0]
    wider = [parameters[0] - 0.1, *[p + 0.3 for p in parameters[1:]]] if name != "Exponential" else [A + 1]
    other = getattr(D, name)(*map(paddle.to_tensor, wider))
    found = D.kl_divergence(made(name), other).numpy()

    def loss(x):
        logs = made(name).log_prob(paddle.to_tensor(x)).numpy()[1]
        return np.exp(logs) * (logs - other.log_prob(paddle.to_tensor(x)).numpy()[1])

    low, high = {"Uniform": (1.5, 2.0), "Exponential": (0, 40), "LogNormal": (1e-9, 60), "Cauchy": (-3000, 3000)}.get(
        name, (-15, 15)
    )
    inside = [1.5] if low < 1.5 < high else None
    np.testing.assert_allclose(found[1], scipy.integrate.quad(loss, low, high, points=inside, limit=200)[0], rtol=2e-3)


@pytest.mark.parametrize(("name", "q"), [("Bernoulli", P / 2), ("Geometric", P / 2)])
def test_divergence_of_counts_is_the_sum(name, q):
    k = np.arange(400.0 if name == "Geometric" else 2.0)[:, None]
    p, other = made(name), getattr(D, name)(paddle.to_tensor(q))
    logs, others = (d.log_prob(paddle.to_tensor(k)).numpy() for d in (p, other))
    np.testing.assert_allclose(p.kl_divergence(other).numpy(), (np.exp(logs) * (logs - others)).sum(0), rtol=1e-6)


def test_a_uniform_outside_of_another_is_infinitely_far():
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)).item() == np.inf


def test_categorical_has_weights_for_draws_and_scores_for_entropies():
    weights = np.array([[1.0, 3.0, 4.0], [2.0, 1.0, 1.0]])
    d = D.Categorical(paddle.to_tensor(weights))
    shares = weights / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(d.probs(paddle.to_tensor([1, 2])).numpy(), shares[:, [1, 2]])
    np.testing.assert_allclose(d.log_prob(paddle.to_tensor([0])).numpy(), np.log(shares[:, [0]]))
    logs = weights - scipy.special.logsumexp(weights, axis=1, keepdims=True)
    np.testing.assert_allclose(d.entropy().numpy(), -(np.exp(logs) * logs).sum(1))
    other = D.Categorical(paddle.to_tensor(weights[::-1].copy()))
    want = (np.exp(logs) * (logs - logs[::-1])).sum(1, keepdims=True)
    np.testing.assert_allclose(d.kl_divergence(other).numpy(), want)
    drawn = d.sample([4000]).numpy()
    assert drawn.shape == (4000, 2)
    np.testing.assert_allclose([(drawn == i).mean(0) for i in range(3)], shares.T, atol=0.04)


def test_gradients_flow_to_parameters():
    loc, scale = (paddle.to_tensor(v, stop_gradient=False) for v in (1.0, 2.0))
    D.Normal(loc, scale).rsample([100]).sum().backward()
    assert loc.grad.item() == 100.0
    assert scale.grad is not None
    assert D.Normal(loc, scale).sample([3]).stop_gradient


def test_a_relaxed_bernoulli_is_nearly_a_bit_when_it_is_cold():
    drawn = D.Bernoulli(paddle.to_tensor([0.3])).rsample([500], temperature=0.01).numpy()
    assert np.mean((drawn < 0.05) | (drawn > 0.95)) > 0.9


def test_draws_in_a_program_are_those_of_eager_mode():
    def draw(loc):
        return D.Normal(loc, 1.0).sample([4]) + D.Uniform(loc, loc + 1.0).sample([4])

    paddle.seed(1)
    want = draw(paddle.to_tensor([1.0, 2.0])).numpy()
    paddle.seed(1)
    got = paddle.jit.to_static(draw, full_graph=True)(paddle.to_tensor([1.0, 2.0])).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["mean", "variance", "rsample", "log_prob", "entropy"])
def test_what_a_distribution_does_not_say_is_named(name):
    def ask(base):
        found = getattr(base, name)
        return found(*([0.0] if name == "log_prob" else []))

    with pytest.raises(NotImplementedError, match=f"Distribution has no (draws|{name})"):
        ask(D.Distribution([2]))


def test_categorical_needs_classes():
    with pytest.raises(ValueError, match="Categorical needs an axis of classes, not a 0-D tensor"):
        D.Categorical(paddle.to_tensor(1.0))


def test_shapes():
    d = D.Normal(paddle.zeros([2, 1]), paddle.ones([3]))
    assert (d.batch_shape, d.event_shape, d.sample([4]).shape) == ((2, 3), (), [4, 2, 3])
