"""Tensors from numbers, arrays and shapes."""

import numpy as np

from tests.values.operands import A, C, I
from tests.values.row import Row, row

_ONE = ("float64", "program")


def made(name, args, want, **keywords) -> Row:
    """Return a row whose result has a dtype of its own."""
    return row(name, args, want, **keywords).but(variants=_ONE)


_F = np.float32
ROWS = [
    made("zeros", ([2, 3],), np.zeros((2, 3), _F)),
    made("zeros", ([2, 0],), np.zeros((2, 0), np.int16), dtype="int16"),
    made("ones", ([2, 3],), np.ones((2, 3), _F)),
    made("ones", ([],), np.ones((), np.float64), dtype="float64"),
    made("full", ([2, 3], 1.5), np.full((2, 3), 1.5, _F)),
    made("full", ([2], 3), np.full(2, 3, _F)),
    made("full", ([2], True), np.full(2, True)),
    made("full", ([2], 3), np.full(2, 3.0), dtype="float64"),
    made("tensor.fill_constant", ([2], "int64", 3), np.full(2, 3)),
    made("arange", (5,), np.arange(5)),
    made("arange", (2, 9, 3), np.arange(2, 9, 3)),
    made("arange", (1.0, 0.0, -0.25), np.arange(1, 0, -0.25, _F)),
    made("arange", (3,), np.arange(3.0), dtype="float64"),
    made("range", (1, 7, 2), np.arange(1, 8, 2, np.float32)),
    made("linspace", (0, 1, 5), np.linspace(0, 1, 5, dtype=_F)),
    made("linspace", (3, -1, 4), np.linspace(3, -1, 4), dtype="float64"),
    made("linspace", (2, 5, 1), np.array([2.0]), dtype="float64"),
    made("logspace", (0, 2, 3), np.logspace(0, 2, 3), dtype="float64"),
    made("logspace", (0, 3, 4), np.logspace(0, 3, 4, base=2), base=2.0, dtype="float64"),
    made("eye", (3,), np.eye(3, dtype=_F)),
    made("eye", (2,), np.eye(2, 4, dtype=np.int32), num_columns=4, dtype="int32"),
    made("tril_indices", (3, 4), np.stack(np.tril_indices(3, 0, 4))),
    made("tril_indices", (3, 4), np.stack(np.tril_indices(3, -1, 4)).astype(np.int32), offset=-1, dtype="int32"),
    made("triu_indices", (3,), np.stack(np.triu_indices(3))),
    made("triu_indices", (3, 4), np.stack(np.triu_indices(3, 1, 4)).astype(np.int32), offset=1, dtype="int32"),
    row("zeros_like", (C,), np.zeros_like(C)),
    made("zeros_like", (C,), np.zeros(C.shape, np.int32), dtype="int32"),
    row("ones_like", (C,), np.ones_like(C)),
    made("ones_like", (I,), np.ones(I.shape), dtype="float64"),
    row("full_like", (A, 3), np.full((2, 3), 3.0)),
    made("full_like", (A, 3), np.full((2, 3), 3), dtype="int64"),
    made("to_tensor", ([1.5, 2.0],), np.array([1.5, 2.0], _F)),
    made("to_tensor", ([1, 2],), np.array([1, 2])),
    made("to_tensor", ([[True], [False]],), np.array([[True], [False]])),
    made("to_tensor", (3,), np.asarray(3)),
    made("to_tensor", ([1, 2],), np.array([1.0, 2.0]), dtype="float64"),
    made("to_tensor", ([1.0, 2.5],), np.array([1, 2], np.int32), dtype="int32"),
    made("to_tensor", ([1 + 2j],), np.array([1 + 2j], np.complex64)),
    made("assign", ([1.5, 2.0],), np.array([1.5, 2.0])),
    made("as_tensor", ([1, 2],), np.array([1, 2], np.float64), dtype="float64"),
    made("asarray", ([1, 2],), np.array([1, 2])),
    row("tensor.to_tensor", (A,), A).but(variants=("float64",)),
]  # fmt: skip
