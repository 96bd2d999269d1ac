"""Images sampled along grids and undone poolings, and losses over paths."""

import itertools

import numpy as np
import scipy.ndimage as ndimage
import scipy.special as special

from tests.values.operands import floats
from tests.values.row import EAGER, Row, layer, row

IMAGE, VOLUME = floats(2, 3, 4, 5), floats(2, 2, 3, 4, 5)
GRID, SPACE = floats(2, 3, 6, 2, low=-1.4, high=1.4), floats(2, 2, 3, 4, 3, low=-1.4, high=1.4)
_OUTSIDE = {"zeros": ("grid-constant",) * 2, "border": ("nearest",) * 2, "reflection": ("mirror", "reflect")}


def _sampled(x, grid, order, padding_mode, align_corners):
    """Sample with SciPy; reflection about the edges needs places inside, where SciPy's border is another one."""
    extents = np.array(x.shape[2:])
    places = np.moveaxis(grid[..., ::-1], -1, 1)
    shape = (1, -1, *(1,) * (grid.ndim - 2))
    size = extents.reshape(shape)
    at = (places + 1) / 2 * (size - 1) if align_corners else ((places + 1) * size - 1) / 2
    mode = _OUTSIDE[padding_mode][0 if align_corners else 1]
    if order == 0:
        at = np.rint(at)
    if mode == "reflect":
        at = np.abs(at + 0.5) % (2 * size)
        at = np.clip(np.minimum(at, 2 * size - at) - 0.5, 0, size - 1)
    return np.stack([[ndimage.map_coordinates(c, p, order=1, mode=mode) for c in image] for image, p in zip(x, at)])


def _grids() -> list[Row]:
    rows = []
    for x, grid in ((IMAGE, GRID), (VOLUME, SPACE)):
        for padding_mode in _OUTSIDE:
            for align in (True, False):
                rows.append(
                    row(
                        "nn.functional.grid_sample",
                        (x, grid),
                        _sampled(x, grid, 1, padding_mode, align),
                        padding_mode=padding_mode,
                        align_corners=align,
                    )
                )
        rows.append(row("nn.functional.grid_sample", (x, grid), _sampled(x, grid, 0, "zeros", True), mode="nearest"))
    return [r.but(variants=EAGER) if r.args[0] is VOLUME else r for r in rows]


THETA, THETA3 = floats(2, 2, 3), floats(2, 3, 4)


def _grid(theta, extents, align_corners):
    axes = [np.linspace(-1, 1, e) if align_corners else (2 * np.arange(e) + 1) / e - 1 for e in extents]
    planes = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*reversed(planes), np.ones(extents)], -1)
    return np.einsum("...j,bij->b...i", base, theta)


POOLED = floats(2, 3, 4)
_FLAT = np.array([[[1, 2, 4, 7], [0, 3, 5, 6], [1, 3, 4, 6]]] * 2)


def _placed(values, index, extents):
    out = np.zeros((*values.shape[:2], int(np.prod(extents))))
    flat = index.reshape(*index.shape[:2], -1)
    np.put_along_axis(out, flat, values.reshape(flat.shape), -1)
    return out.reshape(*values.shape[:2], *extents)


SQUARE, _SQUARES = POOLED.reshape(2, 3, 2, 2), np.array([[[0, 3], [9, 14]]] * 6).reshape(2, 3, 2, 2)
CUBE, _CUBES = POOLED[:, :, :1, None, None], np.array([5, 0, 7, 3, 1, 6]).reshape(2, 3, 1, 1, 1)
_UNPOOLED = [
    row("nn.functional.max_unpool1d", (POOLED, _FLAT, 2), _placed(POOLED, _FLAT, (8,))),
    row("nn.functional.max_unpool1d", (POOLED, _FLAT, 2), _placed(POOLED, _FLAT, (9,)), output_size=[2, 3, 9]),
    row("nn.functional.max_unpool2d", (SQUARE, _SQUARES, 2), _placed(SQUARE, _SQUARES, (4, 4))),
    row("nn.functional.max_unpool2d", (SQUARE, _SQUARES, 3), _placed(SQUARE, _SQUARES, (3, 5)), stride=2, padding=1,
        output_size=[3, 5]),
    row("nn.functional.max_unpool3d", (CUBE, _CUBES, 2), _placed(CUBE, _CUBES, (2, 2, 2))),
    layer("nn.MaxUnPool1D", (2,), (POOLED, _FLAT), _placed(POOLED, _FLAT, (8,))).only("float64"),
    layer("nn.MaxUnPool2D", (2,), (SQUARE, _SQUARES), _placed(SQUARE, _SQUARES, (4, 4))).only("float64"),
    layer("nn.MaxUnPool3D", (2,), (CUBE, _CUBES), _placed(CUBE, _CUBES, (2, 2, 2))).only("float64"),
]  # fmt: skip

SCORES = floats(4, 3, 3)
TEXTS = np.array([[1, 2], [1, 1], [2, 0]], np.int32)
STEPS, SIZES = np.array([4, 3, 2]), np.array([2, 2, 1])


def _read(path, blank):
    """Return what an alignment says: repetitions once, blanks left out."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def _alignments(scores, texts, steps, sizes, blank=0):
    """Return -log of the sum over every path that reads as the text."""
    logs = special.log_softmax(scores, -1)
    losses = []
    for b, (text, t, n) in enumerate(zip(texts.tolist(), steps, sizes)):
        paths = (p for p in itertools.product(range(3), repeat=int(t)) if _read(p, blank) == text[:n])
        losses.append(-special.logsumexp([sum(logs[i, b, c] for i, c in enumerate(p)) for p in paths]))
    return np.array(losses)


_LOSS = _alignments(SCORES, TEXTS, STEPS, SIZES)
_LAST = np.array([[0, 1], [0, 0], [1, 0]], np.int32)
_CTC = [
    row("nn.functional.ctc_loss", (SCORES, TEXTS, STEPS, SIZES), (_LOSS / SIZES).mean()),
    row("nn.functional.ctc_loss", (SCORES, TEXTS, STEPS, SIZES), _LOSS, reduction="none"),
    row("nn.functional.ctc_loss", (SCORES, TEXTS, STEPS, SIZES), _LOSS.sum(), reduction="sum", norm_by_times=True),
    row("nn.functional.ctc_loss", (SCORES, _LAST, STEPS, SIZES), _alignments(SCORES, _LAST, STEPS, SIZES, 2), blank=2,
        reduction="none"),
    row("nn.functional.ctc_loss", (SCORES, TEXTS, STEPS - [0, 1, 0], SIZES), _LOSS * [1, 0, 1], reduction="none",
        zero_infinity=True),
    layer("nn.CTCLoss", (), (SCORES, TEXTS, STEPS, SIZES), _LOSS, reduction="none").only("float64"),
]  # fmt: skip
ROWS = [r.but(tolerance=(1e-6, 1e-4)) for r in (
    *_grids(),
    row("nn.functional.affine_grid", (THETA, [2, 1, 4, 5]), _grid(THETA, (4, 5), True)).but(known_extents=True),
    row("nn.functional.affine_grid", (THETA, [2, 1, 4, 5]), _grid(THETA, (4, 5), False), align_corners=False).but(
        known_extents=True),
    row("nn.functional.affine_grid", (THETA3, [2, 1, 2, 3, 4]), _grid(THETA3, (2, 3, 4), True)).but(known_extents=True),
    *_UNPOOLED,
    *(r.but(variants=r.variants[:3]) for r in _CTC),
)]  # fmt: skip
