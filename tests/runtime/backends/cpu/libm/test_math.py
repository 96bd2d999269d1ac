"""The elementary functions: accuracy, special values, one result for any number of lanes, and all targets."""

import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from dy2st.runtime.backends.cpu.compile_link.code_loader import assembly
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.libm import function, load_formulas
from dy2st.runtime.backends.cpu.libm.core import coefficients
from dy2st.runtime.backends.cpu.libm.core.emitter import FormulaEmitter, VectorValue
from dy2st.runtime.backends.cpu.llvm_ir.definition import gathered
from tests.runtime.backends.cpu.accuracy import (
    BINARY,
    BY_MPMATH,
    EXACT,
    IN_FLOAT64,
    UNARY,
    edges,
    numbers,
    pairs,
    within,
)
from tests.runtime.backends.cpu.native import DTYPES, TARGETS, mapped, runnable, ulps

BOUND = 4.0
NATIVE = TARGETS[0] if runnable(TARGETS[0]) else "sse"
ONE_OPERAND = sorted({*UNARY, *IN_FLOAT64})


def exact(name, x):
    references = UNARY if name in UNARY else IN_FLOAT64 if x.dtype == np.float32 else BY_MPMATH
    with np.errstate(all="ignore"):
        return references[name](x if references is BY_MPMATH else x.astype(np.longdouble if name in UNARY else float))


def test_every_formula_is_measured():
    assert set(ONE_OPERAND) | set(BINARY) == load_formulas().keys()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE_OPERAND)
def test_a_function_of_one_operand_is_within_its_bound(name, dtype):
    x = numbers(DTYPES[dtype], 8000)
    if name in BY_MPMATH and dtype == "f64":
        x = within(name, x)[::40]
    found = mapped(function(name, dtype, 8), dtype, 8, 1)(x)
    error = ulps(found, exact(name, x))
    assert error.max() <= BOUND, (x[error.argmax()], found[error.argmax()])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(BINARY))
def test_a_function_of_two_operands_is_within_its_bound(name, dtype):
    x, y = pairs(DTYPES[dtype], 4000)
    with np.errstate(all="ignore"):
        wanted = BINARY[name](x, y) if name in EXACT else BINARY[name](x.astype(np.longdouble), y.astype(np.longdouble))
    found = mapped(function(name, dtype, 8), dtype, 8, 2)(x, y)
    error = ulps(found, wanted)
    assert error.max() <= (0 if name in EXACT else BOUND), (x[error.argmax()], y[error.argmax()])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "expm1", "log1p", "sin", "tan", "tanh", "asinh", "erf", "gelu", "silu", "i1e",
                                  "rint", "trunc"])  # fmt: skip
def test_zeros_keep_their_sign(name, dtype):
    x = np.array([0.0, -0.0], DTYPES[dtype])
    wanted = exact(name, x).astype(x.dtype) if name not in BY_MPMATH else x
    found = mapped(function(name, dtype, 4), dtype, 4, 1)(x)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(BINARY))
def test_signs_of_special_pairs_are_those_of_numpy(name, dtype):
    x, y = pairs(DTYPES[dtype], 0)
    with np.errstate(all="ignore"):
        wanted = BINARY[name](x, y)
    found = mapped(function(name, dtype, 8), dtype, 8, 2)(x, y)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    assert np.array_equal(np.signbit(found)[~np.isnan(wanted)], np.signbit(wanted)[~np.isnan(wanted)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(load_formulas()))
def test_the_number_of_lanes_changes_no_bit(name, dtype):
    arity = 2 if name in BINARY else 1
    operands = pairs(DTYPES[dtype], 50) if arity == 2 else (numbers(DTYPES[dtype], 400),)
    whole = f"u{np.dtype(DTYPES[dtype]).itemsize}"
    one = mapped(function(name, dtype, 1), dtype, 1, arity, NATIVE)(*operands)
    for lanes in (4, 16):
        found = mapped(function(name, dtype, lanes), dtype, lanes, arity, NATIVE)(*operands)
        different = found.view(whole) != one.view(whole)
        assert not (different & ~np.isnan(one)).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [t for t in TARGETS if t != NATIVE])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "gelu", "sin", "pow", "log1p", "expm1", "fmod", "atan2"])
def test_lesser_targets_are_within_the_bound(name, target, dtype):
    if not runnable(target):
        pytest.skip(f"this CPU does not run {target}")
    lanes = {"avx2": 8, "sse": 4, "scalar": 1}[target]
    if name in BINARY:
        x, y = pairs(DTYPES[dtype], 300)
        with np.errstate(all="ignore"):
            wanted = BINARY[name](x, y) if name in EXACT else BINARY[name](*(v.astype(np.longdouble) for v in (x, y)))
        found = mapped(function(name, dtype, lanes), dtype, lanes, 2, target)(x, y)
    else:
        x = numbers(DTYPES[dtype], 2000)
        if name in BY_MPMATH and dtype == "f64":
            x = within(name, x)[::40]
        wanted, found = exact(name, x), mapped(function(name, dtype, lanes), dtype, lanes, 1, target)(x)
    assert ulps(found, wanted).max() <= BOUND


@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="reads the assembly language of x86-64")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_function_calls_a_library(dtype, target):
    lanes = max(1, host_target(target).lanes(np.dtype(DTYPES[dtype]).itemsize))
    definitions = [function(name, dtype, lanes) for name in load_formulas()]
    text = gathered(definitions).replace("define internal", "define").replace("alwaysinline", "")
    called = re.findall(r"\s(?:call|jmp)q?\s+([A-Za-z_.][\w.]*)", assembly(text, host_target(target)))
    assert called
    assert [name for name in called if not name.startswith((".L", "dy2st."))] == []


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_numbers_next_to_multiples_of_half_pi(name):
    # nearest of all float64 to a multiple of pi / 2, and others that leave few bits of the fraction
    x = np.array([6381956970095103 * 2.0**797, 2.0**1023, 1e22, 2.0**20 * np.pi / 2, 3 * np.pi / 2, np.pi], np.float64)
    with mpmath.workdps(700):
        exact_values = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        wanted = np.array([np.longdouble(mpmath.nstr(v, 25)) for v in exact_values])
    for lanes in (1, 8):
        found = mapped(function(name, "f64", lanes), "f64", lanes, 1)(x)
        assert ulps(found, wanted).max() <= BOUND


@pytest.mark.slow
def test_coefficients_are_those_that_the_script_computes():
    script = Path(__file__).parents[5] / "benchmarks" / "minimax.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    computed: dict[str, object] = {}
    exec(printed, computed)
    kept = {name: value for name, value in vars(coefficients).items() if name.isupper()}
    assert kept == {name: value for name, value in computed.items() if name.isupper()}


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError, match="cube_root"):
        function("cube_root", "f32", 4)


def test_lanes_of_another_kind_are_refused():
    e = FormulaEmitter(4)
    with pytest.raises(TypeError, match="lanes of f64 where f32 is needed"):
        VectorValue(e, "f32", "%x") + VectorValue(e, "f64", "%y")


def test_edges_hold_every_special_number():
    assert {np.inf, -np.inf, 0.0} <= set(edges(np.float32).tolist())
