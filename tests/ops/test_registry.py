"""Every op of the registry on its own samples: types, derivatives, transposes; and incomplete classes are refused."""

import itertools

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REGISTRY
from dy2st.ir.types import ScalarType, TensorType, is_differentiable
from dy2st.ops.core.base import Op
from dy2st.shapes import Dim
from tests.ops.evaluate import as_list, emit, run, tangent_block, type_of

# Extents that decide a rank or are an attribute of the rule, so that they must be known: op -> operand -> axes.
KNOWN = {
    "gather_nd": {1: slice(-1, None)},
    "scatter_nd_add": {2: slice(-1, None)},
    "adaptive_avg_pool_grad": {0: slice(2, None)},
}


def cases(keep=lambda op, sample: True):
    """Every sample of every op without sub-blocks that `keep` keeps, named by the op and its number."""
    found = []
    for name, op in sorted(REGISTRY.items()):
        if op.blocks or name == "call":
            continue
        samples = list(op.samples(np.random.default_rng(0)))
        found += [pytest.param(op, s, id=f"{name}-{i}") for i, s in enumerate(samples) if keep(op, s)]
    return found


def has_derivative(op, sample):
    return op.differentiable and sample.differentiate and any(is_float(x) for x in sample.operands)


def is_linear(op, sample):
    return bool(op.linear_in or op.linear_together) and has_derivative(op, sample)


def is_float(x):
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def built(op, sample, symbolic=False):
    """The block that does nothing but the op, on arguments of the sample's types."""
    b = Builder()
    operands = arguments(b, op, sample, symbolic)
    b.block.results = emit(b, op, operands, sample.attributes)
    return b.block


def arguments(b, op, sample, symbolic):
    known = KNOWN.get(op.name, {})
    return [b.argument(type_of(x, symbolic, known.get(i, slice(0)))) for i, x in enumerate(sample.operands)]


def together(op, sample):
    """The operands in which the op is linear together."""
    count = len(sample.operands)
    places = range(count) if op.variadic else [i for i in op.linear_together if i < count]
    return [i for i in places if is_float(sample.operands[i])]


def bind(extent, sizes):
    """The number that a symbolic extent stands for; None for one that only the run tells."""
    if isinstance(extent, int):
        return extent
    if not all(s in sizes for s in extent.symbols()):
        return None
    return sum(c * int(np.prod([sizes[s] for s in monomial])) for monomial, c in extent.terms)


@pytest.mark.parametrize("symbolic", [False, True], ids=["known", "symbolic"])
@pytest.mark.parametrize(("op", "sample"), cases())
def test_inferred_types_are_those_of_the_results(op, sample, symbolic):
    block = built(op, sample, symbolic)
    results = run(block, list(sample.operands))
    sizes = {f"E{e}": e for x in sample.operands if isinstance(x, np.ndarray) for e in x.shape}
    for value, result in zip(block.results, results, strict=True):
        if isinstance(value.type, ScalarType):
            assert type(result) is {"int": int, "float": float, "bool": bool}[value.type.kind]
        elif isinstance(value.type, TensorType):
            assert isinstance(result, np.ndarray), "a result must be an array, also where it is 0-D"
            assert result.dtype == value.type.dtype.numpy
            assert result.ndim == value.type.rank
            declared = [bind(e, sizes) for e in value.type.shape]
            assert all(d is None or d == e for d, e in zip(declared, result.shape, strict=True))
            if not symbolic:
                assert all(not isinstance(e, Dim) for e in value.type.shape) or None in declared


@pytest.mark.parametrize(("op", "sample"), cases(lambda op, sample: op.fresh))
def test_fresh_results_share_no_memory_with_operands(op, sample):
    arrays = [x for x in sample.operands if isinstance(x, np.ndarray)]
    for result in run(built(op, sample), list(sample.operands)):
        assert not any(np.shares_memory(result, x) for x in arrays)
        assert isinstance(result, np.ndarray)
        assert result.flags.writeable or not result.size


@pytest.mark.parametrize(("op", "sample"), cases(has_derivative))
def test_jvp_is_the_central_difference(op, sample):
    block = built(op, sample)
    check_tangents(block, list(sample.operands))


@pytest.mark.parametrize(("op", "sample"), cases(has_derivative))
def test_jvp_is_differentiable_again(op, sample):
    """What a rule emits has the right tangents too, so derivatives of any order follow."""
    block = tangent_block(built(op, sample))
    rng = np.random.default_rng(1)
    tangents = [rng.normal(size=x.shape) for x in sample.operands if is_float(x)]
    check_tangents(block, [*sample.operands, *tangents])


@pytest.mark.parametrize(("op", "sample"), cases(has_derivative))
def test_third_derivatives_are_central_differences(op, sample):
    block, operands = built(op, sample), list(sample.operands)
    rng = np.random.default_rng(5)
    for _ in range(2):
        block, operands = tangent_block(block), operands + [rng.normal(size=x.shape) for x in operands if is_float(x)]
    check_tangents(block, operands, tolerance=1e-5, one_by_one=False)


