"""Functions by pieces: accuracy, special values, one result for any number of lanes, and where they are taken."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.dump_stages import stage
from dy2st.runtime.backends.cpu.libm import function
from dy2st.runtime.backends.cpu.libm.core import piecewise_coefficients
from dy2st.runtime.backends.cpu.libm.piecewise_polynomials import BY_PIECES, by_pieces
from dy2st.runtime.backends.cpu.libm.target_overrides import better_definitions
from dy2st.static import InputSpec
from tests.runtime.backends.cpu.accuracy import IN_FLOAT64, UNARY, numbers
from tests.runtime.backends.cpu.native import mapped, runnable, ulps

BOUND = 3.0
with_avx512 = pytest.mark.skipif(not runnable("avx512"), reason="this CPU has no AVX-512")


def exact(name, x):
    with np.errstate(all="ignore"):
        if name in UNARY:
            return UNARY[name](x.astype(np.longdouble))
        return IN_FLOAT64[name](x.astype(np.float64))


def operands(count):
    x = numbers(np.float32, count)
    return np.concatenate([x, *(np.linspace(-end, end, count, dtype=np.float32) for end in (1, 6, 12, 40))])


@with_avx512
@pytest.mark.parametrize("name", BY_PIECES)
def test_they_are_within_their_bound(name):
    x = operands(8000)
    found = mapped(by_pieces(name, 16), "f32", 16, 1)(x)
    error = ulps(found, exact(name, x))
    far = mapped(function(name, "f32", 16), "f32", 16, 1)(x)
    bound = np.where(found == far, 4.0, BOUND)
    assert (error <= bound).all(), (x[error.argmax()], error.max())


@with_avx512
@pytest.mark.parametrize("name", BY_PIECES)
def test_special_numbers_are_those_of_the_formula(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 1e-30, 15, -15], np.float32)
    found, wanted = (mapped(d, "f32", 16, 1)(x) for d in (by_pieces(name, 16), function(name, "f32", 16)))
    np.testing.assert_array_max_ulp(found[np.isfinite(wanted)], wanted[np.isfinite(wanted)], 2)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(wanted)], np.signbit(wanted)[~np.isnan(wanted)])
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])


@with_avx512
@pytest.mark.parametrize("name", BY_PIECES)
def test_numbers_beside_the_ends_of_pieces_are_in_one_of_them(name):
    ends = np.concatenate([np.arange(0, 16, 1 / 32), np.arange(33) * 0.265625 / 2, [1e-38, 1e-20, 1e-9]])
    beside = ends.astype(np.float32).view("i4") + np.arange(-3, 4)[:, None]
    x = np.abs(beside[beside >= 0].astype("i4").view(np.float32))
    x = np.concatenate([x, -x])
    error = ulps(mapped(by_pieces(name, 64), "f32", 64, 1)(x), exact(name, x))
    assert (error <= 4.0).all(), (x[error.argmax()], error.max())


@with_avx512
@pytest.mark.parametrize("name", BY_PIECES)
def test_the_number_of_lanes_changes_no_bit(name):
    x = np.concatenate([numbers(np.float32, 400), np.linspace(-20, 20, 999, dtype=np.float32)])
    one = mapped(by_pieces(name, 1), "f32", 1, 1)(x)
    for lanes in (2, 4, 8, 16, 32, 64):
        found = mapped(by_pieces(name, lanes), "f32", lanes, 1)(x)
        assert not ((found.view("u4") != one.view("u4")) & ~np.isnan(one)).any(), lanes


@with_avx512
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions_are_one_in_the_end(name):
    x = np.array([-1e30, -np.inf, -20, -9.6, 9.6, 20, 1e30, np.inf], np.float32)
    np.testing.assert_array_equal(mapped(by_pieces(name, 16), "f32", 16, 1)(x), np.sign(x))


@pytest.mark.parametrize("name", BY_PIECES)
def test_cpus_with_512_bits_have_them_for_float32(name):
    wide, narrow = (better_definitions(host_target(target)) for target in ("avx512", "avx2"))
    assert wide(f"dy2st.{name}.f32.16") == by_pieces(name, 16)
    for other in (f"dy2st.{name}.f64.8", f"dy2st.far.{name}.f32.16", f"dy2st.{name}.f32.16.called"):
        assert wide(other) is None
    assert narrow(f"dy2st.{name}.f32.8") is None


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 255, 4097])
def test_a_function_gives_the_interpreters_values(size):
    def f(x):
        y = paddle.nn.functional
        return y.gelu(x), y.gelu(x, approximate=True), y.silu(x), y.sigmoid(x), y.softplus(x), paddle.erf(x), x.tanh()

    given = paddle.to_tensor(np.random.default_rng(size).normal(0, 4, size).astype("float32"))
    for found, wanted in zip(paddle.jit.to_static(f)(given), f(given), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-6, atol=1e-37)


@with_avx512
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "softplus"])
def test_operations_that_others_could_make_up_take_them(name, monkeypatch):
    functional = paddle.nn.functional
    made = {
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate=True),
        "softplus": lambda x: functional.softplus(x, beta=2.0),
    }
    static = paddle.jit.to_static(made[name], input_spec=[InputSpec([64], "float32")], full_graph=True)
    program = static.concrete_program.main_program
    for target in ("avx512", "avx2"):
        monkeypatch.setenv("DY2ST_CPU", target)
        assert (f"@dy2st.far.{name}." in stage(program, "llvm")) == (target == "avx512")


@pytest.mark.slow
def test_coefficients_are_those_that_the_script_computes():
    script = Path(__file__).parents[5] / "benchmarks" / "piecewise_polynomials.py"
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks.pieces"], capture_output=True, text=True, check=True, cwd=script.parents[1]
    ).stdout
    computed: dict[str, object] = {}
    exec(printed, computed)
    kept = {name: value for name, value in vars(piecewise_coefficients).items() if name.isupper()}
    assert kept == {name: value for name, value in computed.items() if name.isupper()}
