"""Arguments that the other tables leave at their defaults: formats, attributes of parameters, dtypes, rare options."""

import numpy as np
import scipy.special as special

from tests.values.operands import A, C, S, floats
from tests.values.references import adaptive, conv, conv_transpose, pool
from tests.values.row import Of, Row, layer, row

X = {1: floats(2, 4, 7), 2: floats(2, 4, 5, 6), 3: floats(2, 4, 4, 3, 5)}
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}
HALF, TWO = (Of(lambda m, v=v: m.ParamAttr(initializer=m.nn.initializer.Constant(v))) for v in (0.5, 2.0))
PLAIN = Of(lambda m: m.nn.initializer.Constant(0.5))
F64 = ("float64",)


def last(x):
    """Put the channels last."""
    return np.moveaxis(x, 1, -1).copy()


def _with_attributes() -> list[Row]:
    """Layers whose parameters are constants that their attributes say."""
    rows = [
        layer("nn.Linear", (3, 2), (A,), 0.5 * A.sum(1, keepdims=True) + [2.0, 2.0], weight_attr=HALF, bias_attr=TWO),
        layer("nn.Linear", (3, 2), (A,), 0.5 * A.sum(1, keepdims=True) + [0.0, 0.0], weight_attr=PLAIN,
            bias_attr=False),
        layer("nn.Bilinear", (3, 3, 2), (A, A), 0.5 * A.sum(1, keepdims=True) ** 2 + [2.0, 2.0], weight_attr=HALF,
              bias_attr=TWO),
        layer("nn.Embedding", (5, 2), (np.array([1, 4]),), np.full((2, 2), 0.5), weight_attr=HALF),
        layer("nn.Embedding", (3, 3), (np.array([1, 2]),), S[1:], _weight=Of(lambda m: m.to_tensor(S))),
        layer("nn.Embedding", (5, 2), (np.array([1]),), np.full((1, 2), 2 / 8**0.5), weight_attr=TWO, max_norm=1.0),
        layer("nn.Embedding", (5, 2), (np.array([1]),), np.full((1, 2), 0.25), weight_attr=TWO, max_norm=0.5,
              norm_type=1.0),
        layer("nn.LayerNorm", (3,), (A,), 2 * _normal(A, 1) + 0.5, weight_attr=TWO, bias_attr=HALF),
        layer("nn.LayerNorm", (3,), (A,), 2 * _normal(A, 1), weight_attr=TWO, bias=False),
        layer("nn.PReLU", (), (C,), np.where(C > 0, C, 2 * C), weight_attr=TWO),
        layer("nn.PReLU", (4,), (C,), np.where(C > 0, C, 0.25 * C), data_format="NHWC"),
        layer("nn.BatchNorm", (3,), (C,), 2 * C / np.sqrt(1 + 1e-5) + 0.5, param_attr=TWO, bias_attr=HALF, is_test=True,
              dtype="float64"),
        layer("nn.BatchNorm", (4,), (C,), C / np.sqrt(1 + 1e-5), data_layout="NHWC", use_global_stats=True,
              dtype="float64"),
        layer("nn.GroupNorm", (1, 3), (C,), 2 * _normal(C, (1, 2), 0.1) + 0.5, weight_attr=TWO, bias_attr=HALF,
            epsilon=0.1),
    ]  # fmt: skip
    for n, x in X.items():
        space, kernel = tuple(range(2, x.ndim)), [2] * n
        normal = _normal(x, space, 0.1)
        ones, turned = np.full((6, 4, *kernel), 0.5), np.full((4, 6, *kernel), 0.5)
        rows += [
            layer(f"nn.Conv{n}D", (4, 6, 2), (x,), conv(x, ones) + 2.0, weight_attr=HALF, bias_attr=TWO),
            layer(f"nn.Conv{n}D", (4, 6, 2), (x,), conv(x, ones[:, :2], groups=2), groups=2, weight_attr=HALF,
                bias=False),
            layer(f"nn.Conv{n}D", (4, 6, 2), (last(x),), last(conv(x, ones)), weight_attr=HALF, bias_attr=False,
                  data_format=LAST[n]),
            layer(f"nn.Conv{n}DTranspose", (4, 6, 2), (x,), conv_transpose(x, turned) + 2.0, weight_attr=HALF,
                bias_attr=TWO),
            layer(f"nn.Conv{n}DTranspose", (4, 6, 2), (x,), conv_transpose(x, turned[:, :3], groups=2), groups=2,
                  weight_attr=HALF, bias_attr=False),
            layer(f"nn.Conv{n}DTranspose", (4, 6, 2), (last(x),), last(conv_transpose(x, turned)), weight_attr=HALF,
                  bias_attr=False, data_format=LAST[n]),
            layer(f"nn.InstanceNorm{n}D", (4,), (x,), 2 * normal + 0.5, weight_attr=TWO, bias_attr=HALF, epsilon=0.1),
            layer(f"nn.BatchNorm{n}D", (4,), (x,), 2 * x / np.sqrt(1 + 1e-5) + 0.5, weight_attr=TWO, bias_attr=HALF,
                  use_global_stats=True),
        ]  # fmt: skip
    return rows


