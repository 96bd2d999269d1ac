"""Products of matrices: every transpose and target, edges of the tiles, no access outside of the matrices."""

import itertools

import numpy as np
import pytest

from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.gemm import matmul_kernel, packed_kernel, packing_kernel, scratch_kernel
from dy2st.runtime.backends.cpu.gemm.tiling import tile
from tests.runtime.backends.cpu.native import (
    DTYPES,
    FLAG,
    INTEGER,
    POINTER,
    TARGETS,
    Guarded,
    callable_of,
    compiled,
    runnable,
)

FORMS = list(itertools.product((False, True), repeat=2))
TOLERANCE = {"f32": 2e-6, "f64": 4e-15}
SMALL = [*itertools.product((1, 2, 5, 8, 11), (1, 3, 16, 17, 70), (0, 1, 16, 37))]
LARGE = [(70, 200, 300), (133, 401, 270), (1, 500, 300), (300, 1, 300), (9, 400, 513), (140, 500, 530), (12, 260, 1100)]
_compiled = {}


def product(dtype, transpose_a, transpose_b, target=None):
    """Return a function of two arrays, and of a third one that the product is added to."""
    key = (dtype, transpose_a, transpose_b, target)
    if key not in _compiled:
        kernels = [make(*key[:3], host_target(target)) for make in (matmul_kernel, scratch_kernel)]
        code = compiled(*kernels, target=target)
        run = callable_of(code, kernels[0], *[POINTER, INTEGER] * 3, *[INTEGER] * 3, POINTER, FLAG, POINTER, INTEGER)
        size = callable_of(code, kernels[1], *[INTEGER] * 3, result=INTEGER)
        _compiled[key] = code, run, size
    _, run, size = _compiled[key]

    def multiply(a, b, c, accumulate, m, n, k):
        scratch = Guarded(np.empty(-(-size(m, n, k) // 64) * 64, np.uint8))
        rows = [max(x.array.shape[1], 1) for x in (a, b, c)]
        run(a.address, rows[0], b.address, rows[1], c.address, rows[2], m, n, k, scratch.address, accumulate, None, 0)

    return multiply


def check(dtype, transpose_a, transpose_b, shape, accumulate, target=None):
    m, n, k = shape
    rng = np.random.default_rng(sum(shape))
    a = Guarded(rng.normal(size=(k, m) if transpose_a else (m, k)).astype(DTYPES[dtype]))
    b = Guarded(rng.normal(size=(n, k) if transpose_b else (k, n)).astype(DTYPES[dtype]))
    c = Guarded(rng.normal(size=(m, n)).astype(DTYPES[dtype]))
    x, y = (v.array.T if swap else v.array for v, swap in ((a, transpose_a), (b, transpose_b)))
    wanted = x.astype(np.float64) @ y.astype(np.float64) + (c.array if accumulate else 0)
    product(dtype, transpose_a, transpose_b, target)(a, b, c, accumulate, m, n, k)
    scale = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64) + 1
    assert np.max(np.abs(c.array - wanted) / scale) <= TOLERANCE[dtype], shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FORMS)
def test_small_products(transpose_a, transpose_b, dtype):
    for i, shape in enumerate(SMALL):
        check(dtype, transpose_a, transpose_b, shape, accumulate=i % 2 == 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FORMS)
def test_products_of_many_blocks(transpose_a, transpose_b, dtype):
    for i, shape in enumerate(LARGE):
        check(dtype, transpose_a, transpose_b, shape, accumulate=i % 2 == 1)


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "avx512"])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FORMS)
def test_lesser_targets(transpose_a, transpose_b, target):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    for shape in [*SMALL[::3], (21, 40, 300), (1, 100, 65), (33, 1, 20)]:
        check("f32", transpose_a, transpose_b, shape, accumulate=False, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_times_a_vector_row_by_row(target, dtype):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    rng = np.random.default_rng(0)
    for m, k, accumulate in itertools.product((1, 2, 15, 16, 17, 36), (0, 1, 15, 16, 37), (False, True)):
        a, b, start = (rng.normal(size=s).astype(DTYPES[dtype]) for s in ((m, k), (k, 1), (m, 1)))
        whole = Guarded(start)
        product(dtype, False, False, target)(Guarded(a), Guarded(b), whole, accumulate, m, 1, k)
        for i in range(m):
            row = Guarded(start[i : i + 1])
            product(dtype, False, False, target)(Guarded(a[i : i + 1]), Guarded(b), row, accumulate, 1, 1, k)
            assert row.array == whole.array[i], (m, k, i)


def test_nothing_to_sum_gives_zeros():
    for form in FORMS:
        check("f32", *form, (20, 30, 0), accumulate=False)


def test_empty_results_touch_nothing():
    for shape in ((0, 4, 3), (4, 0, 3)):
        m, n, k = shape
        a, b, c = (Guarded(np.empty(s, np.float32)) for s in ((m, k), (k, n), (m, n)))
        product("f32", False, False)(a, b, c, False, m, n, k)
        assert c.array.size == 0


def test_rows_farther_apart_than_they_are_long():
    a, b, c = (np.arange(12 * 20, dtype=np.float32).reshape(12, 20) / 50 for _ in range(3))
    before = c.copy()
    run = product("f32", False, False)

    class Rows:
        def __init__(self, array):
            self.array, self.address = array, array.ctypes.data

    run(Rows(a), Rows(b), Rows(c), False, 5, 7, 11)
    assert np.allclose(c[:5, :7], a[:5, :11] @ b[:11, :7], rtol=1e-6)
    c[:5, :7] = before[:5, :7]
    assert np.array_equal(c, before)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_packed_once_and_multiplied(transpose_a, transpose_b):
    target = host_target()
    pack, multiply = packing_kernel("f32", transpose_b, target), packed_kernel("f32", transpose_a, target)
    code = compiled(pack, multiply)
    packing = callable_of(code, pack, POINTER, INTEGER, INTEGER, INTEGER, POINTER)
    run = callable_of(code, multiply, POINTER, INTEGER, POINTER, POINTER, *[INTEGER] * 4, FLAG, INTEGER)
    lanes = tile("f32", target).lanes
    for m, n, k in [
        (1, 64, 16),
        (1, 3, 5),
        (8, 256, 64),
        (140, 40, 20),
        (3, 100, 33),
        (2, 7, 3),
        (5, 20, 600),
        (2, 5, 0),
    ]:
        rng = np.random.default_rng(m + n)
        a = Guarded(rng.normal(size=(k, m) if transpose_a else (m, k)).astype(np.float32))
        b = Guarded(rng.normal(size=(n, k) if transpose_b else (k, n)).astype(np.float32))
        packed = Guarded(np.full(-(-n // lanes) * lanes * k, np.nan, np.float32))
        c, d = Guarded(np.ones((m, n), np.float32)), Guarded(np.ones((m, n), np.float32))
        packing(b.address, b.array.shape[1], n, k, packed.address)
        for backwards, made in enumerate((c, d)):
            run(a.address, a.array.shape[1], packed.address, made.address, n, m, n, k, True, backwards)
        x, y = (v.array.T if swap else v.array for v, swap in ((a, transpose_a), (b, transpose_b)))
        assert np.allclose(c.array, 1 + x @ y, atol=1e-4)
        assert np.array_equal(c.array, d.array), "which way a product goes is nobody's business"


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_one_row_by_a_small_packed_matrix(cpu, dtype):
    if not runnable(cpu):
        pytest.skip(f"this CPU does not run {cpu}")
    target, kind = host_target(cpu), DTYPES[dtype]
    pack, multiply = packing_kernel(dtype, False, target), packed_kernel(dtype, False, target)
    code = compiled(pack, multiply, target=cpu)
    packing = callable_of(code, pack, POINTER, INTEGER, INTEGER, INTEGER, POINTER)
    run = callable_of(code, multiply, POINTER, INTEGER, POINTER, POINTER, *[INTEGER] * 4, FLAG, INTEGER)
    lanes = tile(dtype, target).lanes
    for n, k in [(1, 1), (15, 7), (16, 256), (48, 2), (65, 3), (100, 64), (127, 128), (64, 255), (5, 257), (7, 0)]:
        rng = np.random.default_rng(n + k)
        a, b = Guarded(rng.normal(size=(1, k)).astype(kind)), Guarded(rng.normal(size=(k, n)).astype(kind))
        packed = Guarded(np.full(-(-n // lanes) * lanes * k, np.nan, kind))
        packing(b.address, n, n, k, packed.address)
        nine, many = np.repeat(a.array, 9, 0), Guarded(np.ones((9, n), kind))
        run(nine.ctypes.data, k, packed.address, many.address, n, 9, n, k, False, 0)
        assert np.allclose(many.array[0], (a.array @ b.array)[0], rtol=1e-4, atol=1e-4)
        for backwards in (0, 1):
            one = Guarded(np.ones((1, n), kind))
            run(a.address, k, packed.address, one.address, n, 1, n, k, False, backwards)
            assert np.allclose(one.array[0], many.array[0], rtol=1e-5, atol=1e-5)
            run(a.address, k, packed.address, one.address, n, 1, n, k, True, backwards)
            assert np.allclose(one.array[0], 2 * many.array[0], rtol=1e-5, atol=1e-5)


def test_a_value_that_is_no_number_stays_in_its_row_and_column():
    a, b, c = np.ones((9, 40), np.float32), np.ones((40, 50), np.float32), np.zeros((9, 50), np.float32)
    a[4, 3], b[7, 20] = np.nan, np.inf
    guarded = [Guarded(x) for x in (a, b, c)]
    product("f32", False, False)(*guarded, False, 9, 50, 40)
    assert np.array_equal(guarded[2].array, a @ b, equal_nan=True)
