"""Kernels of attention against the ops' own arithmetic: shapes, masks, dropped weights, targets, guarded memory."""

import numpy as np
import pytest

from dy2st.ops.nn.attention import Attention, AttentionGrad, AttentionMaskGrad
from dy2st.runtime.backends.cpu import attention
from dy2st.runtime.backends.cpu.attention import FIELDS
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from tests.runtime.backends.cpu.native import (
    DTYPES,
    INTEGER,
    POINTER,
    TARGETS,
    Guarded,
    callable_of,
    compiled,
    runnable,
)

MASKED = [
    ((1, 1, 1, 1, 1, 1), None),
    ((2, 3, 5, 7, 4, 3), None),
    ((1, 2, 70, 33, 8, 16), (1, 1, 70, 33)),
    ((2, 2, 9, 17, 5, 40), (2, 1, 1, 17)),
    ((2, 1, 9, 16, 5, 2), (1, 1, 9, 1)),
    ((1, 1, 3, 0, 2, 2), None),
    ((1, 1, 0, 3, 2, 2), None),
    ((0, 1, 3, 2, 2, 2), None),
    ((1, 1, 20, 9000, 3, 2), None),
    ((2, 2, 1, 100, 8, 24), (2, 1, 1, 100)),
    ((1, 1, 15, 255, 16, 17), None),
    ((1, 3, 8, 5, 20, 7), None),
]
"""Shapes (outer, inner, queries, keys, width, width of values), and of the mask."""
CAUSAL = [
    (2, 3, 70, 70, 8, 3),
    (1, 2, 5, 400, 4, 2),
    (1, 1, 300, 5, 4, 2),
    (1, 1, 16, 17, 3, 2),
    (1, 2, 401, 401, 4, 49),
    (1, 1, 200, 0, 3, 2),
    (1, 1, 0, 200, 3, 2),
    (1, 1, 130, 193, 20, 17),
]
LESSER = [target for target in TARGETS if target != "avx512"]
TOLERANCE = {"f32": 1e-5, "f64": 1e-12}
ORDER = ("q", "k", "v", "ct", "mask")
KINDS = {
    "attention": (Attention(), ("q", "k", "v", "mask"), 1, "attention"),
    "gradient": (AttentionGrad(), ("q", "k", "v", "mask", "ct"), 3, "attention_gradient"),
    "mask": (AttentionMaskGrad(), ("q", "k", "v", "mask", "ct"), 1, "mask_gradient"),
}
"""The op, what its kernel reads, how many results it has, and what its makers are called."""
PLAIN = ["attention", "gradient"]
SEED, DRAW, KEEP, FACTOR = 2**40 + 7, 2**33 + 3, 0.6, 1.75
_compiled = {}


def functions(kind, dtype, drops, target=None):
    key = kind, dtype, drops, target
    if key not in _compiled:
        _, places, results, name = KINDS[kind]
        makers = [getattr(attention, f"{name}_{part}") for part in ("kernel", "scratch")]
        made = [make(dtype, host_target(target), drops) for make in makers]
        code = compiled(*made, target=target)
        run = callable_of(code, made[0], *[POINTER] * (len(places) + results + 2))
        _compiled[key] = code, run, callable_of(code, made[1], POINTER, result=INTEGER)
    return _compiled[key][1:]


def check(kind, shape, dtype, mask=None, target=None, causal=False, drawn=None):
    """Compare a kernel with its op; `drawn` are the batches of a draw."""
    op, order, _, _ = KINDS[kind]
    outer, inner, n, m, d, e = shape
    run, size = functions(kind, dtype, drawn is not None, target)
    rng = np.random.default_rng(0)
    shapes = dict(zip(ORDER, [(outer, inner, *s) for s in ((n, d), (m, d), (m, e), (n, e))])) | {"mask": mask}
    parts = {name: rng.normal(size=shapes[name]).astype(DTYPES[dtype]) for name in ORDER if shapes[name]}
    parts = {name: x for name, x in parts.items() if name in order}
    row = row_of(shape, causal, parts, drawn)
    scratch = scratch_of(size(row.address))
    drop = [SEED, DRAW, KEEP, FACTOR, *drawn] if drawn else []
    wanted = op.eval(np, *(parts[name] for name in ORDER if name in parts), *drop, causal=causal)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for at_start in (False, True):
        given = {name: Guarded(x, at_start) for name, x in parts.items()}
        outs = [Guarded(np.full_like(x, np.nan), at_start) for x in wanted]
        places = [given[name].address if name in given else None for name in order]
        run(*places, *(out.address for out in outs), row.address, scratch.address)
        for out, right in zip(outs, wanted, strict=True):
            assert np.allclose(out.array, right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]), shape


