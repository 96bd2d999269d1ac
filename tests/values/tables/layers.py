"""Norms, tables of vectors, products, padding, distances, attention, and rearranged pixels."""

import numpy as np
import scipy.special as special

from tests.values.operands import floats
from tests.values.row import EAGER, Row, layer, row

X = {1: floats(2, 4, 5), 2: floats(2, 4, 3, 6), 3: floats(2, 4, 2, 3, 4)}
FLAT = floats(5, 4)
G, B = floats(4, low=0.5, high=1.5), floats(4)
MEAN, VAR = floats(4), floats(4, low=0.5, high=2.0)
_NAMES = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def _on(values, x, axis=1):
    """Return one number a channel, beside x."""
    return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def _normal(x, axes, epsilon):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def _stored(x, epsilon=1e-5, axis=1):
    return (x - _on(MEAN, x, axis)) / np.sqrt(_on(VAR, x, axis) + epsilon)


def _scaled(x, axis=1):
    return x * _on(G, x, axis) + _on(B, x, axis)


def _last(x):
    return np.moveaxis(x, 1, -1).copy()


def _norms() -> list[Row]:
    rows = []
    state = {"weight": G, "bias": B}
    statistics = {"_mean": MEAN, "_variance": VAR}
    for n, x in X.items():
        others = (0, *range(2, x.ndim))
        space = tuple(range(2, x.ndim))
        rows += [
            row("nn.functional.batch_norm", (x, MEAN, VAR, G, B), _scaled(_stored(x))),
            row("nn.functional.batch_norm", (x, MEAN, VAR), _normal(x, others, 0.1), training=True, epsilon=0.1).only(
                "float64", "float32"
            ),
            row("nn.functional.batch_norm", (x, MEAN, VAR), _stored(x), training=True, use_global_stats=True),
            row(
                "nn.functional.batch_norm",
                (_last(x), MEAN, VAR, G, B),
                _last(_scaled(_stored(x))),
                data_format=_NAMES[n][1],
            ),
            layer(f"nn.BatchNorm{n}D", (4,), (x,), _scaled(_stored(x, 0.1)), epsilon=0.1).but(
                state=state | statistics, variants=("float64",)
            ),
            layer(f"nn.BatchNorm{n}D", (4,), (_last(x),), _last(_scaled(_stored(x))), data_format=_NAMES[n][1]).but(
                state=state | statistics, variants=("float64",)
            ),
            row("nn.functional.instance_norm", (x,), _scaled(_normal(x, space, 0.1)), weight=G, bias=B, eps=0.1).only(
                "float64"
            ),
            layer(f"nn.InstanceNorm{n}D", (4,), (x,), _scaled(_normal(x, space, 1e-5))).but(
                state={"scale": G, "bias": B}, variants=("float64",)
            ),
            row("nn.functional.group_norm", (x, 2), _scaled(_groups(x, 0.1)), epsilon=0.1, weight=G, bias=B).only(
                "float64"
            ),
            layer("nn.GroupNorm", (2, 4), (x,), _scaled(_groups(x, 1e-5))).but(state=state, variants=("float64",)),
            row("nn.functional.layer_norm", (x, list(x.shape[1:])), _normal(x, tuple(range(1, x.ndim)), 1e-5)),
            row("nn.functional.local_response_norm", (x, 3), _local(x, 3, 1e-4, 0.75, 1.0)),
            layer("nn.LocalResponseNorm", (3,), (x,), _local(x, 3, 0.5, 0.5, 2.0), alpha=0.5, beta=0.5, k=2.0).only(
                "float64"
            ),
        ]
    wide = X[1][..., :4]
    rows += [
        layer("nn.BatchNorm", (4,), (X[2],), np.maximum(_stored(X[2], 0.1), 0), act="relu", epsilon=0.1).but(
            state=statistics, variants=("float64",)),
        row("nn.functional.group_norm", (_last(X[2]), 2), _last(_groups(X[2], 1e-5)),
            data_format="NHWC").only("float64"),
        row("nn.functional.layer_norm", (wide, 4, G, B), _scaled(_normal(wide, -1, 0.1), 2), epsilon=0.1),
        layer("nn.LayerNorm", (4,), (wide,), _scaled(_normal(wide, -1, 0.1), 2), epsilon=0.1).but(
            state=state, variants=("float64",)),
        layer("nn.LayerNorm", (4,), (wide,), _normal(wide, -1, 1e-5), elementwise_affine=False).only("float64"),
        layer("nn.GroupNorm", (2, 4), (wide,), _groups(wide, 1e-5), affine=False).only("float64"),
        row("nn.functional.rms_norm", (wide, [4]), wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 0.1), eps=0.1),
        row("nn.functional.rms_norm", (wide, [4], G), G * wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)),
        row("nn.functional.normalize", (X[1],), X[1] / np.linalg.norm(X[1], axis=1, keepdims=True)),
        row("nn.functional.normalize", (X[1],), X[1] / np.abs(X[1]).sum(2, keepdims=True), p=1, axis=2),
        row("nn.functional.normalize", (X[1] * 0.01,), X[1] * 0.01 / np.maximum(
            np.linalg.norm(X[1] * 0.01, axis=1, keepdims=True), 10.0), epsilon=10.0),
    ]  # fmt: skip
    return rows


