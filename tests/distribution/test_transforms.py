"""Transforms: there and back, Jacobians against derivatives, shapes, and the distributions that they make."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dy2st as paddle
from dy2st import distribution as D


def t(values: Any) -> Any:
    return paddle.to_tensor(np.asarray(values, np.float64))


MATRIX = np.array([[0.3, -0.7, 1.2], [0.1, 0.4, -1.5]])
ELEMENTWISE = {
    "affine": (D.AffineTransform(t(1.0), t([-2.0, 3.0, 0.5])), MATRIX, [1.0] + np.array([-2.0, 3.0, 0.5]) * MATRIX),
    "exp": (D.ExpTransform(), MATRIX, np.exp(MATRIX)),
    "power": (D.PowerTransform(t(3.0)), np.abs(MATRIX), np.abs(MATRIX) ** 3),
    "sigmoid": (D.SigmoidTransform(), MATRIX, 1 / (1 + np.exp(-MATRIX))),
    "tanh": (D.TanhTransform(), MATRIX, np.tanh(MATRIX)),
    "chain": (D.ChainTransform([D.ExpTransform(), D.PowerTransform(t(2.0))]), MATRIX, np.exp(MATRIX) ** 2),
    "stack": (D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], 1), MATRIX, np.stack(
        [np.exp(MATRIX[:, 0]), np.tanh(MATRIX[:, 1]), 1 / (1 + np.exp(-MATRIX[:, 2]))], 1)),
}  # fmt: skip


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_numbers_go_there_and_back(name: str, static: bool) -> None:
    one, x, want = ELEMENTWISE[name]

    def ask(x: Any) -> Any:
        y = one(x)
        (slope,) = paddle.grad([y.sum()], [x], create_graph=True)
        return y, one.inverse(y), one.forward_log_det_jacobian(x) - slope.abs().log(), one.inverse_log_det_jacobian(y)

    given = t(x)
    given.stop_gradient = False
    y, back, apart, inverse = (paddle.jit.to_static(ask, full_graph=True) if static else ask)(given)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(back.numpy(), x, rtol=1e-9)
    np.testing.assert_allclose(apart.numpy(), np.zeros_like(x), atol=1e-9)
    np.testing.assert_allclose(
        (inverse + t(np.zeros_like(x))).numpy(), -(one.forward_log_det_jacobian(t(x)) + 0 * t(x)).numpy(), rtol=1e-7
    )


def test_stick_breaking_makes_shares() -> None:
    one, x = D.StickBreakingTransform(), t(MATRIX)
    shares = one(x)
    assert shares.shape == [2, 4]
    np.testing.assert_allclose(shares.sum(-1).numpy(), 1.0)
    np.testing.assert_allclose(one.inverse(shares).numpy(), MATRIX, rtol=1e-9)
    for i, row in enumerate(MATRIX):
        columns = [(one(t(row + d)) - one(t(row - d))).numpy()[:3] / 2e-6 for d in 1e-6 * np.eye(3)]
        _, log = np.linalg.slogdet(np.stack(columns, 1))
        np.testing.assert_allclose(one.forward_log_det_jacobian(x).numpy()[i], log, rtol=1e-6)
    assert (one.forward_shape((2, 3)), one.inverse_shape((2, 4))) == ((2, 4), (2, 3))


def test_softmax_and_abs_are_not_injective() -> None:
    np.testing.assert_allclose(D.SoftmaxTransform()(t(MATRIX)).sum(-1).numpy(), 1.0)
    for one in (D.SoftmaxTransform(), D.AbsTransform(), D.ChainTransform([D.ExpTransform(), D.AbsTransform()])):
        with pytest.raises(NotImplementedError, match=f"{type(one).__name__} is not injective"):
            one.forward_log_det_jacobian(t(MATRIX))
    low, high = D.AbsTransform().inverse(t([1.0]))
    assert (low.item(), high.item()) == (-1.0, 1.0)


def test_reshaping_keeps_volumes() -> None:
    one = D.ReshapeTransform((2, 3), (3, 2))
    assert one(t(np.ones((4, 2, 3)))).shape == [4, 3, 2]
    assert one.forward_log_det_jacobian(t(np.ones((4, 2, 3)))).tolist() == [0.0] * 4
    assert (one.forward_shape((5, 2, 3)), one.inverse_shape((3, 2))) == ((5, 3, 2), (2, 3))
    with pytest.raises(ValueError, match=r"\(4, 3\) does not end with the event shape \(2, 3\)"):
        one.forward_shape((4, 3))
    with pytest.raises(ValueError, match=r"\(2, 3\) has not as many elements as \(5,\)"):
        D.ReshapeTransform((2, 3), (5,))


def test_independent_transforms_sum_over_events() -> None:
    one = D.IndependentTransform(D.ExpTransform(), 1)
    np.testing.assert_allclose(one.forward_log_det_jacobian(t(MATRIX)).numpy(), MATRIX.sum(-1))
    chain = D.ChainTransform([D.ExpTransform(), one])
    assert (chain.domain_rank, chain.codomain_rank) == (1, 1)
    want = (MATRIX + np.exp(MATRIX)).sum(-1)
    np.testing.assert_allclose(chain.forward_log_det_jacobian(t(MATRIX)).numpy(), want)
    with pytest.raises(ValueError, match="events of 1 axes needs as many, not 0"):
        one.forward(t(1.0))


def test_transforms_compose_by_calls() -> None:
    one = D.ExpTransform()(D.TanhTransform())
    assert isinstance(one, D.ChainTransform)
    np.testing.assert_allclose(one(t(0.3)).item(), np.tanh(np.exp(0.3)))
    made = D.ExpTransform()(D.Normal(t(0.2), t(0.7)))
    np.testing.assert_allclose(made.log_prob(t(1.3)).item(), stats.lognorm(0.7, scale=np.exp(0.2)).logpdf(1.3))


@pytest.mark.parametrize("static", [False, True])
def test_transformed_distributions_have_the_density_of_what_is_transformed(static: bool) -> None:
    def ask(loc: Any, x: Any) -> Any:
        squashed = D.TransformedDistribution(D.Normal(loc, loc + 1.0), [D.AffineTransform(loc, loc), D.TanhTransform()])
        shares = D.TransformedDistribution(D.Normal(loc, loc + 1.0), [D.StickBreakingTransform()])
        return squashed.log_prob(x), squashed.rsample([5]), shares.sample([2]), shares.log_prob(shares.sample([2]))

    loc = t([0.5, 1.0, 2.0])
    x = t([0.1, 0.5, 0.9])
    log, drawn, shares, of_shares = (paddle.jit.to_static(ask, full_graph=True) if static else ask)(loc, x)
    level = (np.arctanh(x.numpy()) - loc.numpy()) / loc.numpy()
    want = stats.norm(loc.numpy(), loc.numpy() + 1).logpdf(level) - np.log(loc.numpy()) - np.log1p(-(x.numpy() ** 2))
    np.testing.assert_allclose(log.numpy(), want, rtol=1e-7)
    assert (drawn.shape, shares.shape, of_shares.shape) == ([5, 3], [2, 4], [2])
    assert bool((drawn.abs() <= 1).all())


def test_shapes_of_transformed_distributions() -> None:
    base = D.Normal(paddle.zeros([2, 3]), paddle.ones([2, 3]))
    one = D.TransformedDistribution(base, [D.StickBreakingTransform()])
    assert (one.batch_shape, one.event_shape) == ((2,), (4,))
    assert D.TransformedDistribution(base, [D.ExpTransform()]).batch_shape == (2, 3)
    with pytest.raises(ValueError, match="`base` needs 1 axes, it has 0"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [D.StickBreakingTransform()])
    with pytest.raises(TypeError, match="needs a sequence of Transforms"):
        D.TransformedDistribution(base, [1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="needs at least one Transform"):
        D.ChainTransform([])


def test_a_transform_of_ones_own() -> None:
    class Cube(D.Transform):
        def _forward(self, x: Any) -> Any:
            return x**3

        def _inverse(self, y: Any) -> Any:
            return y.sign() * y.abs() ** (1 / 3)

        def _inverse_log_det_jacobian(self, y: Any) -> Any:
            return -(3 * y.abs() ** (2 / 3)).log()

    made = D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), [Cube()])
    x = 1.7
    want = stats.norm.logpdf(x ** (1 / 3)) - np.log(3 * x ** (2 / 3))
    np.testing.assert_allclose(made.log_prob(t(x)).item(), want, rtol=1e-9)

    class Nothing(D.Transform):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no log_det_jacobian, neither forward nor inverse"):
        Nothing().forward_log_det_jacobian(t(1.0))