def row_of(shape, causal, parts, drawn):
    """Return the row of numbers that kernels read: extents, how far apart the axes of each part are, and a draw."""
    numbers = dict(zip(FIELDS, shape)) | {"causal": int(causal)}
    for name, x in parts.items():
        steps = [0 if extent == 1 else step // x.itemsize for extent, step in zip(x.shape, x.strides)]
        numbers |= dict(zip((f"{name}_outer", f"{name}_inner", f"{name}_row", f"{name}_column"), steps))
    extents = parts["mask"].shape if "mask" in parts else ()
    apart = [0 if e == 1 else int(np.prod(extents[i + 1 :])) for i, e in enumerate(extents)]
    numbers |= dict(zip(("slope_outer", "slope_inner", "slope_row", "slope_column"), apart))
    if drawn:
        numbers |= {"drawn_outer": drawn[1] * (drawn[0] != 1), "drawn_inner": int(drawn[1] != 1)}
        shares = np.array([KEEP, FACTOR]).view(np.int64)
        numbers |= {"seed": SEED, "draw": DRAW, "keep": shares[0], "factor": shares[1]}
    return Guarded(np.array([numbers.get(name, 0) for name in FIELDS], np.int64))


def scratch_of(count):
    """Return memory of so many bytes, at least a line, that holds no numbers."""
    return Guarded(np.full(max(64, -(-count // 64) * 64), 0xFF, np.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize(("shape", "mask"), MASKED)
def test_shapes_and_masks(kind, shape, mask, dtype):
    check(kind, shape, dtype, mask)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize(("shape", "mask"), MASKED)
def test_weights_are_dropped(kind, shape, mask, dtype):
    check(kind, shape, dtype, mask, drawn=shape[:2])
    check(kind, shape, dtype, mask, drawn=(1, shape[1]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("shape", CAUSAL)
def test_a_query_sees_the_keys_up_to_its_own_place(kind, shape, dtype):
    check(kind, shape, dtype, causal=True)
    check(kind, shape, dtype, (1, 1, 1, shape[3]), causal=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", CAUSAL)
def test_of_these_keys_weights_are_dropped(kind, shape):
    check(kind, shape, "f32", (1, shape[1], shape[2], shape[3]), causal=True, drawn=shape[:2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mask", [(2, 3, 70, 33), (1, 3, 70, 33), (2, 1, 70, 33), (1, 1, 70, 33), (2, 3, 1, 33),
                                  (1, 1, 1, 33), (2, 3, 70, 1), (1, 3, 70, 1), (1, 1, 1, 1)])  # fmt: skip
def test_masks_of_any_extents_have_cotangents(mask, dtype):
    check("mask", (2, 3, 70, 33, 8, 5), dtype, mask)
    check("mask", (2, 3, 70, 33, 8, 5), dtype, mask, drawn=(2, 1))


@pytest.mark.parametrize(("shape", "mask"), [case for case in MASKED if case[1]])
def test_cotangents_of_masks(shape, mask):
    check("mask", shape, "f32", mask)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4, 2, 2), (1, 2, 0, 4, 2, 2), (1, 2, 3, 0, 2, 2), (2, 0, 3, 4, 2, 2)])
def test_where_there_are_no_weights_the_cotangent_is_zero(shape):
    check("mask", shape, "f32", (1, 1, 1, shape[3]))
    check("mask", shape, "f32", (1, 1, shape[2], 1), drawn=shape[:2])


@pytest.mark.parametrize("target", LESSER)
@pytest.mark.parametrize("kind", PLAIN)
def test_lesser_targets(kind, target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    check(kind, (1, 2, 150, 151, 5, 9), "f32", None, target, causal=True)
    check(kind, (2, 2, 19, 13, 5, 9), "f32", (2, 1, 19, 13), target)


@pytest.mark.parametrize("target", LESSER)
@pytest.mark.parametrize("kind", KINDS)
def test_lesser_targets_drop_weights(kind, target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    check(kind, (1, 2, 150, 151, 5, 9), "f32", (1, 1, 150, 151), target, causal=True, drawn=(1, 2))
    check(kind, (2, 2, 19, 13, 5, 9), "f64", (2, 1, 1, 13), target, drawn=(2, 2))
