"""What AVX-512 has one instruction for gives the bits of the definition that every target has."""

import numpy as np
import pytest

from dy2st.records import replace
from dy2st.runtime.backends.cpu.compile_link.target import host_target
from dy2st.runtime.backends.cpu.libm import function
from dy2st.runtime.backends.cpu.libm.target_overrides import better_definitions
from tests.runtime.backends.cpu.accuracy import numbers
from tests.runtime.backends.cpu.native import DTYPES, mapped, runnable


def better(definition):
    found = better_definitions(host_target("avx512"))
    return replace(definition, needs=tuple(found(need.name) or need for need in definition.needs))


@pytest.mark.skipif(not runnable("avx512"), reason="this CPU has no AVX-512")
@pytest.mark.parametrize("vectors", [1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "silu", "gelu", "gelu_tanh"])
def test_the_bits_are_the_same(name, dtype, vectors):
    lanes = vectors * (16 if dtype == "f32" else 8)
    plain = function(name, dtype, lanes)
    assert "scalef" in "".join(need.text for need in better(plain).needs)
    x = np.concatenate([numbers(DTYPES[dtype], 4000), np.linspace(-1100, 1100, 5001).astype(DTYPES[dtype])])
    found, wanted = (mapped(d, dtype, lanes, 1)(x) for d in (better(plain), plain))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_other_targets_have_none():
    assert better_definitions(host_target("avx2"))("dy2st.scaled.f32.16") is None