def _groups(x, epsilon):
    split = x.reshape(len(x), 2, -1)
    return _normal(split, -1, epsilon).reshape(x.shape)


def _local(x, size, alpha, beta, k):
    padded = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
    mean = np.stack([padded[:, i : i + size].mean(1) for i in range(x.shape[1])], 1)
    return x / (k + alpha * mean) ** beta


TABLE, WORDS = floats(6, 3), np.array([[0, 5], [2, 2]])
WEIGHT, BIAS = floats(4, 3), floats(3)
CORE, LEFT, RIGHT = floats(2, 4, 3), floats(5, 4), floats(5, 3)
_PRODUCTS = [
    row("nn.functional.linear", (FLAT, WEIGHT), FLAT @ WEIGHT),
    row("nn.functional.linear", (X[1][:, 0, :4], WEIGHT, BIAS), X[1][:, 0, :4] @ WEIGHT + BIAS),
    layer("nn.Linear", (4, 3), (FLAT,), FLAT @ WEIGHT + BIAS).but(
        state={"weight": WEIGHT, "bias": BIAS}, variants=EAGER),
    layer("nn.Linear", (4, 3), (FLAT,), FLAT @ WEIGHT, bias_attr=False).but(state={"weight": WEIGHT}, variants=EAGER),
    row("nn.functional.embedding", (WORDS, TABLE), TABLE[WORDS]),
    row("nn.functional.embedding", (WORDS, TABLE), np.where(WORDS[..., None] == 2, 0, TABLE[WORDS]),
        padding_idx=2).but(known_extents=True),
    row("nn.functional.embedding", (WORDS, TABLE), TABLE[WORDS], sparse=True).only("float64"),
    layer("nn.Embedding", (6, 3), (WORDS,), TABLE[WORDS]).but(state={"weight": TABLE}, variants=("float64",)),
    layer("nn.Embedding", (6, 3), (WORDS,), np.where(WORDS[..., None] == 5, 0, TABLE[WORDS]), padding_idx=-1).but(
        state={"weight": TABLE}, variants=("float64",)),
    row("nn.functional.bilinear", (LEFT, RIGHT, CORE), np.einsum("bi,oij,bj->bo", LEFT, CORE, RIGHT)),
    row("nn.functional.bilinear", (LEFT, RIGHT, CORE, B[None, :2]),
        np.einsum("bi,oij,bj->bo", LEFT, CORE, RIGHT) + B[:2]),
    layer("nn.Bilinear", (4, 3, 2), (LEFT, RIGHT), np.einsum("bi,oij,bj->bo", LEFT, CORE, RIGHT) + B[:2]).but(
        state={"weight": CORE, "bias": B[None, :2]}, variants=("float64",)),
    row("nn.functional.one_hot", (WORDS, 6), np.eye(6, dtype=np.float32)[WORDS]).only("float64", "program"),
    row("nn.functional.one_hot", (WORDS,), np.eye(6, dtype=np.float32)[WORDS]).only("float64"),
    row("nn.functional.sequence_mask", (np.array([1, 3, 2]),),
        (np.arange(4) < np.array([[1], [3], [2]])).astype(np.int64),
        maxlen=4),
    row("nn.functional.sequence_mask", (np.array([1, 3, 2]),),
        (np.arange(3) < np.array([[1], [3], [2]])).astype(np.float32),
        dtype="float32").only("float64"),
]  # fmt: skip
_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_CLASSES = {
    "constant": "ConstantPad",
    "reflect": "ReflectionPad",
    "replicate": "ReplicationPad",
    "circular": "CircularPad",
}


