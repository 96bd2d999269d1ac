"""Philox against its published vectors; draws: ranges, moments, distributions, and independence of how they are cut."""

import numpy as np
import pytest
from scipy import stats

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float16, float32, float64, int32, int64
from dy2st.ir.opdef import lookup
from dy2st.ir.types import INT, ScalarType, TensorType
from dy2st.ops.shape import philox
from dy2st.ops.shape.philox import rounds, words, words64
from dy2st.ops.shape.random import multiply_high
from dy2st.shapes import symbol


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers_of_philox_4x32_10(counter, key, want):
    words = [np.array([int(c, 16)], np.uint64) for c in counter.split()]
    k0, k1 = (int(k, 16) for k in key.split())
    assert [f"{int(w[0]):08x}" for w in rounds(np, words, (k0, k1))] == want.split()


def test_the_counter_is_draw_then_block_and_the_key_the_seed():
    seed, draw = 0x299F31D0A4093822, 0x85A308D3243F6A88
    counter = [np.array([c], np.uint64) for c in (0x243F6A88, 0x85A308D3, 1, 0)]
    want = [int(w[0]) for w in rounds(np, counter, (0xA4093822, 0x299F31D0))]
    assert words(np, seed, draw, 8)[4:].tolist() == want


def test_words_do_not_depend_on_how_many_are_drawn_or_on_the_chunk(monkeypatch):
    many = words(np, 5, 9, 1000)
    assert words(np, 5, 9, 7).tolist() == many[:7].tolist()
    monkeypatch.setattr(philox, "_CHUNK", 16)
    np.testing.assert_array_equal(words(np, 5, 9, 1000), many)
    assert words64(np, 5, 9, 2)[1] == (int(many[2]) << 32) | int(many[3])
    assert words(np, 5, 9, 0).shape == (0,)


@pytest.mark.parametrize("seed", [-1, 2**64 + 3])
def test_seeds_are_taken_modulo_2_to_the_64(seed):
    np.testing.assert_array_equal(words(np, seed, 0, 4), words(np, seed % 2**64, 0, 4))


@pytest.mark.parametrize("dtype", [float16, float32, float64])
@pytest.mark.parametrize(
    ("name", "law"),
    [("random_uniform", stats.uniform), ("random_normal", stats.norm), ("random_exponential", stats.expon)],
)
def test_draws_follow_their_law(name, law, dtype):
    x = compute(name, 3, 1, 100, shape=(200, None), dtype=dtype)
    assert x.shape == (200, 100)
    assert x.dtype == dtype.numpy
    assert np.isfinite(x).all()
    assert stats.kstest(x.ravel().astype(float), law.cdf).pvalue > 1e-3
    if name == "random_uniform":
        assert x.min() >= 0
        assert x.max() < 1


def test_neighbouring_normals_are_independent():
    x = compute("random_normal", 3, 2, shape=(20000,), dtype=float32).reshape(-1, 2)
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.03
    assert abs(np.corrcoef((x**2).T)[0, 1]) < 0.03


def test_draws_are_functions_of_seed_and_number():
    draw = [compute("random_uniform", s, d, shape=(4,), dtype=float32).tolist() for s, d in ((1, 1), (1, 2), (2, 1))]
    assert draw[0] == compute("random_uniform", 1, 1, shape=(2, 2), dtype=float32).ravel().tolist()
    assert len({tuple(d) for d in draw}) == 3


def test_odd_counts_and_0d_and_empty_shapes():
    for name in ("random_uniform", "random_normal"):
        for dtype in (float32, float64):
            long = compute(name, 1, 1, shape=(8,), dtype=dtype)
            np.testing.assert_array_equal(compute(name, 1, 1, shape=(7,), dtype=dtype), long[:7])
            assert isinstance(compute(name, 1, 1, shape=(), dtype=dtype), np.ndarray)
            assert compute(name, 1, 1, shape=(0, 3), dtype=dtype).shape == (0, 3)


@pytest.mark.parametrize("span", [1, 10, 2**32 - 1, 2**32 + 5, 2**63 + 11, 2**64 - 1])
def test_multiply_high_is_exact(span):
    r = words64(np, 8, 8, 50)
    assert [int(v) for v in multiply_high(r, span)] == [int(v) * span >> 64 for v in r]


def test_integers_fill_their_range_evenly():
    x = compute("random_int", 4, 1, -3, 4, shape=(7000,), dtype=int64)
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == list(range(-3, 4))
    assert stats.chisquare(counts).pvalue > 1e-3
    wide = compute("random_int", 4, 1, -(2**63), 2**63 - 1, shape=(1000,), dtype=int64)
    assert wide.min() < -(2**62)
    assert wide.max() > 2**62
    assert compute("random_int", 4, 1, 0, 5, shape=(), dtype=int32).dtype == np.int32


@pytest.mark.parametrize(("low", "high"), [(3, 3), (4, 1)])
def test_an_empty_range_of_integers_is_refused(low, high):
    with pytest.raises(ValueError, match=f"random integers need low < high, not {low} and {high}"):
        compute("random_int", 1, 1, low, high, shape=(2,), dtype=int64)


def test_bernoulli_is_a_uniform_number_below_p():
    p = np.linspace(0, 1, 5, dtype=np.float32).reshape(5, 1).repeat(2000, 1)
    x = compute("random_bernoulli", 2, 2, p)
    assert x.dtype == np.float32
    u = compute("random_uniform", 2, 2, shape=p.shape, dtype=float32)
    np.testing.assert_array_equal(x, u < p)
    assert x[0].max() == 0
    assert x[4].min() == 1
    assert abs(x[2].mean() - 0.5) < 0.05
    with pytest.raises(TypeError, match="random_bernoulli needs float probabilities, not int64"):
        lookup("random_bernoulli").infer(INT, INT, TensorType(int64, (2,)))


def test_permutations_hold_each_number_once_and_every_order_comes():
    x = compute("random_permutation", 1, 1, 100, dtype=int64)
    assert sorted(x.tolist()) == list(range(100))
    seen = {tuple(compute("random_permutation", 1, d, 3, dtype=int32)) for d in range(200)}
    assert len(seen) == 6


def test_types_of_draws():
    n = symbol("N")
    dims = ScalarType("int", n)
    assert lookup("random_uniform").infer(INT, INT, dims, shape=(2, None), dtype=float32).shape == (2, n)
    assert lookup("random_permutation").infer(INT, INT, dims, dtype=int64).shape == (n,)
    with pytest.raises(TypeError, match="random_normal draws floats, not int64"):
        lookup("random_normal").infer(INT, INT, shape=(2,), dtype=int64)
