"""Native products with weights of integers, of many extents, beside what `eval` computes."""

import numpy as np
import pytest

from dy2st.errors import InvalidProgram
from dy2st.ir.checker.check import check
from dy2st.ir.opdef import lookup
from dy2st.ir.parser import parse
from dy2st.ir.program import Program
from dy2st.ops.core.base import Sample
from dy2st.ops.linalg.quantized import unpacked
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.ops.test_registry import built

PRODUCT, NUMBERS = lookup("quantized_matmul"), lookup("dequantize")
EXTENTS = [(2, 1), (4, 7), (10, 16), (50, 33), (100, 300), (400, 64)]
ROWS = (0, 1, 2, 5, 16, 17, 33, 140)


def weight(rng, n, k, bits, group):
    integers = rng.integers(-128, 128, size=(n * bits // 8, k), dtype=np.int8)
    scale = rng.random((k // group, n) if group else n, dtype=np.float32) / 100
    numbers = unpacked(np, integers) if bits == 4 else integers
    wide = np.repeat(scale.T, group, axis=1) if group else scale[:, None]
    return integers, scale, numbers.astype(np.float64) * wide


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("group", [0, 16])
def test_products_of_many_extents(bits, group, rng):
    for n, k in EXTENTS:
        k = k if not group else -(-k // 16) * 16
        integers, scale, numbers = weight(rng, n, k, bits, group)
        attributes = {"bits": bits, "group": group}
        x = rng.normal(size=(3, k)).astype(np.float32)
        native = NativePlan(Program({"main": built(PRODUCT, Sample((x, integers, scale), attributes), True)}))
        for m in ROWS:
            x = rng.normal(size=(m, k)).astype(np.float32)
            (found,) = native.run([x, integers, scale])
            bound = 1e-6 * np.abs(x).astype(np.float64) @ np.abs(numbers).T + 1e-7
            assert found.dtype == np.float32
            assert found.shape == (m, n)
            assert np.all(np.abs(found - x.astype(np.float64) @ numbers.T) <= bound), (m, n, k)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes(dtype, rng):
    integers, scale, numbers = weight(rng, 6, 20, 8, 0)
    x, scale = rng.normal(size=(4, 20)).astype(dtype), scale.astype(dtype)
    sample = Sample((x, integers, scale), {"bits": 8, "group": 0})
    (found,) = NativePlan(Program({"main": built(PRODUCT, sample, True)})).run([x, integers, scale])
    assert found.dtype == dtype
    assert np.allclose(found, x.astype(np.float64) @ numbers.T, rtol=5e-3 if dtype == "float16" else 1e-6)


def test_extents_that_differ(rng):
    integers, scale, _ = weight(rng, 6, 20, 8, 0)
    x = np.ones((2, 20), np.float32)
    native = NativePlan(Program({"main": built(PRODUCT, Sample((x, integers, scale), {"bits": 8, "group": 0}), True)}))
    with pytest.raises(ValueError, match=r"quantized_matmul: \[2, 19\] times 20 elements"):
        native.run([x[:, 1:].copy(), integers, scale])
    with pytest.raises(ValueError, match="scales of"):
        native.run([x, integers, scale[1:].copy()])


TEXT = """
program main
func main(%x: float32[4, 32], %w: int8[6, 32], %s: float32[SCALES]) {
  %0: float32[4, ROWS] = quantized_matmul(%x, %w, %s) {bits=BITS, group=GROUP}
  return %0
}
"""


@pytest.mark.parametrize(
    ("scales", "rows", "bits", "group", "said"),
    [
        ("6", 6, 8, 0, None),
        ("12", 12, 4, 0, None),
        ("2, 6", 6, 8, 16, None),
        ("5", 6, 8, 0, "rows 6 and 5 differ"),
        ("6", 6, 4, 0, "rows 12 and 6 differ"),
        ("3, 6", 6, 8, 16, "3 groups of 16 in 32"),
        ("4, 6", 6, 8, 8, "8 bits in groups of 8"),
        ("6", 6, 5, 0, "5 bits"),
    ],
)
def test_what_a_file_may_say(scales, rows, bits, group, said, monkeypatch):
    monkeypatch.setattr(PRODUCT, "infer", lambda x, w, s, **_: type(x)(x.dtype, (4, rows)))  # a forger's rule
    text = TEXT.replace("SCALES", scales).replace("ROWS", str(rows)).replace("BITS", str(bits))
    program = parse(text.replace("GROUP", str(group)))
    if said is None:
        check(program)
    else:
        with pytest.raises(InvalidProgram, match=said):
            check(program)
