"""Losses: the functions under every reduction, and the layers made of them."""

import numpy as np
import scipy.special as special

from tests.values.operands import floats
from tests.values.row import Row, layer, row

X, Y = floats(4, 3), floats(4, 3)
P, T = floats(4, 3, low=0.1, high=0.9), floats(4, 3, low=0.1, high=0.9)
BITS = (Y > 0).astype(np.float64)
SIGNS = np.where(Y > 0, 1.0, -1.0)
W = np.array([0.5, 2.0, 1.0])
CLASSES = np.array([0, 2, 1, 2])
HOLED = np.array([0, -100, 1, 2])
LOG = special.log_softmax(X, 1).astype(np.float32).astype(np.float64)
E1, E2 = floats(4, 3), floats(4, 3)
SIDE = np.array([1, -1, 1, -1])
Z = floats(4, 3)
LABELS = np.array([[2, 0, -1], [1, -1, 0], [0, 1, 2], [1, 2, -1]])


def _huber(d, delta=1.0):
    return np.where(np.abs(d) < delta, 0.5 * d * d, delta * np.abs(d) - 0.5 * delta**2)


def _bce(p, t):
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


def _bce_logits(x, t, positive=1.0):
    return (1 - t) * x + (1 + (positive - 1) * t) * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))


def _poisson(x, t, full=False, log_input=True, epsilon=1e-8):
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + epsilon)
    stirling = t * np.log(t + epsilon) - t + 0.5 * np.log(2 * np.pi * (t + epsilon))
    return loss + np.where(full & (t > 1), stirling, 0)


def _margin(x, y, p=1, margin=1.0, weight=None):
    right = x[np.arange(len(y)), y][:, None]
    part = np.maximum(margin - right + x, 0) ** p
    part = part if weight is None else part * np.asarray(weight)[y][:, None]
    part[np.arange(len(y)), y] = 0
    return part.sum(1) / x.shape[1]


def _multi_label(x, labels):
    found = []
    for scores, row_labels in zip(x, labels):
        named = []
        for one in row_labels:
            if one < 0:
                break
            named.append(one)
        others = [c for c in range(len(scores)) if c not in named]
        found.append(sum(max(0, 1 - (scores[i] - scores[j])) for i in named for j in others) / len(scores))
    return np.array(found)


def _triplet(a, p, n, margin=1.0, norm=2, epsilon=1e-6, swap=False):
    def apart(u, v):
        return (np.abs(u - v + epsilon) ** norm).sum(-1) ** (1 / norm)

    near, far = apart(a, p), apart(a, n)
    far = np.minimum(far, apart(p, n)) if swap else far
    return np.maximum(near - far + margin, 0)


