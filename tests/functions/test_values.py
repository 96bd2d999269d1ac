"""Every function against NumPy, from one table: eagerly, and recorded into a Program of symbolic extents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as special

import dy2st as paddle
from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.context import replaced
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ir.verifier import verify
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.recorder import Recorder
from dy2st.runtime.scalar import Scalar
from dy2st.runtime.tensor import Tensor
from dy2st.shapes import symbol

R = np.random.default_rng(0)
A = R.uniform(0.2, 0.9, (2, 3))
B = R.uniform(0.2, 0.9, (2, 3))
S = R.normal(size=(3, 3))
C = R.normal(size=(2, 3, 4))
I = R.integers(-9, 9, (2, 3))
J = R.integers(1, 9, (2, 3))
P = np.array([True, False, True])
N = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
V = np.array([3.0, 1.0, 2.0, 5.0])
ROWS = np.array([1, 0, 1])

UNARY: dict[str, Any] = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "deg2rad": np.deg2rad, "digamma": special.digamma,
    "erf": special.erf, "erfinv": special.erfinv, "exp": np.exp, "expm1": np.expm1, "floor": np.floor,
    "frac": lambda x: x - np.trunc(x), "gammaln": special.gammaln, "lgamma": special.gammaln, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logit": special.logit, "neg": np.negative,
    "negative": np.negative, "positive": np.positive, "rad2deg": np.rad2deg, "reciprocal": np.reciprocal,
    "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x), "sgn": np.sign, "sign": np.sign, "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "stanh": lambda x: 1.7159 * np.tanh(0.67 * x),
    "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "signbit": np.signbit, "logical_not": np.logical_not, "isposinf": np.isposinf, "isneginf": np.isneginf,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "true_divide": np.divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "mod": np.mod, "floor_mod": np.mod, "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2,
    "hypot": np.hypot, "logaddexp": np.logaddexp, "ldexp": lambda x, y: x * 2.0**y, "copysign": np.copysign,
    "heaviside": np.heaviside, "equal": np.equal, "not_equal": np.not_equal, "less_than": np.less,
    "less_equal": np.less_equal, "greater_than": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "isclose": np.isclose, "dot": lambda x, y: (x * y).sum(-1), "inner": np.inner, "outer": np.outer,
    "kron": np.kron, "vecdot": lambda x, y: (x * y).sum(-1), "dist": lambda x, y: np.linalg.norm(x - y),
}  # fmt: skip
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
        "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}  # fmt: skip

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    *((name, (A,), {}, f(A)) for name, f in UNARY.items()),
    *((name, (A, B), {}, f(A, B)) for name, f in BINARY.items()),
    *((name, (I, J), {}, f(I, J)) for name, f in BITS.items()),
    ("acosh", (A + 1,), {}, np.arccosh(A + 1)),
    ("bitwise_not", (I,), {}, ~I),
    ("logical_not", (I,), {}, I == 0),
    ("isnan", (N,), {}, np.isnan(N)),
    ("isinf", (N,), {}, np.isinf(N)),
    ("isposinf", (N,), {}, np.isposinf(N)),
    ("isneginf", (N,), {}, np.isneginf(N)),
    ("nan_to_num", (N,), {"nan": 2.0, "posinf": 3.0, "neginf": 4.0}, np.nan_to_num(N, nan=2.0, posinf=3.0, neginf=4.0)),
    ("nan_to_num", (N,), {}, np.nan_to_num(N)),
    ("round", (C,), {"decimals": 1}, np.round(C, 1)),
    ("divide", (I, J), {"rounding_mode": "floor"}, I // J),
    ("divide", (I, J), {"rounding_mode": "trunc"}, np.trunc(I / J).astype(np.int64)),
    ("add", (A, B), {"alpha": 2.0}, A + 2 * B),
    ("subtract", (A, B), {"alpha": 2.0}, A - 2 * B),
    ("scale", (A,), {"scale": 2.0, "bias": 1.0}, A * 2 + 1),
    ("scale", (A,), {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}, (A + 1) * 2),
    ("clip", (C,), {"min": -0.5, "max": 0.5}, np.clip(C, -0.5, 0.5)),
    ("lerp", (A, B), {"weight": 0.3}, A + 0.3 * (B - A)),
    ("polygamma", (A,), {"n": 1}, special.polygamma(1, A)),
    ("logit", (A,), {"eps": 0.4}, special.logit(np.clip(A, 0.4, 0.6))),
    ("add_n", ([A, B, A],), {}, A + B + A),
    ("where", (A > B, A, B), {}, np.where(A > B, A, B)),
    ("allclose", (A, A + 1e-12), {}, np.asarray(True)),
    ("equal_all", (A, A), {}, np.asarray(True)),
    ("equal_all", (A, A[0]), {}, np.asarray(False)),
    ("sum", (C,), {}, C.sum()),
    ("sum", (I,), {"axis": [0, -1], "keepdim": True}, I.sum(keepdims=True)),
    ("sum", (P,), {}, np.asarray(2)),
    ("mean", (C,), {"axis": 1}, C.mean(1)),
    ("prod", (C,), {"axis": -1}, C.prod(-1)),
    ("max", (C,), {"axis": [0, 1]}, C.max((0, 1))),
    ("min", (C,), {}, C.min()),
    ("amax", (C,), {"axis": 0}, C.max(0)),
    ("amin", (C,), {"axis": 0}, C.min(0)),
    ("all", (P,), {}, np.asarray(False)),
    ("any", (P,), {"axis": 0, "keepdim": True}, np.array([True])),
    ("argmax", (C,), {"axis": 1}, C.argmax(1)),
    ("argmax", (C,), {}, C.argmax()),
    ("argmin", (C,), {"axis": -1, "keepdim": True}, C.argmin(-1, keepdims=True)),
    ("logsumexp", (C,), {"axis": 1}, special.logsumexp(C, axis=1)),
    ("count_nonzero", (I,), {"axis": 0}, np.count_nonzero(I, 0)),
    ("nansum", (N[:2],), {}, np.asarray(1.0)),
    ("nanmean", (np.array([[1.0, np.nan], [3.0, 5.0]]),), {"axis": 1}, np.array([1.0, 4.0])),
    ("var", (C,), {"axis": 1}, C.var(1, ddof=1)),
    ("var", (C,), {"unbiased": False}, C.var()),
    ("std", (C,), {"axis": [0, 2], "keepdim": True}, C.std((0, 2), ddof=1, keepdims=True)),
    ("cumsum", (C,), {"axis": 1}, C.cumsum(1)),
    ("cumsum", (C,), {}, C.cumsum()),
    ("cumprod", (C,), {"dim": -1}, C.cumprod(-1)),
    ("logcumsumexp", (C,), {"axis": 1}, np.log(np.exp(C).cumsum(1))),
    ("cummax", (C,), {"axis": 1}, (np.maximum.accumulate(C, 1), None)),
    ("cummin", (C,), {"axis": 1}, (np.minimum.accumulate(C, 1), None)),
    ("median", (C,), {"axis": 1}, np.median(C, 1)),
    ("median", (V,), {}, np.median(V)),
    ("median", (V,), {"mode": "min"}, np.asarray(2.0)),
    ("matmul", (S, S), {}, S @ S),
    ("matmul", (C, C), {"transpose_y": True}, C @ C.swapaxes(-1, -2)),
    ("matmul", (C, C), {"transpose_x": True}, C.swapaxes(-1, -2) @ C),
    ("matmul", (V, V), {}, V @ V),
    ("matmul", (C, V), {}, C @ V),
    ("matmul", (S[0], C), {}, S[0] @ C),
    ("matmul", (C[:, None], C[0].T), {}, C[:, None] @ C[0].T),
    ("mm", (S, S), {}, S @ S),
    ("bmm", (C, C.swapaxes(1, 2)), {}, C @ C.swapaxes(1, 2)),
    ("mv", (S, S[0]), {}, S @ S[0]),
    ("addmm", (S, S, S), {"beta": 0.5, "alpha": 2.0}, 0.5 * S + 2 * S @ S),
    ("tensordot", (C, C), {"axes": [[1, 2], [1, 2]]}, np.tensordot(C, C, [[1, 2], [1, 2]])),
    ("tensordot", (A, S), {"axes": 1}, np.tensordot(A, S, 1)),
    ("norm", (C,), {}, np.linalg.norm(C)),
    ("norm", (C,), {"p": 3, "axis": 1}, np.linalg.norm(C, 3, 1)),
    ("norm", (C,), {"p": 1, "axis": [1, 2]}, np.linalg.norm(C, 1, (1, 2))),
    ("norm", (C,), {"p": float("inf"), "axis": -1, "keepdim": True}, np.linalg.norm(C, np.inf, -1, keepdims=True)),
    ("norm", (C,), {"p": 0, "axis": -1}, np.linalg.norm(C, 0, -1)),
    ("t", (A,), {}, A.T),
    ("matrix_transpose", (C,), {}, C.swapaxes(1, 2)),
    ("trace", (S,), {"offset": 1}, np.trace(S, 1)),
    ("cross", (S, S[::-1].copy()), {"axis": 1}, np.cross(S, S[::-1])),
    ("cast", (A,), {"dtype": "int32"}, A.astype(np.int32)),
    ("reshape", (C,), {"shape": [4, -1]}, C.reshape(4, -1)),
    ("reshape", (C,), {"shape": [0, -1]}, C.reshape(2, -1)),
    ("flatten", (C,), {"start_axis": 1}, C.reshape(2, 12)),
    ("ravel", (C,), {}, C.ravel()),
    ("unflatten", (C,), {"axis": 2, "shape": [2, -1]}, C.reshape(2, 3, 2, 2)),
    ("transpose", (C,), {"perm": [2, 0, 1]}, C.transpose(2, 0, 1)),
    ("swapaxes", (C, 0, 2), {}, C.swapaxes(0, 2)),
    ("moveaxis", (C, [0, 1], [2, 0]), {}, np.moveaxis(C, [0, 1], [2, 0])),
    ("squeeze", (C[:1],), {}, C[0]),
    ("squeeze", (C[:1],), {"axis": 1}, C[:1]),
    ("unsqueeze", (A,), {"axis": [0, -1]}, A[None, :, :, None]),
    ("concat", ([A, B],), {"axis": -1}, np.concatenate([A, B], -1)),
    ("stack", ([A, B],), {"axis": 1}, np.stack([A, B], 1)),
    ("split", (C, 2), {"axis": 2}, tuple(np.split(C, 2, 2))),
    ("split", (C, [1, -1]), {"axis": 1}, tuple(np.split(C, [1], 1))),
    ("chunk", (C, 3), {"axis": 1}, tuple(np.split(C, 3, 1))),
    ("tensor_split", (C, 3), {"axis": 2}, tuple(np.array_split(C, 3, 2))),
    ("tensor_split", (C, [1, 3]), {"axis": 2}, tuple(np.split(C, [1, 3], 2))),
    ("unbind", (C,), {"axis": 1}, tuple(C[:, i] for i in range(3))),
    ("unstack", (C,), {"axis": 1}, tuple(C[:, i] for i in range(3))),
    ("expand", (A,), {"shape": [4, -1, 3]}, np.broadcast_to(A, (4, 2, 3))),
    ("broadcast_to", (A[:1],), {"shape": [2, 3]}, np.broadcast_to(A[:1], (2, 3))),
    ("expand_as", (A, C.transpose(2, 0, 1)), {}, np.broadcast_to(A, (4, 2, 3))),
    ("broadcast_tensors", ([A[:1], A[:, :1]],), {}, tuple(np.broadcast_arrays(A[:1], A[:, :1]))),
    ("tile", (A,), {"repeat_times": [2, 1, 3]}, np.tile(A, (2, 1, 3))),
    ("repeat_interleave", (A, 2), {"axis": 1}, A.repeat(2, 1)),
    ("repeat_interleave", (A, [2, 0]), {"axis": 0}, A.repeat([2, 0], 0)),
    ("flip", (C,), {"axis": [0, 2]}, np.flip(C, (0, 2))),
    ("rot90", (C,), {"k": 1, "axes": [0, 2]}, np.rot90(C, 1, (0, 2))),
    ("rot90", (C,), {"k": 3, "axes": [0, 2]}, np.rot90(C, 3, (0, 2))),
    ("roll", (C, [1, -2]), {"axis": [0, 2]}, np.roll(C, (1, -2), (0, 2))),
    ("roll", (C, 5), {}, np.roll(C, 5)),
    ("tril", (C,), {"diagonal": 1}, np.tril(C, 1)),
    ("triu", (C,), {"diagonal": -1}, np.triu(C, -1)),
    ("diagonal", (C,), {"offset": 1, "axis1": 0, "axis2": 2}, np.diagonal(C, 1, 0, 2)),
    ("diag", (S,), {"offset": -1}, np.diag(S, -1)),
    ("diag", (V,), {"offset": 1, "padding_value": 7}, np.diag(V, 1) + 7 * (np.eye(5, k=1) == 0)),
    ("diagflat", (A,), {}, np.diagflat(A)),
    ("diag_embed", (A,), {}, np.stack([np.diag(a) for a in A])),
    ("meshgrid", (V, ROWS), {}, tuple(np.meshgrid(V, ROWS, indexing="ij"))),
    ("zeros_like", (A,), {}, np.zeros_like(A)),
    ("ones_like", (A,), {"dtype": "int32"}, np.ones((2, 3), np.int32)),
    ("full_like", (A, 3), {}, np.full((2, 3), 3.0)),
    ("shape", (C,), {}, np.array([2, 3, 4], np.int32)),
    ("numel", (C,), {}, np.asarray(24)),
    ("rank", (C,), {}, np.asarray(3, np.int32)),
    ("sort", (C,), {"axis": 1, "descending": True}, -np.sort(-C, 1)),
    ("argsort", (C,), {"axis": 1}, np.argsort(C, 1)),
    ("msort", (C,), {}, np.sort(C, 0)),
    ("topk", (V, 2), {}, (np.array([5.0, 3.0]), np.array([3, 0]))),
    ("kthvalue", (V, 2), {}, (np.asarray(2.0), np.asarray(2))),
    ("gather", (A, ROWS), {}, A[ROWS]),
    ("gather", (A, ROWS), {"axis": 1}, A[:, ROWS]),
    ("index_select", (A, ROWS), {"axis": 1}, A[:, ROWS]),
    ("take", (A, np.array([-1, 4])), {}, A.ravel()[[-1, 4]]),
    ("take", (A, np.array([-1, 14])), {"mode": "wrap"}, A.take([-1, 14], mode="wrap")),
    ("take", (A, np.array([-1, 14])), {"mode": "clip"}, A.take([-1, 14], mode="clip")),
    ("gather_nd", (C, np.array([[0, 1], [1, 2]])), {}, C[[0, 1], [1, 2]]),
    ("scatter_nd_add", (V, np.array([[1], [1]]), np.array([1.0, 2.0])), {}, V + [0, 3, 0, 0]),
    ("scatter_nd", (np.array([[1], [1]]), np.array([1.0, 2.0]), [4]), {}, np.array([0.0, 3, 0, 0])),
    ("scatter", (S, np.array([2, 0]), A), {}, np.stack([A[1], S[1], A[0]])),
    ("scatter", (S, np.array([2, 2]), A), {"overwrite": False}, np.stack([S[0], S[1], A[0] + A[1]])),
    ("index_add", (S, np.array([2, 2]), 0, A), {}, np.stack([S[0], S[1], S[2] + A[0] + A[1]])),
    ("index_fill", (S, np.array([2, 0]), 0, 9.0), {}, np.stack([[9.0] * 3, S[1], [9.0] * 3])),
    ("index_put", (V, [np.array([1, 1])], np.array([1.0, 2.0])), {"accumulate": True}, V + [0, 3, 0, 0]),
    ("index_sample", (A, np.array([[0, 2], [1, 1]])), {}, np.take_along_axis(A, np.array([[0, 2], [1, 1]]), 1)),
    ("take_along_axis", (A, np.array([[0, 2]]), 1), {}, np.take_along_axis(A, np.array([[0, 2]] * 2), 1)),
    ("put_along_axis", (S, np.array([[2, 0, 1]]), 7.0, 0), {},
     np.where(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool), 7.0, S)),
    ("put_along_axis", (V, np.array([1, 1]), np.array([2.0, 3.0]), 0, "mul"), {}, V * [1, 6, 1, 1]),
    ("put_along_axis", (V, np.array([1, 1]), np.array([2.0, 3.0]), 0, "amax"), {}, np.array([3.0, 3, 2, 5])),
    ("put_along_axis", (V, np.array([1, 1]), np.array([2.0, 3.0]), 0, "mean"), {}, np.array([3.0, 2, 2, 5])),
    ("put_along_axis", (V, np.array([0, 0]), np.array([2.0, 1.0]), 0, "amax"), {"include_self": False},
     np.array([2.0, 1, 2, 5])),
    ("masked_select", (A, A > 0.5), {}, A[A > 0.5]),
    ("masked_fill", (A, A > 0.5, 0.0), {}, np.where(A > 0.5, 0.0, A)),
    ("masked_scatter", (V, np.array([True, False, True, False]), A), {}, np.array([A[0, 0], 1.0, A[0, 1], 5.0])),
    ("nonzero", (I,), {}, np.argwhere(I)),
    ("searchsorted", (np.sort(V), A * 5), {}, np.searchsorted(np.sort(V), A * 5)),
    ("searchsorted", (V, V), {"sorter": np.argsort(V)}, np.searchsorted(V, V, sorter=np.argsort(V))),
    ("searchsorted", (np.sort(V), V), {"right": True}, np.searchsorted(np.sort(V), V, "right")),
    ("bucketize", (V, np.sort(V)), {"out_int32": True}, np.searchsorted(np.sort(V), V).astype(np.int32)),
    ("slice", (C, [1, 2], [0, -3], [2, 100]), {}, C[:, 0:2, -3:100]),
    ("strided_slice", (C, [2], [-1], [-100], [-2]), {}, C[:, :, ::-2]),
    ("crop", (C,), {"shape": [1, -1, 2], "offsets": [1, 1, 2]}, C[1:2, 1:, 2:4]),
    ("narrow", (C, 2, 1, 2), {}, C[:, :, 1:3]),
    ("multiplex", ([A, B], np.array([[1], [0]])), {}, np.stack([B[0], A[1]])),
]  # fmt: skip
IDS = [f"{i}-{name}" for i, (name, *_) in enumerate(CASES)]
KNOWN_EXTENTS_ONLY = {"numel", "unbind", "unstack", "squeeze", "split", "tensor_split", "chunk", "repeat_interleave",
                      "cross", "gather_nd", "scatter_nd", "scatter_nd_add", "equal_all"}  # fmt: skip


def to_tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return paddle.to_tensor(value)
    return [to_tensors(v) for v in value] if isinstance(value, list) and value and _has_array(value) else value


def _has_array(value: list[Any]) -> bool:
    return any(isinstance(v, np.ndarray) for v in value)


def check(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            if w is not None:
                check(g, w)
        return
    want = np.asarray(want)
    assert got.shape == list(want.shape)
    assert got.numpy().dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "args", "keywords", "want"), CASES, ids=IDS)
def test_function_gives_what_numpy_gives(name: str, args: Any, keywords: Any, want: Any) -> None:
    check(getattr(paddle, name)(*map(to_tensors, args), **keywords), want)


@pytest.mark.parametrize(("name", "args", "keywords", "want"), CASES, ids=IDS)
def test_function_recorded_into_a_program_gives_the_same(name: str, args: Any, keywords: Any, want: Any) -> None:
    arrays: list[np.ndarray] = []
    b = Builder()
    symbolic = name not in KNOWN_EXTENTS_ONLY

    def stand_in(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            named = tuple(symbol(f"E{e}") if e > 1 and symbolic else e for e in value.shape)
            return Tensor(b.argument(TensorType(of_array(value), named)))
        return [stand_in(v) for v in value] if isinstance(value, list) and value and _has_array(value) else value

    operands = [stand_in(a) for a in args]
    with replaced(trace=(recorder := Recorder(b))):
        results = getattr(paddle, name)(*operands, **keywords)
    found = list(results) if isinstance(results, (list, tuple)) else [results]
    b.block.results = [b.use(r.value if isinstance(r, Scalar) else recorder.value_of(r)) for r in found]
    program = Program({"main": b.block})
    verify(program)
    got = [Tensor(v) for v in Compiled(program).run(arrays, np)]
    check(tuple(got) if isinstance(results, (list, tuple)) else got[0], want)
