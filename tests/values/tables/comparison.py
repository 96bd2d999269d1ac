"""Comparisons, logic, bits, and what asks about the kind of a number."""

import numpy as np

from tests.values.operands import HOLED, A, B, C, I, J, N, P, Q, V
from tests.values.row import everywhere, row

_BINARY = {
    "equal": np.equal, "not_equal": np.not_equal, "less_than": np.less, "less_equal": np.less_equal,
    "greater_than": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "isclose": np.isclose,
}  # fmt: skip
_UNARY = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf, "isneginf": np.isneginf,
    "signbit": np.signbit, "logical_not": np.logical_not,
}  # fmt: skip
_BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
_SHIFTS = {"bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}

ROWS = [
    *(r for name, f in _UNARY.items() for r in everywhere(name, f, C)),
    *(r for name, f in _BINARY.items() for r in everywhere(name, f, np.round(A * 4), np.round(B * 4))),
    *(r for name, f in (_BITS | _SHIFTS).items() for r in everywhere(name, f, I, J)),
    *(row(name, (Q, P), f(Q, P)).but(known_extents=True) for name, f in _BITS.items()),
    *(row(name, (I, J), f(I, J)) for name, f in _BINARY.items() if name != "isclose"),
    row("bitwise_right_shift", (J.astype(np.uint8), 1), J.astype(np.uint8) >> 1, is_arithmetic=False),
    row("bitwise_not", (I,), ~I),
    row("bitwise_not", (P,), ~P),
    row("isclose", (A, A * 1.01), np.ones((2, 3), bool), rtol=0.02),
    row("isclose", (A, A + 0.01), np.ones((2, 3), bool), atol=0.02),
    row("isclose", (N, N), np.isclose(N, N, equal_nan=True), equal_nan=True),
    row("allclose", (A, A + 1e-12), np.asarray(True)),
    row("allclose", (A, A + 0.01), np.asarray(True), atol=0.02),
    row("allclose", (A, A * 1.01), np.asarray(True), rtol=0.02),
    row("allclose", (HOLED, HOLED), np.asarray(False)),
    row("allclose", (HOLED, HOLED), np.asarray(True), equal_nan=True),
    row("equal_all", (A, A), np.asarray(True)),
    row("equal_all", (A, A[:1]), np.asarray(False)),
    row("equal_all", (A, A[0]), np.asarray(False)),
    row("where", (A > B, A, B), np.where(A > B, A, B)),
    row("where", (P, A, 0.5), np.where(P, A, 0.5)).but(known_extents=True),
    row("where", (Q,), tuple(np.nonzero(Q))).only("float64"),
    row("isin", (I, J), np.isin(I, J)).but(known_extents=True),
    row("isin", (I, J), np.isin(I, J, invert=True), invert=True).but(known_extents=True),
    row("is_empty", (A[:0],), np.asarray(True)).but(known_extents=True),
    row("is_empty", (A,), np.asarray(False)).but(known_extents=True),
    row("is_floating_point", (A,), True),
    row("is_floating_point", (I,), False),
    row("is_integer", (I,), True),
    row("is_integer", (A,), False),
    row("is_complex", (A,), False),
    row("is_complex", (A + 1j,), True).but(variants=("float64", "float32")),
    row("is_tensor", (V,), True),
]  # fmt: skip