def _cosine(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def _reduced(function: str, made: str, args: tuple, each: np.ndarray, **keywords) -> list[Row]:
    """Rows of a loss under all reductions, as a function and as a layer."""
    wants = {"mean": each.mean(), "sum": each.sum(), "none": each}
    name = f"nn.functional.{function}"
    rows = [row(name, args, wants["mean"], **keywords)]
    rows += [
        row(name, args, wants[how], reduction=how, **keywords).only("float64", "float32") for how in ("sum", "none")
    ]
    if made:
        rows.append(layer(f"nn.{made}", (), args, wants["mean"], **keywords).only("float64"))
        rows.append(layer(f"nn.{made}", (), args, wants["none"], reduction="none", **keywords).only("float64"))
    return [r.but(tolerance=(1e-6, 2e-5)) for r in rows]


_EACH = [
    *_reduced("mse_loss", "MSELoss", (X, Y), (X - Y) ** 2),
    *_reduced("l1_loss", "L1Loss", (X, Y), np.abs(X - Y)),
    *_reduced("smooth_l1_loss", "SmoothL1Loss", (X, Y), _huber(X - Y)),
    *_reduced("smooth_l1_loss", "SmoothL1Loss", (X, Y), _huber(X - Y, 0.5), delta=0.5),
    *_reduced("smooth_l1_loss", "SmoothL1Loss", (X, Y), _huber(X - Y, 0.5) / 0.5, delta=0.5, is_huber=False),
    *_reduced("binary_cross_entropy", "BCELoss", (P, BITS), _bce(P, BITS)),
    *_reduced("binary_cross_entropy", "BCELoss", (P, T), _bce(P, T) * W, weight=W),
    *_reduced("binary_cross_entropy_with_logits", "BCEWithLogitsLoss", (X, T), _bce_logits(X, T)),
    *_reduced("binary_cross_entropy_with_logits", "BCEWithLogitsLoss", (X, T), _bce_logits(X, T, W) * W, weight=W,
              pos_weight=W),
    *_reduced("kl_div", "KLDivLoss", (LOG, T), T * (np.log(T) - LOG)),
    *_reduced("kl_div", "KLDivLoss", (LOG, LOG - 0.5), np.exp(LOG - 0.5) * -0.5 * np.ones_like(LOG), log_target=True),
    *_reduced("hinge_embedding_loss", "HingeEmbeddingLoss", (X, SIGNS), np.where(SIGNS > 0, X, np.maximum(1 - X, 0))),
    *_reduced("hinge_embedding_loss", "HingeEmbeddingLoss", (X, SIGNS), np.where(SIGNS > 0, X, np.maximum(0.5 - X, 0)),
              margin=0.5),
    *_reduced("margin_ranking_loss", "MarginRankingLoss", (X, Y, SIGNS), np.maximum(-SIGNS * (X - Y), 0)),
    *_reduced("margin_ranking_loss", "MarginRankingLoss", (X, Y, SIGNS), np.maximum(-SIGNS * (X - Y) + 0.5, 0),
        margin=0.5),
    *_reduced("soft_margin_loss", "SoftMarginLoss", (X, SIGNS), np.log1p(np.exp(-SIGNS * X))),
    *_reduced("gaussian_nll_loss", "GaussianNLLLoss", (X, Y, T), 0.5 * (np.log(T) + (X - Y) ** 2 / T)),
    *_reduced("gaussian_nll_loss", "GaussianNLLLoss", (X, Y, T),
              0.5 * (np.log(np.maximum(T, 0.5)) + (X - Y) ** 2 / np.maximum(T, 0.5)) + 0.5 * np.log(2 * np.pi),
              full=True, epsilon=0.5),
    *_reduced("poisson_nll_loss", "PoissonNLLLoss", (X, T * 4), _poisson(X, T * 4)),
    *_reduced("poisson_nll_loss", "PoissonNLLLoss", (X, T * 4), _poisson(X, T * 4, full=True), full=True),
    *_reduced("poisson_nll_loss", "PoissonNLLLoss", (P, T * 4), _poisson(P, T * 4, log_input=False), log_input=False),
    *_reduced("multi_margin_loss", "MultiMarginLoss", (X, CLASSES), _margin(X, CLASSES)),
    *_reduced("multi_margin_loss", "MultiMarginLoss", (X, CLASSES), _margin(X, CLASSES, 2, 0.5), p=2, margin=0.5),
    *_reduced("multi_label_margin_loss", "MultiLabelMarginLoss", (X, LABELS), _multi_label(X, LABELS)),
    *_reduced("multi_label_soft_margin_loss", "MultiLabelSoftMarginLoss", (X, BITS), _bce_logits(X, BITS).mean(1)),
    *_reduced("multi_label_soft_margin_loss", "MultiLabelSoftMarginLoss", (X, BITS), (_bce_logits(X, BITS) * W).mean(1),
              weight=W),
    *_reduced("triplet_margin_loss", "TripletMarginLoss", (X, Y, Z), _triplet(X, Y, Z)),
    *_reduced("triplet_margin_loss", "TripletMarginLoss", (X, Y, Z), _triplet(X, Y, Z, 0.5, 3, 1e-3, True), margin=0.5,
              p=3, epsilon=1e-3, swap=True),
    *_reduced("triplet_margin_with_distance_loss", "TripletMarginWithDistanceLoss", (X, Y, Z), _triplet(X, Y, Z)),
    *_reduced("triplet_margin_with_distance_loss", "TripletMarginWithDistanceLoss", (X, Y, Z),
              np.maximum(((X - Y) ** 2).sum(-1) - ((X - Z) ** 2).sum(-1) + 0.5, 0),
              distance_function=lambda a, b: ((a - b) ** 2).sum(-1), margin=0.5),
    *_reduced("cosine_embedding_loss", "CosineEmbeddingLoss", (E1, E2, SIDE),
              np.where(SIDE > 0, 1 - _cosine(E1, E2), np.maximum(_cosine(E1, E2) - 0.25, 0)), margin=0.25),
]  # fmt: skip


def _picked(log, labels, weight=None, ignore=-100):
    """Return -weight * log probability of each label (0 where ignored), and the weights."""
    w = np.ones(log.shape[1]) if weight is None else weight
    safe = np.where(labels == ignore, 0, labels)
    kept = np.where(labels == ignore, 0.0, w[safe])
    return -kept * log[np.arange(len(labels)), safe], kept


def _classes(name, made, x, log) -> list[Row]:
    rows = []
    for labels, weight in ((CLASSES, None), (HOLED, None), (CLASSES, W), (HOLED, W)):
        each, kept = _picked(log, labels, weight)
        given = {} if weight is None else {"weight": weight}
        every = name == "cross_entropy" and weight is None  # Paddle's mean is over all labels there
        wants = {"mean": each.mean() if every else each.sum() / kept.sum(), "sum": each.sum(), "none": each}
        for how, want in wants.items():
            rows.append(row(f"nn.functional.{name}", (x, labels), want, reduction=how, **given))
            rows.append(layer(f"nn.{made}", (), (x, labels), want, reduction=how, **given).only("float64"))
    each, kept = _picked(log, CLASSES, None, 2)
    rows.append(row(f"nn.functional.{name}", (x, CLASSES), each.sum() / kept.sum(), ignore_index=2))
    return rows


_SMOOTH = np.eye(3)[CLASSES] * 0.9 + 0.1 / 3
_SOFT = special.softmax(Y, 1)


def _weighed(labels):
    """Return the loss of soft labels, times the mean weight of their classes."""
    return -(labels * special.log_softmax(X, 1)).sum(1) * (labels @ W)


def _focal(x, t, alpha=0.25, gamma=2.0):
    p = special.expit(x)
    right = p * t + (1 - p) * (1 - t)
    return (alpha * t + (1 - alpha) * (1 - t)) * (1 - right) ** gamma * _bce_logits(x, t)


def _npair(a, p, labels, reg=0.002):
    l2 = ((a**2).sum(1).mean() + (p**2).sum(1).mean()) * 0.25 * reg
    same = (labels[:, None] == labels[None]).astype(float)
    return l2 + -(same / same.sum(1, keepdims=True) * special.log_softmax(a @ p.T, 1)).sum(1).mean()


_OTHERS = [
    *_classes("cross_entropy", "CrossEntropyLoss", X, special.log_softmax(X, 1)),
    *_classes("nll_loss", "NLLLoss", LOG, LOG),
    row("nn.functional.cross_entropy", (X, CLASSES[:, None]), -special.log_softmax(X, 1)[np.arange(4), CLASSES][:,
        None],
        reduction="none"),
    row("nn.functional.cross_entropy", (X, _SOFT), -(_SOFT * special.log_softmax(X, 1)).sum(1).mean(), soft_label=True),
    row("nn.functional.cross_entropy", (X.T.copy(), CLASSES), -special.log_softmax(X, 1)[np.arange(4), CLASSES].mean(),
        axis=0),
    row("nn.functional.cross_entropy", (_SOFT, CLASSES), -np.log(_SOFT[np.arange(4), CLASSES]).mean(),
        use_softmax=False),
    row("nn.functional.cross_entropy", (X, CLASSES), -(_SMOOTH * special.log_softmax(X, 1)).sum(1).mean(),
        label_smoothing=0.1),
    row("nn.functional.cross_entropy", (X, CLASSES), _weighed(_SMOOTH).sum() / (_SMOOTH @ W).sum(), weight=W,
        label_smoothing=0.1),
    row("nn.functional.cross_entropy", (X, np.eye(3)[CLASSES]), _weighed(_SMOOTH).sum() / (_SMOOTH @ W).sum(), weight=W,
        label_smoothing=0.1, soft_label=True),
    row("nn.functional.cross_entropy", (X, np.full(4, 2)), np.asarray(0.0), weight=np.array([1.0, 1.0, 0.0])),
    row("nn.functional.cross_entropy", (X, np.full(4, 2)), np.asarray(0.0), weight=W, ignore_index=2),
    row("nn.functional.nll_loss", (LOG, np.full(4, 2)), np.asarray(0.0), ignore_index=2),
    row("nn.functional.nll_loss", (LOG, np.full(4, 2)), np.asarray(0.0), weight=np.array([1.0, 1.0, 0.0])),
    row("nn.functional.softmax_with_cross_entropy", (X, CLASSES[:, None]),
        -special.log_softmax(X, 1)[np.arange(4), CLASSES][:, None]),
    row("nn.functional.softmax_with_cross_entropy", (X, _SOFT),
        (-(_SOFT * special.log_softmax(X, 1)).sum(1, keepdims=True), special.softmax(X, 1)), soft_label=True,
        return_softmax=True),
    row("nn.functional.kl_div", (LOG, T), (T * (np.log(T) - LOG)).sum() / 4, reduction="batchmean"),
    row("nn.functional.square_error_cost", (X, Y), (X - Y) ** 2),
    row("nn.functional.log_loss", (P, T), -T * np.log(P + 1e-4) - (1 - T) * np.log(1 - P + 1e-4)),
    row("nn.functional.log_loss", (P, T), -T * np.log(P + 0.1) - (1 - T) * np.log(1 - P + 0.1), epsilon=0.1),
    row("nn.functional.sigmoid_focal_loss", (X, BITS), _focal(X, BITS).sum()),
    row("nn.functional.sigmoid_focal_loss", (X, BITS), _focal(X, BITS, 0.5, 1.0).mean() / 2.0, alpha=0.5, gamma=1.0,
        normalizer=np.array([2.0]), reduction="mean").only("float64"),
    row("nn.functional.npair_loss", (E1, E2, np.array([0, 1, 0, 2])), _npair(E1, E2, np.array([0, 1, 0, 2]))),
    row("nn.functional.npair_loss", (E1, E2, np.array([0, 1, 0, 2])), _npair(E1, E2, np.array([0, 1, 0, 2]), 0.5),
        l2_reg=0.5),
    row("nn.functional.dice_loss", (_SOFT, CLASSES[:, None]),
        np.mean(1 - 2 * _SOFT[np.arange(4), CLASSES] / (_SOFT.sum(1) + 1 + 1e-5))),
    row("nn.functional.label_smooth", (np.eye(3),), np.eye(3) * 0.9 + 0.1 / 3),
    row("nn.functional.label_smooth", (np.eye(3),), np.eye(3) * 0.5 + 0.5 * W[None] / 3.5, prior_dist=(W / 3.5)[None],
        epsilon=0.5).only("float64").but(tolerance=(1e-6, 1e-5)),
    row("nn.functional.margin_cross_entropy", (_SOFT, CLASSES), -special.log_softmax(
        (_SOFT - 0.1 * np.eye(3)[CLASSES]) * 4, 1)[np.arange(4), CLASSES].mean(), margin1=1.0, margin2=0.0, margin3=0.1,
        scale=4.0).but(tolerance=(1e-6, 1e-4)),
]  # fmt: skip
ROWS = [*_EACH, *(r.but(tolerance=(max(r.tolerance[0], 1e-6), 2e-5)) for r in _OTHERS)]