def _pads() -> list[Row]:
    rows = []
    for n, x in X.items():
        sides = [1, 2, 2, 0, 1, 0][: 2 * n]
        if n == 3:
            sides = [1, 2, 2, 0, 1, 1]
        widths = [(0, 0), (0, 0), *reversed([(sides[2 * i], sides[2 * i + 1]) for i in range(n)])]
        formats = {"data_format": _NAMES[n][0]}
        for mode, numpys in _MODES.items():
            want = np.pad(x, widths, numpys)
            rows.append(row("nn.functional.pad", (x, sides), want, mode=mode, **formats))
            rows.append(layer(f"nn.Pad{n}D", (sides,), (x,), want, mode=mode).only("float64"))
            more = (0.0,) if mode == "constant" else ()
            rows.append(layer(f"nn.{_CLASSES[mode]}{n}D", (sides, *more), (x,), want).only("float64"))
        filled = np.pad(x, widths, constant_values=1.5)
        rows.append(row("nn.functional.pad", (x, sides), filled, value=1.5, **formats))
        rows.append(row("nn.functional.pad", (_last(x), sides), _last(filled), value=1.5, data_format=_NAMES[n][1]))
        rows.append(layer(f"nn.ZeroPad{n}D", (1,), (x,), np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * n])).only("float64"))
    rows.append(row("nn.functional.zeropad2d", (X[2], [1, 2, 0, 1]), np.pad(X[2], [(0, 0), (0, 0), (0, 1), (1, 2)])))
    rows.append(row("nn.functional.pad", (FLAT, [1, 2, 0, 1]), np.pad(FLAT, [(1, 2), (0, 1)])))
    rows.append(
        row("nn.functional.pad", (FLAT, [1, 2, 0, 1]), np.pad(FLAT, [(0, 1), (1, 2)]), pad_from_left_axis=False)
    )
    return rows


def _apart(x, y, p=2.0, epsilon=1e-6):
    return (np.abs(x - y + epsilon) ** p).sum(-1) ** (1 / p)


def _cosine(a, b, axis=1):
    return (a * b).sum(axis) / np.sqrt((a * a).sum(axis) * (b * b).sum(axis))


LEFTS, RIGHTS = floats(5, 4), floats(5, 4)
_DISTANCES = [
    row("nn.functional.pairwise_distance", (LEFTS, RIGHTS), _apart(LEFTS, RIGHTS)),
    row("nn.functional.pairwise_distance", (LEFTS, RIGHTS), _apart(LEFTS, RIGHTS, 3, 0.1)[:, None], p=3.0, epsilon=0.1,
        keepdim=True),
    layer("nn.PairwiseDistance", (), (LEFTS, RIGHTS), _apart(LEFTS, RIGHTS, 1)[:, None], p=1.0,
        keepdim=True).only("float64"),
    row("nn.functional.cosine_similarity", (LEFTS, RIGHTS), _cosine(LEFTS, RIGHTS)),
    row("nn.functional.cosine_similarity", (LEFTS, RIGHTS), _cosine(LEFTS, RIGHTS, 0), axis=0),
    row("nn.functional.cosine_similarity", (LEFTS, RIGHTS * 0), np.zeros(5), eps=0.1),
    layer("nn.CosineSimilarity", (), (LEFTS, RIGHTS), _cosine(LEFTS, RIGHTS, 0), axis=0).only("float64"),
]  # fmt: skip
Q, K, V = floats(2, 3, 2, 4), floats(2, 5, 2, 4), floats(2, 5, 2, 4)
MASK = floats(2, 1, 3, 5)
KEPT = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)