def check_tangents(block, operands, step=1e-4, tolerance=1e-6, one_by_one=True):
    """Compare with differences in each operand on its own and in all of them at once."""
    rng = np.random.default_rng(2)
    places = [i for i, x in enumerate(operands) if is_float(x)]
    tangents = tangent_block(block)
    for moving in ({(i,) for i in places} if one_by_one else set()) | {tuple(places)}:
        moves = {i: rng.normal(size=operands[i].shape) * (i in moving) for i in places}
        got = run(tangents, [*operands, *moves.values()])
        differences = [run(block, shifted(operands, moves, k * step)) for k in (-2, -1, 1, 2)]
        kept = [i for i, v in enumerate(block.results) if is_differentiable(v.type)]
        for tangent, i in zip(got, kept, strict=True):
            a, b, c, d = (r[i] for r in differences)
            want = (a - 8 * b + 8 * c - d) / (12 * step)
            assert tangent.shape == want.shape
            np.testing.assert_allclose(tangent, want, rtol=tolerance, atol=tolerance * (1 + scale(want)) * 1e-1)


def shifted(operands, moves, factor):
    return [x + factor * moves[i] if i in moves else x for i, x in enumerate(operands)]


def scale(x):
    return float(np.max(np.abs(x), initial=0.0))


@pytest.mark.parametrize("symbolic", [False, True], ids=["known", "symbolic"])
@pytest.mark.parametrize(("op", "sample"), cases(is_linear))
def test_transpose_passes_the_dot_product_test(op, sample, symbolic):
    """<ct, L dx> = <L^T ct, dx>, with NaN in place of the linear operands, whose values the rule may not use."""
    rng = np.random.default_rng(3)
    joint = together(op, sample)
    alone = [(i,) for i in op.linear_in if is_float(sample.operands[i])]
    subsets = [c for n in range(1, len(joint) + 1) for c in itertools.combinations(joint, n)]
    for linear in alone + subsets:
        moved = [rng.normal(size=x.shape) if i in linear else x for i, x in enumerate(sample.operands)]
        if len(linear) < len(joint):
            moved = [np.zeros_like(x) if i in joint and i not in linear else x for i, x in enumerate(moved)]
        block = built(op, sample, symbolic)
        images = run(block, moved)
        cts = [rng.normal(size=y.shape) for y in images]
        hidden = [np.full_like(x, np.nan) if i in linear else x for i, x in enumerate(sample.operands)]
        back = transposed(op, sample, block, linear, symbolic)
        cotangents = run(back, [*hidden, *cts])
        left = sum(float(np.vdot(ct, y)) for ct, y in zip(cts, images, strict=True))
        right = sum(float(np.vdot(ct, moved[i])) for i, ct in zip(linear, cotangents, strict=True))
        assert [ct.shape for ct in cotangents] == [moved[i].shape for i in linear]
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


def transposed(op, sample, block, linear, symbolic):
    b = Builder()
    operands = arguments(b, op, sample, symbolic)
    cts = [b.argument(v.type) for v in block.results]
    flags = [i in linear for i in range(len(operands))]
    answer = as_list(op.transpose(b, cts, operands, flags, **sample.attributes), operands)
    assert len(answer) == len(operands)
    for i, ct in enumerate(answer):
        assert i in linear or ct is None
    b.block.results = [b.zeros_like(operands[i]) if answer[i] is None else answer[i] for i in linear]
    return b.block


COMPLETE = {
    "name": "never_registered",
    "infer": lambda self, x: x,
    "eval": lambda self, xp, x: x,
    "jvp": lambda self, b, primals, tangents, outs: tangents[0],
    "samples": lambda self, rng: iter(()),
}


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("name", "op class Incomplete lacks `name`"),
        ("infer", "lacks `infer`, the shape and dtype rule"),
        ("eval", "lacks `eval`, the meaning on arrays"),
        ("jvp", "lacks a derivative: `jvp`, or `linear_in` with `transpose`, or `differentiable = False`"),
        ("samples", "lacks `samples` for the tests"),
    ],
)
def test_an_incomplete_op_is_refused_and_told_what_to_add(missing, text):
    parts = {k: v for k, v in COMPLETE.items() if k != missing}
    with pytest.raises(TypeError, match=text.replace("(", r"\(")):
        type("Incomplete", (Op,), parts)
    assert "never_registered" not in REGISTRY


def test_a_linear_op_without_transpose_is_refused():
    with pytest.raises(TypeError, match="lacks `transpose`, because it is linear"):
        type("Incomplete", (Op,), {**COMPLETE, "linear_in": (0,)})


def test_a_view_without_its_way_back_is_refused():
    with pytest.raises(TypeError, match="lacks `unview`, because it gives a view"):
        type("Incomplete", (Op,), {**COMPLETE, "is_view": True})


def test_an_attribute_that_eval_does_not_take_is_refused():
    with pytest.raises(TypeError, match="lacks the attribute 'axis' as a keyword of `eval`"):
        type("Incomplete", (Op,), {**COMPLETE, "attributes": ("axis",)})


def test_all_that_is_missing_is_named_at_once():
    with pytest.raises(TypeError, match=r"`name`; `infer`.*; `eval`.*; a derivative.*; `samples`"):
        type("Incomplete", (Op,), {})


def test_two_ops_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two ops are named 'add'"):
        type("Second", (Op,), {**COMPLETE, "name": "add"})
