"""Gathering and scattering, sorting and searching, sets."""

import numpy as np

from tests.values.operands import ROWS as INDEX
from tests.values.operands import TIES, A, B, C, I, P, Q, S, V, floats
from tests.values.row import EAGER, row

_FIXED = ("float64", "float32", "strided")
_PAIRS = np.array([[0, 1], [1, 2]])
_TWICE = np.array([1, 1])
_UNORDERED = np.array([2.0, np.nan, 5.0])
_REPEATED = np.array([3, 1, 1, 3, 3, 2])


def _put(x, index, values, axis, how):
    """Write values one by one along an axis."""
    x = x.copy()
    for place in np.ndindex(*index.shape):
        at = tuple(index[place] if d == axis else e for d, e in enumerate(place))
        x[at] = how(x[at], np.broadcast_to(values, index.shape)[place])
    return x


_W = floats(2, 3)
_AT = np.array([[0, 2, 0], [1, 1, 2]])
_HOWS = {"add": np.add, "mul": np.multiply, "multiply": np.multiply, "amin": np.minimum, "amax": np.maximum,
         "assign": lambda x, y: y}  # fmt: skip

ROWS = [
    row("gather", (A, INDEX), A[INDEX]),
    row("gather", (A, INDEX), A[:, INDEX], axis=1),
    row("gather", (A, np.array(1)), A[:, 1], axis=1),
    row("index_select", (A, INDEX), A[:, INDEX], axis=1),
    row("index_select", (A, INDEX[:0]), A[:0]),
    row("gather_nd", (C, _PAIRS), C[[0, 1], [1, 2]]).but(known_extents=True),
    row("gather_nd", (C, np.array([[1]])), C[1:]).but(known_extents=True),
    row("take", (A, np.array([-1, 4])), A.ravel()[[-1, 4]]),
    row("take", (A, np.array([[-1, 14]])), A.take([[-1, 14]], mode="wrap"), mode="wrap"),
    row("take", (A, np.array([-1, 14])), A.take([-1, 14], mode="clip"), mode="clip"),
    row("take_along_axis", (A, np.array([[0, 2]]), 1), np.take_along_axis(A, np.array([[0, 2]] * 2), 1)).but(
        known_extents=True),
    row("take_along_axis", (A, np.array([[0, 2]]), 1), A[:1, [0, 2]], broadcast=False),
    row("take_along_dim", (A, _AT, 1), np.take_along_axis(A, _AT, 1)),
    row("index_sample", (A, _AT), np.take_along_axis(A, _AT, 1)),
    row("multiplex", ([A, B], np.array([[1], [0]])), np.stack([B[0], A[1]])),
    row("masked_select", (A, A > 0.5), A[A > 0.5]),
    row("masked_select", (A, P), A[:, P].reshape(-1)).but(variants=_FIXED),
    row("masked_fill", (A, A > 0.5, 0.0), np.where(A > 0.5, 0.0, A)),
    row("masked_fill", (A, P, np.array(2.0)), np.where(P, 2.0, A)).but(known_extents=True),
    row("masked_scatter", (V, V > 2.5, A), np.array([A[0, 0], 1.0, 2.0, A[0, 1]])),
    row("index_add", (S, np.array([2, 2]), 0, A), np.stack([S[0], S[1], S[2] + A[0] + A[1]])),
    row("index_add", (S, np.array([2, 0]), 1, A.T[:3, :2]), S + np.stack([A[1], A[1] * 0, A[0]], 1)),
    row("index_fill", (S, np.array([2, 0]), 0, 9.0), np.stack([[9.0] * 3, S[1], [9.0] * 3])),
    row("index_fill", (S, np.array([1]), 1, np.array(9.0)), np.stack([S[:, 0], [9.0] * 3, S[:, 2]], 1)),
    row("index_put", (V, [_TWICE], np.array([1.0, 2.0])), V + [0, 3, 0, 0], accumulate=True),
    row("index_put", (C, [np.array([0, 1]), np.array([1, 2])], np.array(7.0)),
        np.where([[[0], [1], [0]], [[0], [0], [1]]], 7.0, C)),
    row("scatter", (S, np.array([2, 0]), A), np.stack([A[1], S[1], A[0]])),
    row("scatter", (S, np.array([2, 2]), A), np.stack([S[0], S[1], A[0] + A[1]]), overwrite=False),
    row("scatter_nd_add", (V, np.array([[1], [1]]), np.array([1.0, 2.0])), V + [0, 3, 0, 0]).but(known_extents=True),
    row("scatter_nd", (np.array([[1], [1]]), np.array([1.0, 2.0]), [4]),
        np.array([0.0, 3, 0, 0])).but(known_extents=True),
    row("scatter_add", (S, 1, _AT, _W), np.concatenate([_put(S[:2], _AT, _W, 1, np.add), S[2:]])),
    *(row("put_along_axis", (A, _AT, _W, 1), _put(A, _AT, _W, 1, f), reduce=how) for how, f in _HOWS.items()),
    row("put_along_axis", (A, np.array([[2]]), 7.0, 1), np.array([[*A[0, :2], 7.0], [*A[1, :2], 7.0]])),
    row("put_along_axis", (A, np.array([[2]]), np.array([[7.0]]), 1), np.array([[*A[0, :2], 7.0], A[1]]),
        broadcast=False),
    row("put_along_axis", (V, _TWICE, np.array([2.0, 3.0]), 0), np.array([3.0, 2, 2, 5]), reduce="mean"),
    row("put_along_axis", (V, _TWICE, np.array([2.0, 3.0]), 0), np.array([3.0, 6, 2, 5]), reduce="mul",
        include_self=False),
    row("put_along_axis", (V, _TWICE, np.array([2.0, 3.0]), 0), np.array([3.0, 5, 2, 5]), reduce="add",
        include_self=False),
    row("put_along_axis", (V, _TWICE, np.array([0.2, 0.5]), 0), np.array([3.0, 0.5, 2, 5]), reduce="amax",
        include_self=False).but(tolerance=(1e-7, 1e-5)),
    *(row("scatter_reduce", (A, 1, _AT, _W, how), _put(A, _AT, _W, 1, f)) for how, f in {
        "sum": np.add, "prod": np.multiply, "amin": np.minimum, "amax": np.maximum}.items()),
    row("scatter_reduce", (V, 0, _TWICE, np.array([2.0, 4.0]), "mean"), np.array([3.0, 3, 2, 5]), include_self=False),
    row("sort", (C,), np.sort(C)),
    row("sort", (C,), -np.sort(-C, 1), axis=1, descending=True),
    row("sort", (TIES,), np.sort(TIES), stable=True),
    row("argsort", (C,), np.argsort(C, 1), axis=1),
    row("argsort", (C,), np.argsort(-C), descending=True),
    row("argsort", (TIES,), np.argsort(TIES, kind="stable"), stable=True),
    row("argsort", (TIES,), np.argsort(-TIES, kind="stable"), stable=True, descending=True),
    row("topk", (V, 2), (np.array([5.0, 3.0]), np.array([3, 0]))),
    row("topk", (V, 2), (np.array([1.0, 2.0]), np.array([1, 2])), largest=False),
    row("topk", (C, 1), (C.max(0, keepdims=True), C.argmax(0)[None]), axis=0),
    row("topk", (V, np.array(2)), (np.array([5.0, 3.0]), np.array([3, 0])), sorted=True).but(variants=_FIXED),
    row("kthvalue", (V, 2), (np.asarray(2.0), np.asarray(2))),
    row("kthvalue", (C, 1), (C.min(1, keepdims=True), C.argmin(1)[:, None]), axis=1, keepdim=True),
    row("searchsorted", (np.sort(V), A * 5), np.searchsorted(np.sort(V), A * 5)),
    row("searchsorted", (np.sort(V), V), np.searchsorted(np.sort(V), V, "right"), right=True),
    row("searchsorted", (np.sort(V), V), np.searchsorted(np.sort(V), V, "right"), side="right"),
    row("searchsorted", (V, V), np.searchsorted(V, V, sorter=np.argsort(V)),
        sorter=np.argsort(V)).but(variants=("float64",)),
    row("searchsorted", (np.sort(A), B), np.stack([np.searchsorted(*p) for p in zip(np.sort(A),
        B)])).but(known_extents=True),
    row("bucketize", (V, np.sort(V)), np.searchsorted(np.sort(V), V).astype(np.int32), out_int32=True),
    row("bucketize", (V, np.sort(V)), np.searchsorted(np.sort(V), V, "right"), right=True),
    *(row("searchsorted", (line, _UNORDERED), np.searchsorted(line, _UNORDERED, side), side=side)
      for line in (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, np.nan, np.nan])) for side in ("left", "right")),
    row("bucketize", (np.array(np.nan), np.sort(V)), np.asarray(len(V))),
    row("nonzero", (I * Q,), np.argwhere(I * Q)),
    row("nonzero", (Q,), tuple(np.nonzero(Q)), as_tuple=True).but(variants=_FIXED),
    row("argwhere", (Q,), np.argwhere(Q)),
    row("unique", (_REPEATED,), np.array([1, 2, 3])),
    row("unique", (_REPEATED,), tuple(np.unique(_REPEATED, True, True, True)), return_index=True, return_inverse=True,
        return_counts=True),
    row("unique", (np.array([np.nan, -1.0, np.nan, 0.5]),), np.array([-1.0, 0.5, np.nan])),
    row("unique", (np.array([[True, False], [True, True]]),), (np.array([False, True]), np.array([1, 3])),
        return_counts=True),
    row("unique", (_REPEATED,), (np.array([1, 2, 3]), np.array([2, 1, 3], np.int32)), return_counts=True,
        dtype="int32"),
    row("unique", (np.array([[1, 0], [1, 0], [0, 2]]),), np.array([[0, 2], [1, 0]]), axis=0).but(variants=EAGER),
    row("unique_consecutive", (_REPEATED,), np.array([3, 1, 3, 2])),
    row("unique_consecutive", (_REPEATED,), (np.array([3, 1, 3, 2]), np.array([0, 1, 1, 2, 2, 3]),
        np.array([1, 2, 2, 1])),
        return_inverse=True, return_counts=True),
    row("unique_consecutive", (np.array([[1, 0], [1, 0], [0, 2]]),), np.array([[1, 0], [0, 2]]),
        axis=0).but(variants=EAGER),
    row("nn.functional.gather_tree", (np.array([[[2, 2]], [[3, 4]], [[5, 6]]]),
        np.array([[[0, 0]], [[1, 0]], [[1, 0]]])),
        np.array([[[2, 2]], [[4, 3]], [[5, 6]]])),
]  # fmt: skip