def _normal(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def _formats() -> list[Row]:
    """Poolings, paddings and resized images with the channels last."""
    rows = []
    for n, x in X.items():
        wide = [(0, 0), (0, 0), *[(1, 1)] * n]
        rows.append(layer(f"nn.Pad{n}D", (1,), (last(x),), last(np.pad(x, wide, constant_values=1.5)), value=1.5,
                          data_format=LAST[n]))  # fmt: skip
        rows.append(layer(f"nn.ZeroPad{n}D", (1,), (last(x),), last(np.pad(x, wide)), data_format=LAST[n]))
        for stem, mode in (("Reflection", "reflect"), ("Replication", "edge"), ("Circular", "wrap")):
            rows.append(layer(f"nn.{stem}Pad{n}D", (1,), (last(x),), last(np.pad(x, wide, mode)), data_format=LAST[n]))
        if n == 1:
            continue
        rows += [
            layer(f"nn.MaxPool{n}D", (2,), (last(x),), last(pool(x, 2)), data_format=LAST[n]),
            layer(f"nn.AvgPool{n}D", (2,), (last(x),), last(pool(x, 2, how="avg")), data_format=LAST[n]),
            layer(f"nn.MaxPool{n}D", (2,), (x,), (pool(x, 2), None), return_mask=True),
            layer(f"nn.AdaptiveAvgPool{n}D", (2,), (last(x),), last(adaptive(x, 2, np.mean)), data_format=LAST[n]),
            row(f"nn.functional.adaptive_avg_pool{n}d", (last(x), 2), last(adaptive(x, 2, np.mean)),
                data_format=LAST[n]),
            row(f"nn.functional.adaptive_max_pool{n}d", (x, 2), (adaptive(x, 2, np.max), None), return_mask=True),
        ]  # fmt: skip
    images = np.abs(X[2])
    rows += [
        row("nn.functional.lp_pool2d", (images, 2.0, 2), pool(images, 2, 1, how="norm"), stride=1),
        row("nn.functional.lp_pool2d", (last(images), 2.0, 2), last(pool(images, 2, how="norm")), data_format="NHWC"),
        row("nn.functional.lp_pool1d", (images[..., 0], 2.0, 2), pool(images[..., 0], 2, 2, 0, True, "norm"),
            ceil_mode=True),
        row("nn.functional.zeropad2d", (last(X[2]), [1, 2, 0, 1]), last(np.pad(X[2], [(0, 0), (0, 0), (0, 1), (1, 2)])),
            data_format="NHWC"),
        layer("nn.PixelShuffle", (2,), (last(X[2]),), last(_shuffled(X[2])), data_format="NHWC"),
        layer("nn.PixelUnshuffle", (2,), (last(_shuffled(X[2])),), last(X[2]), data_format="NHWC"),
        layer("nn.ChannelShuffle", (2,), (last(X[2]),), last(X[2][:, [0, 2, 1, 3]]), data_format="NHWC"),
    ]  # fmt: skip
    return rows


def _shuffled(x):
    n, c, h, w = x.shape
    return x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


SCORES, CLASSES = floats(4, 3), np.array([0, 2, 1, 2])
LOGS = special.log_softmax(SCORES, 1)
PICKED = -LOGS[np.arange(4), CLASSES]
SOFT = special.softmax(floats(4, 3), 1)
WEIGHT = np.array([0.5, 2.0, 1.0])
MEAN, VAR = floats(4), floats(4, low=0.5, high=2.0)


def _apart(x, y):
    return np.linalg.norm(x - y + 1e-6, axis=1)


def _margin(weight):
    right = SCORES[np.arange(4), CLASSES][:, None]
    part = np.maximum(1 - right + SCORES, 0) * weight[CLASSES][:, None]
    part[np.arange(4), CLASSES] = 0
    return (part.sum(1) / 3).mean()


_FUNCTIONS = [
    row("mean", (C,), C.mean(1), axis=1, dtype="float64").only("float64"),
    row("norm", (C,), np.linalg.norm(C), dtype="float64").only("float64"),
    row("range", (1, 4), np.array([1.0, 2.0, 3.0, 4.0]), dtype="float64").only("float64"),
    row("softmax", (C,), special.softmax(C, 1), dim=1, dtype="float64").only("float64"),
    row("searchsorted", (np.sort(S[0]), S), np.searchsorted(np.sort(S[0]), S).astype(np.int32), out_int32=True),
    row("to_tensor", ([1.0],), np.array([1.0], np.float32), place=Of(lambda m: m.CPUPlace()),
        stop_gradient=False).only(*F64),
    row("tensor.to_tensor", ([1],), np.array([1.0]), dtype="float64", place=Of(lambda m: m.CPUPlace()),
        stop_gradient=False).only(*F64),
    row("tensor.fill_constant", ([2], "float32", 1.5), np.full(2, 1.5, np.float32), force_cpu=True).only(*F64),
    row("nn.functional.hardsigmoid", (C,), np.clip(0.25 * C + 0.4, 0, 1), slope=0.25, offset=0.4),
    row("nn.functional.instance_norm", (X[1],), (X[1] - MEAN[:, None]) / np.sqrt(VAR[:, None] + 1e-5),
        running_mean=MEAN,
        running_var=VAR, use_input_stats=False).only(*F64),
    row("nn.functional.triplet_margin_with_distance_loss", (SCORES, SOFT, LOGS), np.mean(np.maximum(
        _apart(SCORES, SOFT) - np.minimum(_apart(SCORES, LOGS), _apart(SOFT, LOGS)) + 1, 0)), swap=True),
    row("nn.functional.multi_margin_loss", (SCORES, CLASSES), _margin(WEIGHT), weight=WEIGHT).only(*F64),
    row("nn.functional.poisson_nll_loss", (SOFT, SOFT), (SOFT - SOFT * np.log(SOFT + 0.1)).mean(), log_input=False,
        epsilon=0.1),
    row("nn.functional.dice_loss", (SOFT, CLASSES[:, None]), np.mean(1 - 2 * SOFT[np.arange(4), CLASSES] / (2 + 0.5)),
        epsilon=0.5),
    row("nn.functional.softmax_with_cross_entropy", (SCORES.T.copy(), CLASSES[None]), PICKED[None], axis=0),
    row("nn.functional.softmax_with_cross_entropy", (SCORES, CLASSES[:, None]), (PICKED * (CLASSES != 2))[:, None],
        ignore_index=2),
    layer("nn.CrossEntropyLoss", (), (SCORES, CLASSES), PICKED[CLASSES != 2].mean(), ignore_index=2),
    layer("nn.CrossEntropyLoss", (), (SCORES, SOFT), -(SOFT * LOGS).sum(1).mean(), soft_label=True),
    layer("nn.CrossEntropyLoss", (), (SCORES.T.copy(), CLASSES), PICKED.mean(), axis=0),
    layer("nn.CrossEntropyLoss", (), (SOFT, CLASSES), -np.log(SOFT[np.arange(4), CLASSES]).mean(), use_softmax=False),
    layer("nn.CrossEntropyLoss", (), (SCORES, CLASSES), (0.9 * PICKED - 0.1 * LOGS.mean(1)).mean(),
        label_smoothing=0.1),
    layer("nn.NLLLoss", (), (LOGS, CLASSES), PICKED[CLASSES != 2].mean(), ignore_index=2),
    layer("nn.MultiMarginLoss", (), (SCORES, CLASSES), _margin(WEIGHT), weight=WEIGHT),
    layer("nn.PoissonNLLLoss", (), (SOFT, SOFT), (SOFT - SOFT * np.log(SOFT + 0.1)).mean(), log_input=False,
        epsilon=0.1),
    layer("nn.CosineSimilarity", (), (SCORES, SCORES * 0), np.zeros(4), eps=0.1),
    layer("nn.PairwiseDistance", (), (SCORES, SOFT), np.linalg.norm(SCORES - SOFT + 0.1, axis=1), epsilon=0.1),
]  # fmt: skip
ROWS = [
    *(r.but(variants=F64, tolerance=(1e-6, 1e-4)) for r in (*_with_attributes(), *_formats())),
    *(r.but(tolerance=(1e-6, 1e-4)) for r in _FUNCTIONS),
]
