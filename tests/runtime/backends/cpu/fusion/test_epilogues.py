"""Loop nests that run on parts of a product while these are in cache: as the nest alone, on any CPU, by any threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dy2st as paddle
from dy2st.ir.builder import Builder
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.jit.tracing.output_choices import NO_OTHER
from dy2st.runtime.backends.cpu.dump_stages import stage
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.backends.cpu.shape_specialization import ShapeSpecializations
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.shapes import symbol
from tests.runtime.backends.cpu.native import thread_counts
from tests.runtime.backends.cpu.test_same_as_interpreter import SIZES, program_of

M, N, K, B = (symbol(name) for name in "mnkb")
FORMS = list(itertools.product([False, True], repeat=2))
ON_PARTS = "matmul -> {}, and on parts of it"


def program(forms=(False, False), dtype=paddle.float32, batch=(), own=False, after=lambda b, z, bias, r: b.relu(z)):
    """Return the Program of a product (of a batch with a matrix each, where `own`) and what is done with it."""
    b = Builder()
    shapes = [(K, M) if forms[0] else (M, K), (N, K) if forms[1] else (K, N), (N,), (M, 1)]
    lead = [batch, batch if own or not batch else (), (), batch]
    x, w, bias, r = (b.argument(TensorType(dtype, (*e, *s))) for e, s in zip(lead, shapes, strict=True))
    if batch and not own:
        w = b.broadcast(w, b.dim(x, axis=0), *(b.dim(w, axis=i) for i in (0, 1)), shape=(None, None, None))
    z = b.matmul(x, w, transpose_x=forms[0], transpose_y=forms[1])
    rows = [*(b.dim(r, axis=i) for i in range(len(batch) + 1)), b.dim(bias, axis=0)]
    bias, r = (b.broadcast(v, *rows, shape=(None,) * len(rows)) for v in (bias, r))
    made = after(b, b.add(z, bias), z, r)
    b.block.results = [*made] if isinstance(made, (list, tuple)) else [made]
    return Program({"main": b.block})


def arrays(rng, m, n, k, forms=(False, False), dtype="float32", batch=(), own=False):
    shapes = [(k, m) if forms[0] else (m, k), (n, k) if forms[1] else (k, n), (n,), (m, 1)]
    lead = [batch, batch if own else (), (), batch]
    return [rng.normal(size=(*e, *s)).astype(dtype) for e, s in zip(lead, shapes, strict=True)]


def compare(found, wanted):
    """Check results that may differ by the rounding of sums whose terms cancel."""
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        single = one.dtype.itemsize <= 4
        np.testing.assert_allclose(one, other, rtol=2e-5 if single else 1e-12, atol=1e-4 if single else 1e-12)


def scaled(b, sum_, z, r):
    return b.mul(b.gelu(sum_, approximate=False), r)


def test_stages_show_it():
    made = program()
    assert ON_PARTS.format("float32[m, n]") in stage(made, "fused")
    text = stage(made, "loops")
    assert "= matmul(%0, %1), and on parts of it\n    loops over [m, n]" in text


@pytest.mark.parametrize("forms", FORMS)
def test_every_size(forms, rng, guarded):
    made = program(forms, after=scaled)
    native, plan = NativePlan(made), compile_plan(made)
    for m, n, k in [*zip(SIZES, reversed(SIZES), SIZES, strict=True), *((m, n, 3) for m in SIZES for n in SIZES)]:
        given = arrays(rng, m, n, k, forms)
        compare(native.run(given), plan.run(given))
    assert native.elsewhere == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_cpu(each_cpu, dtype, rng):
    made = program(dtype=getattr(paddle, dtype), after=scaled)
    native, plan = NativePlan(made), compile_plan(made)
    for m, n, k in [(1, 50, 7), (3, 33, 1), (9, 500, 300), (140, 801, 5), (2, 7, 0)]:
        given = arrays(rng, m, n, k, dtype=dtype)
        compare(native.run(given), plan.run(given))


@pytest.mark.parametrize("forms", FORMS)
def test_any_number_of_threads_gives_the_same_bits(forms, rng):
    native = NativePlan(program(forms, after=scaled))
    for m, n, k in [(300, 1000, 40), (700, 500, 600), (13, 3000, 100), (1, 5000, 300), (301, 1, 4000)]:
        given = arrays(rng, m, n, k, forms)
        made = [native.run(given)[0] for _ in thread_counts()]
        assert np.isfinite(made[0]).all()
        assert all(np.array_equal(made[0], other) for other in made)


@pytest.mark.parametrize("own", [False, True])
def test_batches(own, rng, guarded):
    made = program(batch=(B,), own=own, after=scaled)
    assert ON_PARTS.format("float32[b, m, n]") in stage(made, "fused")
    native, plan = NativePlan(made), compile_plan(made)
    for b, m, n, k in [(3, 5, 40, 7), (40, 17, 33, 16), (0, 3, 4, 5), (1, 200, 100, 64)]:
        given = arrays(rng, m, n, k, batch=(b,), own=own)
        compare(native.run(given), plan.run(given))


def test_a_product_that_others_read_is_there_too(rng):
    made = program(after=lambda b, sum_, z, r: (b.relu(sum_), z, b.exp(z)))
    given = arrays(rng, 130, 500, 20)
    compare(NativePlan(made).run(given), compile_plan(made).run(given))


def test_results_of_other_dtypes(rng):
    made = program(after=lambda b, sum_, z, r: (b.gt(sum_, r), b.cast(sum_, dtype=paddle.float64)))
    assert ON_PARTS.format("float32[m, n]") in stage(made, "fused")
    given = arrays(rng, 130, 500, 20)
    compare(NativePlan(made).run(given), compile_plan(made).run(given))


def test_an_operand_of_the_product_is_not_written_over(rng):
    def f(x, w):
        y = x + 1.0  # as large as the result, and read for the last time by the product and its nest
        return y @ w + y

    x, w = (rng.normal(size=(160, 160)).astype("float32") for _ in range(2))
    made = program_of(f, x, w)
    compare(ShapeSpecializations(made).run([x, w]), compile_plan(made).run([x, w]))


def test_what_reads_or_reduces_between_or_reads_as_much_stays_apart():
    def reduces(b, sum_, z, r):
        return b.sum(sum_, axis=(1,), keepdim=False)

    def reads(b, sum_, z, r):
        return b.matmul(z, r, transpose_x=False, transpose_y=True), sum_

    def reads_as_much(b, sum_, z, r):
        large = b.argument(z.type)
        return b.add(sum_, large)

    for after in (reduces, reads, reads_as_much):
        assert "and on parts of it" not in stage(program(after=after), "fused")


def test_known_to_be_small_stays_apart():
    b = Builder()
    x, w = (b.argument(TensorType(paddle.float32, (40, 40))) for _ in range(2))
    b.block.results = [b.relu(b.matmul(x, w, transpose_x=False, transpose_y=False))]
    assert "and on parts of it" not in stage(Program({"main": b.block}), "fused")


def test_extents_that_differ_are_the_products_error(rng):
    native = NativePlan(program())
    x, w, bias, r = arrays(rng, 30, 40, 7)
    with pytest.raises(ValueError, match="matmul"):
        native.run([x, w[:5], bias, r])


def test_in_a_loop_whose_matrix_is_packed(rng):
    def f(x, w, b):
        n = paddle.zeros([], "int64")
        while n < 5:
            x = paddle.tanh(x @ w + b)
            n = n + 1
        return x

    for m, width in [(1, 70), (33, 70), (40, 300)]:
        given = [rng.normal(size=s).astype("float32") / width for s in ((m, width), (width, width), (width,))]
        made = program_of(f, *given)
        (*found, told), (*wanted, told_by_plan) = ShapeSpecializations(made).run(given), compile_plan(made).run(given)
        compare(found, wanted)
        assert told == told_by_plan == NO_OTHER


def test_gradients(rng):
    def f(x, w, b):
        for t in (x, w, b):
            t.stop_gradient = False
        y = paddle.nn.functional.gelu(x @ w + b)
        return y, *paddle.grad((y * y).sum(), [x, w, b])

    given = [rng.normal(size=s).astype("float32") / 4 for s in ((200, 50), (50, 120), (120,))]
    made = program_of(f, *given)
    for found, wanted in zip(ShapeSpecializations(made).run(given), compile_plan(made).run(given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


def test_numbers_that_are_none_stay_in_their_rows_and_columns(rng):
    given = arrays(rng, 150, 450, 20)
    given[0][7, 3], given[1][2, 5] = np.nan, np.inf
    made = program(after=scaled)
    compare(NativePlan(made).run(given), compile_plan(made).run(given))


WAYS = {
    "vectors of places": ((2, 5, 20, 21), (9, 5, 3, 3), 1),
    "two groups": ((2, 8, 12, 12), (16, 4, 3, 3), 2),
    "tiles": ((2, 32, 14, 15), (33, 32, 3, 3), 1),
    "mixed images": ((9, 4, 5, 5), (5, 4, 3, 3), 1),
    "mixed tiles": ((9, 32, 5, 6), (32, 32, 3, 3), 1),
    "few places": ((1, 16, 4, 4), (20, 16, 3, 3), 1),
    "depthwise": ((3, 6, 12, 13), (6, 1, 3, 3), 6),
    "of one place": ((3, 8, 9, 11), (20, 8, 1, 1), 1),
    "of one place, two groups": ((3, 8, 9, 11), (20, 4, 1, 1), 2),
    "one axis": ((4, 6, 40), (7, 6, 3), 1),
    "three axes": ((2, 3, 7, 8, 9), (5, 3, 3, 3, 3), 1),
    "no images": ((0, 5, 20, 21), (9, 5, 3, 3), 1),
    "no channels": ((2, 0, 20, 21), (9, 0, 3, 3), 1),
}


def convolution(x, filters, groups, dtype=paddle.float32):
    """Return the Program of a convolution of unknown extents, and of what is done with its channels."""
    b, axes = Builder(), len(x) - 2
    kernel, lengths = filters[2:], [symbol(f"h{i}") for i in range(axes)]
    image = b.argument(TensorType(dtype, (B, symbol("c"), *lengths)))
    w = b.argument(TensorType(dtype, (symbol("f"), symbol("g"), *kernel)))
    how = {"stride": (1,) * axes, "dilation": (1,) * axes, "groups": groups}
    z = b.conv(image, w, padding=((1, 1) if kernel[0] > 1 else (0, 0),) * axes, **how)
    bias = b.argument(TensorType(dtype, (z.type.shape[1], *(1,) * axes)))
    mask = b.argument(TensorType(dtype, (z.type.shape[0], 1, *z.type.shape[2:])))
    extents = [b.dim(bias if i == 1 else mask, axis=0 if i == 1 else i) for i in range(axes + 2)]
    bias, mask = (b.broadcast(v, *extents, shape=(None,) * (axes + 2)) for v in (bias, mask))
    b.block.results = [b.mul(b.relu(b.add(z, bias)), mask)]
    made = Program({"main": b.block})
    assert f"conv -> {z.type}, and on parts of it" in stage(made, "fused")
    return made


def images(rng, x, filters, dtype="float32"):
    shapes = (x, filters, (filters[0], *(1 for _ in x[2:])), (x[0], 1, *x[2:]))
    return [rng.normal(size=s).astype(dtype) for s in shapes]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_a_convolution(way, rng, guarded):
    made = convolution(*WAYS[way])
    native, given = NativePlan(made), images(rng, *WAYS[way][:2])
    found = [native.run(given)[0] for _ in thread_counts()]
    compare(found[:1], compile_plan(made).run(given))
    assert all(np.array_equal(found[0], other) for other in found)
    assert native.elsewhere == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_on_every_cpu(each_cpu, dtype, rng):
    for way in ("vectors of places", "two groups", "depthwise", "of one place", "few places"):
        made = convolution(*WAYS[way], getattr(paddle, dtype))
        given = images(rng, *WAYS[way][:2], dtype)
        compare(NativePlan(made).run(given), compile_plan(made).run(given))


@pytest.mark.parametrize("way", ["tiles", "mixed tiles"])
def test_tiles_that_are_computed_again_are_finished_again(way, rng):
    made, given = convolution(*WAYS[way]), images(rng, *WAYS[way][:2])
    given[0][0, 3, 2, 2] = np.inf
    compare(NativePlan(made).run(given), compile_plan(made).run(given))


def test_images_whose_channels_differ_are_the_convolutions_error(rng):
    native = NativePlan(convolution(*WAYS["tiles"]))
    x, w, bias, mask = images(rng, *WAYS["tiles"][:2])
    with pytest.raises(ValueError, match="conv"):
        native.run([x[:, :30], w, bias, mask])


def test_gradients_of_a_convolution(rng):
    def f(x, w, b):
        for t in (x, w, b):
            t.stop_gradient = False
        y = paddle.nn.functional.gelu(paddle.nn.functional.conv2d(x, w, b, padding=1))
        return y, *paddle.grad((y * y).sum(), [x, w, b])

    given = [rng.normal(size=s).astype("float32") / 4 for s in ((3, 4, 15, 16), (5, 4, 3, 3), (5,))]
    made = program_of(f, *given)
    for found, wanted in zip(ShapeSpecializations(made).run(given), compile_plan(made).run(given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_results_that_are_joined_to_others(axis, rng):
    b = Builder()
    shapes = ((40, 30), (30, 600), (600,))
    x, w, bias = (b.argument(TensorType(paddle.float32, s)) for s in shapes)
    rows = b.broadcast(bias, shape=(40, 600))
    made = b.relu(b.add(b.matmul(x, w, transpose_x=False, transpose_y=False), rows))
    b.block.results = [b.concat(made, b.sin(rows), axis=axis)]
    joined = Program({"main": b.block})
    assert ON_PARTS.format("float32[40, 600]") in stage(joined, "fused")
    given = [rng.normal(size=s).astype("float32") for s in shapes]
    compare(NativePlan(joined).run(given), compile_plan(joined).run(given))


def test_several_python_threads_at_once(rng):
    native, given = NativePlan(program(after=scaled)), arrays(rng, 200, 700, 30)
    (wanted,) = native.run(given)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: native.run([x.copy() for x in given])[0], range(64)))
    assert all(np.array_equal(one, wanted) for one in found)


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex64"])
def test_products_of_other_dtypes_are_what_the_interpreter_gives(dtype, rng):
    after = lambda b, sum_, z, r: b.mul(sum_, r)
    made = program(dtype=getattr(paddle, dtype), after=after)
    given = [(2 * x).astype(dtype) for x in arrays(rng, 150, 140, 33)]
    for found, wanted in zip(NativePlan(made).run(given), compile_plan(made).run(given), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            found, wanted, rtol=2e-2 if dtype == "float16" else 1e-4, atol=0.5 if dtype == "float16" else 1e-3
        )
