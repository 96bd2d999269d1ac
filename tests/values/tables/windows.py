"""Convolutions and poolings over one, two and three axes, and what turns windows into columns."""

import numpy as np

from tests.values.operands import floats
from tests.values.references import adaptive, conv, conv_transpose, pool
from tests.values.row import Row, layer, row

_SPACE = {1: (7,), 2: (5, 6), 3: (4, 3, 5)}
_FORMATS = {1: "NLC", 2: "NHWC", 3: "NDHWC"}
X = {n: floats(2, 4, *space) for n, space in _SPACE.items()}


def last(x):
    """Put the channels last."""
    return np.moveaxis(x, 1, -1).copy()


def _convolutions(n: int) -> list[Row]:
    weight, grouped, bias = floats(6, 4, *(3, 2, 2)[:n]), floats(6, 2, *(3, 2, 2)[:n]), floats(6)
    name, made = f"nn.functional.conv{n}d", f"nn.Conv{n}D"
    cases = [
        {},
        {"stride": 2, "padding": 1},
        {"stride": [2, 1, 1][:n], "padding": [1, 0, 2][:n], "dilation": [1, 2, 1][:n]},
    ]
    rows = []
    for settings in cases:
        want = conv(X[n], weight, bias, **settings)
        rows.append(row(name, (X[n], weight, bias), want, **settings).but(variants=("float64", "float32", "strided")))
        rows.append(
            layer(made, (4, 6, list(weight.shape[2:])), (X[n],), want, **settings).but(
                state={"weight": weight, "bias": bias}, variants=("float64",)
            )
        )
    rows.append(row(name, (X[n], grouped, bias), conv(X[n], grouped, bias, groups=2), groups=2))
    rows.append(row(name, (X[n], weight), conv(X[n], weight)))
    rows.append(
        row(
            name,
            (last(X[n]), weight, bias),
            last(conv(X[n], weight, bias, padding=1)),
            padding=1,
            data_format=_FORMATS[n],
        ).but(variants=("float64",))
    )
    rows.append(row(name, (X[n], weight), conv(X[n], weight), padding="VALID"))
    extra = [k - 1 for k in weight.shape[2:]]
    same = [(e // 2, e - e // 2) for e in extra]
    rows.append(row(name, (X[n], weight), conv(X[n], weight, padding=same), padding="SAME").but(known_extents=True))
    rows.append(
        layer(
            made,
            (4, 6, 2),
            (X[n],),
            conv(np.pad(X[n], [(0, 0), (0, 0), *[(1, 1)] * n], "reflect"), grouped2(n)),
            padding=1,
            padding_mode="reflect",
            bias_attr=False,
        ).but(state={"weight": grouped2(n)}, variants=("float64",))
    )
    return [r.but(tolerance=(1e-7, 1e-4)) for r in rows]


def grouped2(n: int) -> np.ndarray:
    """Return a kernel of extent 2 along each axis."""
    return (np.arange(24 * 2**n).reshape(6, 4, *(2,) * n) % 7 - 3) / 4


def _transposed(n: int) -> list[Row]:
    weight, grouped, bias = floats(4, 3, *(3, 2, 2)[:n]), floats(4, 3, *(2,) * n), floats(3)
    name, made = f"nn.functional.conv{n}d_transpose", f"nn.Conv{n}DTranspose"
    cases = [
        {},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": [2, 1, 2][:n], "dilation": [1, 2, 1][:n]},
    ]
    rows = []
    for settings in cases:
        want = conv_transpose(X[n], weight, bias, **settings)
        rows.append(row(name, (X[n], weight, bias), want, **settings).but(variants=("float64", "float32")))
        rows.append(
            layer(made, (4, 3, list(weight.shape[2:])), (X[n],), want, **settings).but(
                state={"weight": weight, "bias": bias}, variants=("float64",)
            )
        )
    rows.append(row(name, (X[n], grouped), conv_transpose(X[n], grouped, groups=2), groups=2))
    wide = [2 * (s - 1) + 2 + 1 for s in _SPACE[n]]
    rows.append(
        row(
            name, (X[n], grouped), conv_transpose(X[n], grouped, stride=2, output_padding=1), stride=2, output_size=wide
        ).but(variants=("float64",))
    )
    rows.append(
        row(name, (last(X[n]), grouped), last(conv_transpose(X[n], grouped)), data_format=_FORMATS[n]).but(
            variants=("float64",)
        )
    )
    return [r.but(tolerance=(1e-7, 1e-4)) for r in rows]


def _pools(n: int) -> list[Row]:
    x, rows = X[n], []
    for how, settings in (
        ("max", {}), ("max", {"stride": 1, "padding": 1}), ("max", {"stride": 2, "ceil_mode": True}),
        ("avg", {}), ("avg", {"stride": 1, "padding": 1}), ("avg", {"stride": 1, "padding": 1, "exclusive": False}),
        ("avg", {"stride": 2, "ceil_mode": True, "exclusive": True}),
        ("avg", {"stride": 2, "divisor_override": 5}),
    ):  # fmt: skip
        if n == 1 and "divisor_override" in settings:
            continue
        known = {("divisor" if k == "divisor_override" else k): v for k, v in settings.items()}
        want = pool(x, 2, how=how, **known)
        rows.append(row(f"nn.functional.{how}_pool{n}d", (x, 2), want, **settings))
        rows.append(layer(f"nn.{how.title()}Pool{n}D", (2,), (x,), want, **settings).only("float64"))
    kernel = [3, 2, 2][:n]
    rows.append(row(f"nn.functional.max_pool{n}d", (x, kernel), pool(x, kernel, 2), stride=2))
    rows.append(row(f"nn.functional.avg_pool{n}d", (x, kernel), pool(x, kernel, 2, how="avg"), stride=[2] * n))
    rows.append(row(f"nn.functional.max_pool{n}d", (x, 2), (pool(x, 2), _places(x)), return_mask=True))
    if n > 1:
        for how in ("max", "avg"):
            rows.append(
                row(
                    f"nn.functional.{how}_pool{n}d", (last(x), 2), last(pool(x, 2, how=how)), data_format=_FORMATS[n]
                ).only("float64")
            )
    for how, f in (("avg", np.mean), ("max", np.max)):
        sizes = (1, 3, [2, 3, 3][:n]) if n > 1 else (1, 3)
        for size in sizes:
            want = adaptive(x, size, f)
            rows.append(row(f"nn.functional.adaptive_{how}_pool{n}d", (x, size), want).but(known_extents=True))
            rows.append(layer(f"nn.Adaptive{how.title()}Pool{n}D", (size,), (x,), want).only("float64"))
    return [r.but(tolerance=(1e-7, 1e-5)) for r in rows]


def _places(x):
    """Return the place of the largest element of each window of 2 in the flat space of its channel."""
    space = x.shape[2:]
    numbers = np.arange(int(np.prod(space))).reshape(space)
    out = np.zeros((*x.shape[:2], *(s // 2 for s in space)), np.int32)
    for place in np.ndindex(*out.shape):
        at = tuple(slice(2 * p, 2 * p + 2) for p in place[2:])
        out[place] = numbers[at].ravel()[x[(*place[:2], *at)].argmax()]
    return out


_LP = [
    r for n in (1, 2) for p in (2.0, 3.0) for want in [pool(np.abs(X[n]), 2, how="norm", power=p)]
    for r in (row(f"nn.functional.lp_pool{n}d", (np.abs(X[n]), p, 2), want),
              layer(f"nn.LPPool{n}D", (p, 2), (np.abs(X[n]),), want).only("float64"))
]  # fmt: skip


def _unfolded(x, k, stride, padding, dilation):
    padded = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    high = (padded.shape[2] - dilation * (k[0] - 1) - 1) // stride + 1
    wide = (padded.shape[3] - dilation * (k[1] - 1) - 1) // stride + 1
    taps = [
        padded[:, :, i * dilation : i * dilation + stride * (high - 1) + 1 : stride,
               j * dilation : j * dilation + stride * (wide - 1) + 1 : stride]
        for i in range(k[0]) for j in range(k[1])
    ]  # fmt: skip
    return np.stack(taps, 2).reshape(len(x), -1, high * wide)


_COLUMNS = _unfolded(X[2], (2, 3), 1, 0, 1)
_OVERLAPS = np.zeros_like(X[2])
for _i, _j in np.ndindex(4, 4):
    _OVERLAPS[:, :, _i : _i + 2, _j : _j + 3] += _COLUMNS.reshape(2, 4, 2, 3, 4, 4)[..., _i, _j]
_FOLDS = [
    row("nn.functional.unfold", (X[2], [2, 3]), _COLUMNS),
    row("nn.functional.unfold", (X[2], 2), _unfolded(X[2], (2, 2), 2, 1, 2), strides=2, paddings=1, dilations=2),
    layer("nn.Unfold", ([2, 3],), (X[2],), _COLUMNS).only("float64"),
    row("nn.functional.fold", (_COLUMNS, [5, 6], [2, 3]), _OVERLAPS).but(known_extents=True),
    layer("nn.Fold", ([5, 6], [2, 3]), (_COLUMNS,), _OVERLAPS).only("float64"),
]  # fmt: skip

ROWS = [
    *(r for n in (1, 2, 3) for rows in (_convolutions(n), _transposed(n), _pools(n)) for r in rows),
    *(r.but(tolerance=(1e-7, 1e-5)) for r in _LP),
    *_FOLDS,
]  # fmt: skip
