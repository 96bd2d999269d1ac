"""Activations and losses against their formulas, initializers against their distributions."""

import math

import numpy as np
import pytest
from scipy import special

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F

X = np.linspace(-4.0, 4.0, 17)
P = np.array([0.1, 0.5, 0.9])
Y = np.array([0.0, 1.0, 1.0])
SCORES = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 0.2]])
LABELS = np.array([1, 2])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


SELU, ALPHA = 1.0507009873554805, 1.6732632423543772
ACTIVATIONS = {
    "relu": np.maximum(X, 0),
    "relu6": np.clip(X, 0, 6),
    "leaky_relu": np.where(X > 0, X, 0.01 * X),
    "elu": np.where(X > 0, X, np.exp(X) - 1),
    "celu": np.where(X > 0, X, np.exp(X) - 1),
    "selu": SELU * np.where(X > 0, X, ALPHA * (np.exp(X) - 1)),
    "gelu": X * 0.5 * (1 + special.erf(X / np.sqrt(2))),
    "silu": X * sigmoid(X),
    "swish": X * sigmoid(X),
    "mish": X * np.tanh(np.log1p(np.exp(X))),
    "softplus": np.log1p(np.exp(X)),
    "sigmoid": sigmoid(X),
    "log_sigmoid": np.log(sigmoid(X)),
    "tanh": np.tanh(X),
    "hardsigmoid": np.clip(X * 0.1666667 + 0.5, 0, 1),
    "hardswish": X * np.clip(X + 3, 0, 6) / 6,
    "hardtanh": np.clip(X, -1, 1),
    "hardshrink": np.where(np.abs(X) > 0.5, X, 0),
    "softshrink": np.sign(X) * np.maximum(np.abs(X) - 0.5, 0),
    "tanhshrink": X - np.tanh(X),
    "softsign": X / (1 + np.abs(X)),
    "thresholded_relu": np.where(X > 1, X, 0),
    "softmax": np.exp(log_softmax(X)),
    "log_softmax": log_softmax(X),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_its_formula(name):
    np.testing.assert_allclose(getattr(F, name)(paddle.to_tensor(X)).numpy(), ACTIVATIONS[name], rtol=1e-7, atol=1e-12)


LOSSES = {
    "mse_loss": (lambda: F.mse_loss(P, Y), ((P - Y) ** 2).mean()),
    "l1_loss": (lambda: F.l1_loss(P, Y, "sum"), np.abs(P - Y).sum()),
    "smooth_l1_loss": (lambda: F.smooth_l1_loss(2 * P, Y, "none"),
                       np.where(np.abs(2 * P - Y) <= 1, (2 * P - Y) ** 2 / 2, np.abs(2 * P - Y) - 0.5)),
    "binary_cross_entropy": (lambda: F.binary_cross_entropy(P, Y), -(Y * np.log(P) + (1 - Y) * np.log(1 - P)).mean()),
    "with_logits": (lambda: F.binary_cross_entropy_with_logits(P, Y),
                    -(Y * np.log(sigmoid(P)) + (1 - Y) * np.log(1 - sigmoid(P))).mean()),
    "cross_entropy": (lambda: F.cross_entropy(SCORES, LABELS), -log_softmax(SCORES)[[0, 1], LABELS].mean()),
    "cross_entropy weight": (
        lambda: F.cross_entropy(SCORES, LABELS, weight=paddle.to_tensor([1.0, 2.0, 4.0], dtype="float64")),
        -(log_softmax(SCORES)[[0, 1], LABELS] * [2, 4]).sum() / 6),
    "cross_entropy ignore": (lambda: F.cross_entropy(SCORES, LABELS, ignore_index=2), -log_softmax(SCORES)[0, 1]),
    "cross_entropy soft": (lambda: F.cross_entropy(SCORES, np.full((2, 3), 1 / 3), soft_label=True),
                           -(log_softmax(SCORES) / 3).sum(1).mean()),
    "nll_loss": (lambda: F.nll_loss(log_softmax(SCORES), LABELS), -log_softmax(SCORES)[[0, 1], LABELS].mean()),
    "kl_div": (lambda: F.kl_div(np.log(P), Y + 0.5, "sum"), ((Y + 0.5) * (np.log(Y + 0.5) - np.log(P))).sum()),
    "soft_margin_loss": (lambda: F.soft_margin_loss(P, 2 * Y - 1), np.log1p(np.exp(-(2 * Y - 1) * P)).mean()),
    "cosine_similarity": (lambda: F.cosine_similarity(SCORES[:1], SCORES[1:]),
                          [SCORES[0] @ SCORES[1] / np.linalg.norm(SCORES[0]) / np.linalg.norm(SCORES[1])]),
    "margin_ranking_loss": (lambda: F.margin_ranking_loss(P, Y, 2 * Y - 1, 0.1),
                            np.maximum(0, -(2 * Y - 1) * (P - Y) + 0.1).mean()),
    "normalize": (lambda: F.normalize(SCORES), SCORES / np.linalg.norm(SCORES, axis=1, keepdims=True)),
    "label_smooth": (lambda: F.label_smooth(np.eye(2)), np.eye(2) * 0.9 + 0.05),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_loss_is_its_formula(name):
    call, want = LOSSES[name]
    np.testing.assert_allclose(call().numpy(), want, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "mean", "std", "most"),
    [
        (lambda: nn.initializer.Constant(0.5), 0.5, 0.0, 0.5),
        (lambda: nn.initializer.Uniform(-1.0, 3.0), 1.0, 4 / math.sqrt(12), 3.0),
        (lambda: nn.initializer.Normal(1.0, 2.0), 1.0, 2.0, 20.0),
        (lambda: nn.initializer.TruncatedNormal(0.0, 1.0), 0.0, 0.8796, 2.0),
        (lambda: nn.initializer.XavierUniform(), 0.0, math.sqrt(2 / 300), math.sqrt(6 / 300)),
        (lambda: nn.initializer.XavierNormal(), 0.0, math.sqrt(2 / 300), 1.0),
        (lambda: nn.initializer.KaimingUniform(), 0.0, math.sqrt(2 / 100), math.sqrt(6 / 100)),
        (lambda: nn.initializer.KaimingNormal(), 0.0, math.sqrt(2 / 100), 1.0),
    ],
)
@pytest.mark.proves(
    "nn.initializer.Constant nn.initializer.Uniform nn.initializer.Normal nn.initializer.TruncatedNormal "
    "nn.initializer.XavierUniform nn.initializer.XavierNormal nn.initializer.KaimingUniform "
    "nn.initializer.KaimingNormal"
)
def test_initializer_has_its_moments(make, mean, std, most):
    values = paddle.create_parameter([100, 200], "float64", default_initializer=make()).numpy()
    assert values.mean() == pytest.approx(mean, abs=0.05)
    assert values.std() == pytest.approx(std, rel=0.03, abs=1e-9)
    assert np.abs(values).max() <= most + 1e-9


@pytest.mark.proves("nn.initializer.Orthogonal")
def test_an_orthogonal_matrix():
    q = paddle.create_parameter([4, 6], "float64", default_initializer=nn.initializer.Orthogonal()).numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-6)