def _attention(q, k, v, mask=0.0, causal=False, scale=None):
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
    return np.einsum("bhqk,bkhd->bqhd", special.softmax(scores, -1), v)


_ATTENTIONS = [
    row("nn.functional.scaled_dot_product_attention", (Q, K, V), _attention(Q, K, V)),
    row("nn.functional.scaled_dot_product_attention", (Q, K, V, MASK), _attention(Q, K, V, MASK)),
    row("nn.functional.scaled_dot_product_attention", (Q, K, V, KEPT[None, None]), _attention(
        Q, K, V, np.where(KEPT, 0, -np.inf))),
    row("nn.functional.scaled_dot_product_attention", (K, K, V), _attention(K, K, V, causal=True), is_causal=True),
    row("nn.functional.scaled_dot_product_attention", (Q, K, V), _attention(Q, K, V, scale=0.1), scale=0.1),
    row("nn.functional.scaled_dot_product_attention", (Q, K[:, :, :1], V[:, :, :1]), _attention(
        Q, K[:, :, [0, 0]], V[:, :, [0, 0]]), enable_gqa=True).but(known_extents=True),
]  # fmt: skip
PIXELS = floats(2, 8, 2, 3)
_SHUFFLED = PIXELS.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6)
_CHANNELS = PIXELS.reshape(2, 2, 4, 2, 3).swapaxes(1, 2).reshape(PIXELS.shape)
_CLIP = floats(4, 8, 2, 3)


def _shifted(x, seconds, share):
    clip, fold = x.reshape(-1, seconds, *x.shape[1:]), int(x.shape[1] * share)
    out = np.zeros_like(clip)
    out[:, 1:, :fold] = clip[:, :-1, :fold]
    out[:, :-1, fold : 2 * fold] = clip[:, 1:, fold : 2 * fold]
    out[:, :, 2 * fold :] = clip[:, :, 2 * fold :]
    return out.reshape(x.shape)


_PIXELS = [
    row("nn.functional.pixel_shuffle", (PIXELS, 2), _SHUFFLED),
    row("nn.functional.pixel_shuffle", (_last(PIXELS), 2), _last(_SHUFFLED), data_format="NHWC"),
    row("nn.functional.pixel_unshuffle", (_SHUFFLED, 2), PIXELS),
    row("nn.functional.channel_shuffle", (PIXELS, 2), _CHANNELS),
    row("nn.functional.channel_shuffle", (_last(PIXELS), 2), _last(_CHANNELS), data_format="NHWC"),
    layer("nn.PixelShuffle", (2,), (PIXELS,), _SHUFFLED).only("float64"),
    layer("nn.PixelUnshuffle", (2,), (_SHUFFLED,), PIXELS).only("float64"),
    layer("nn.ChannelShuffle", (2,), (PIXELS,), _CHANNELS).only("float64"),
    layer("nn.Flatten", (), (PIXELS,), PIXELS.reshape(2, -1)).only("float64"),
    layer("nn.Flatten", (), (PIXELS,), PIXELS.reshape(2, 16, 3), start_axis=1, stop_axis=2).only("float64"),
    layer("nn.Unflatten", (1, [2, -1]), (PIXELS,), PIXELS.reshape(2, 2, 4, 2, 3)).only("float64"),
    row("nn.functional.temporal_shift", (_CLIP, 2, 0.25), _shifted(_CLIP, 2, 0.25)).but(known_extents=True),
    row("nn.functional.temporal_shift", (_last(_CLIP), 2, 0.125), _last(_shifted(_CLIP, 2, 0.125)),
        data_format="NHWC").but(
        known_extents=True),
]  # fmt: skip
ROWS = [r.but(tolerance=(1e-6, 1e-4)) for r in (
    *_norms(), *_PRODUCTS, *_pads(), *_DISTANCES, *_ATTENTIONS, *_PIXELS)]  # fmt: skip