def test_defaults_of_layers():
    linear, conv = nn.Linear(100, 200), nn.Conv2D(8, 4, 3)
    assert np.abs(linear.weight.numpy()).max() <= math.sqrt(6 / 300)
    assert conv.weight.numpy().std() == pytest.approx(math.sqrt(2 / 72), rel=0.15)
    assert not linear.bias.numpy().any()


@pytest.mark.proves("nn.initializer.set_global_initializer")
def test_global_initializers_come_before_defaults():
    nn.initializer.set_global_initializer(nn.initializer.Constant(2.0), nn.initializer.Constant(3.0))
    try:
        layer = nn.Linear(1, 1)
        own = nn.Linear(1, 1, weight_attr=nn.initializer.Constant(5.0))
    finally:
        nn.initializer.set_global_initializer(None)
    assert [float(t) for t in (layer.weight, layer.bias, own.weight, nn.Linear(1, 1).bias)] == [2.0, 3.0, 5.0, 0.0]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.initializer.Uniform(2.0, 1.0), ValueError, "low must not be above high"),
        (lambda: nn.initializer.TruncatedNormal(a=1.0, b=0.0), ValueError, "a must be below b"),
        (lambda: nn.initializer.Assign("x"), TypeError, "value must be an array, a tensor or a list"),
        (lambda: nn.initializer.Dirac(0), ValueError, "groups must be a positive int"),
        (lambda: nn.initializer.set_global_initializer(3), TypeError, "weight_init must be an Initializer"),
        (lambda: nn.initializer.Initializer().value((1,), None), NotImplementedError, "define `value`"),
        (lambda: F.mse_loss(P, Y, "most"), ValueError, "reduction"),
        (lambda: F.smooth_l1_loss(P, Y, delta=0), ValueError, "delta must be positive"),
        (
            lambda: F.embedding(np.array([0]), paddle.ones([2, 2]), padding_idx=5),
            ValueError,
            "padding_idx 5 is outside",
        ),
        (lambda: F.one_hot(np.array([0]), 0), ValueError, "num_classes must be positive"),
    ],
)
def test_bad_arguments(act, error, text):
    with pytest.raises(error, match=text):
        act()


WANTED = [0]


def test_dice_loss_of_labels_whose_last_extent_is_not_known_while_tracing(rng):
    def loss(*tensors):
        wanted = [tensors[i] for i in WANTED]
        return F.dice_loss(*tensors), len(wanted)

    x, labels = paddle.to_tensor(rng.uniform(size=(5, 3, 2))), paddle.to_tensor(rng.integers(0, 2, (5, 3, 1)))
    found, count = paddle.jit.to_static(loss, full_graph=True)(x, labels)
    np.testing.assert_allclose(found.numpy(), loss(x, labels)[0].numpy())
    assert count == 1
