"""Brackets with tensors and masks as native code: reads, writes, additions, their derivatives and their errors."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from tests.runtime.backends.cpu.native import Guarded, same_natively

ROWS, COLUMNS = np.array([[2, 0], [-1, 2]]), np.array([1, -1], "int32")
BRACKETS = {
    "rows": lambda x, i, j, m, k: (i,),
    "a row": lambda x, i, j, m, k: (k,),
    "a place": lambda x, i, j, m, k: (k, k, k),
    "between": lambda x, i, j, m, k: (slice(None), k, slice(1, None)),
    "pairs": lambda x, i, j, m, k: (i, j),
    "pairs behind": lambda x, i, j, m, k: (slice(None), i, j),
    "apart": lambda x, i, j, m, k: (i, slice(0, 2), j),
    "a grid": lambda x, i, j, m, k: (i[:, :, None], j[None, None]),
    "with an int": lambda x, i, j, m, k: (1, j),
    "an int apart": lambda x, i, j, m, k: (0, slice(None), j),
    "backwards": lambda x, i, j, m, k: (slice(None, None, -1), j),
    "steps": lambda x, i, j, m, k: (j, slice(None, None, 2), slice(None, None, -1)),
    "new axes": lambda x, i, j, m, k: (None, j, None, slice(1, 3)),
    "a mask": lambda x, i, j, m, k: (m,),
    "a mask behind": lambda x, i, j, m, k: (slice(None), m[0], slice(1, None)),
    "a mask of all": lambda x, i, j, m, k: (x > 3,),
    "a mask of two axes": lambda x, i, j, m, k: (slice(None), x[0] > 3),
    "a mask and an int": lambda x, i, j, m, k: (m[:, 0], 1),
    "nothing": lambda x, i, j, m, k: (x > 1e9,),
}


def inputs(dtype="float32"):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 9, (4, 4, 5)).astype(dtype)
    return x, ROWS, COLUMNS, rng.integers(0, 2, (4, 4)) > 0, np.array(2)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("name", BRACKETS)
def test_reads(name, dtype):
    def f(x, i, j, m, k):
        return x[BRACKETS[name](x, i, j, m, k)]

    same_natively(f, *inputs(dtype))


@pytest.mark.parametrize("name", BRACKETS)
def test_reads_of_what_has_gaps(name):
    def f(x, i, j, m, k):
        y = x.transpose([1, 0, 2])
        return y[BRACKETS[name](y, i, j, m, k)]

    same_natively(f, *inputs())


def test_places_with_gaps_beside_places_without():
    same_natively(lambda x, i, j, m, k: x[i.transpose([1, 0]), i * 0 + 1], *inputs())


@pytest.mark.parametrize("name", BRACKETS)
def test_writes_of_a_number(name):
    def f(x, i, j, m, k):
        y = x.clone()
        y[BRACKETS[name](x, i, j, m, k)] = -1.0
        return y

    same_natively(f, *inputs())


@pytest.mark.parametrize("name", [n for n in BRACKETS if "mask" not in n])
def test_writes_of_a_tensor(name):
    def f(x, i, j, m, k):
        y, spec = x.clone(), BRACKETS[name](x, i, j, m, k)
        y[spec] = paddle.cumsum(x[spec].reshape([-1]), 0).reshape(x[spec].shape)
        return y

    same_natively(f, *inputs())


@pytest.mark.parametrize("name", BRACKETS)
def test_derivatives_of_reads_and_writes(name):
    def f(x, i, j, m, k):
        x.stop_gradient = False
        y, spec = x * 2, BRACKETS[name](x, i, j, m, k)
        y[spec] = x[spec] * x[spec]
        return paddle.grad((y * y).sum() + x[spec].sum(), x)[0]

    same_natively(f, *inputs("float64"), exact=False)


def test_a_value_is_repeated_along_axes():
    def f(x, j):
        y, z = x.clone(), x.clone()
        y[j] = x[3, :1]
        z[:, j] = x[1, 2]
        return y, z

    same_natively(f, inputs()[0], COLUMNS)


def test_of_equal_places_the_last_value_stays():
    def f(x, j):
        y = x.clone()
        y[j] = paddle.arange(4, dtype="float32")
        return y

    same_natively(f, np.zeros(3, "float32"), np.array([1, -2, 1, 0]))


def test_coordinates():
    x, at = np.arange(24.0).reshape(2, 3, 4), np.array([[0, 1], [-1, 2], [0, 1]])

    def pairs(x, at, v):
        at = at.reshape([-1, 2])
        return paddle.gather_nd(x, at), paddle.gather_nd(x[0], at), paddle.scatter_nd_add(x, at, v)

    same_natively(pairs, x, at, np.arange(12.0).reshape(3, 4))
    same_natively(lambda x, at: paddle.gather_nd(x, at.reshape([3, 1])), x, at[:, 0].copy())
    same_natively(lambda x, at: paddle.gather_nd(x, at.reshape([1])), x[0, 0], np.array([-2]))


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 0, 3), (2, 3, 17)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_truth(shape, dtype, rng):
    x = rng.integers(0, 2, shape).astype(dtype)
    y = rng.normal(size=shape).astype("float32")
    same_natively(lambda x: paddle.nonzero(x), x)
    same_natively(lambda x, y: (paddle.masked_select(y, x.astype("bool")), y[x.astype("bool")]), x, y)


@pytest.mark.parametrize("at_start", [True, False])
def test_nothing_outside_is_touched(at_start):
    x, i, j, m, k = (a if not a.ndim else Guarded(a, at_start).array for a in inputs())
    for name, brackets in BRACKETS.items():
        if name != "a grid":
            same_natively(lambda x, i, j, m, k, b=brackets: x[b(x, i, j, m, k)] * 2, x, i, j, m, k)


@pytest.mark.parametrize("name", ["rows", "pairs", "apart", "with an int"])
def test_a_place_outside_is_an_index_error(name):
    def f(x, i, j, m, k):
        return x[BRACKETS[name](x, i, j, m, k)]

    static = paddle.jit.to_static(f, full_graph=True)
    given = inputs()
    static(*map(paddle.to_tensor, given))
    native = NativePlan(static.concrete_program.main_program)
    bad = np.where(ROWS == 2, 9, ROWS) if "int" not in name else ROWS
    columns = COLUMNS if "int" not in name else np.array([1, -9], "int32")
    with pytest.raises(IndexError, match=r"index -?9 is out of range for axis [01] of extent 4"):
        native.run([given[0], bad, columns, *given[3:]])


SLICES = {
    "the first": np.s_[:3],
    "the last": np.s_[-3:],
    "none": np.s_[3:3],
    "past the end": np.s_[2:99],
    "of a row": np.s_[1, 1:3],
    "of an axis of new extent": np.s_[None, 1:3],
    "behind": np.s_[:, 1:3],
    "backwards": np.s_[2::-1],
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_that_others_write_over_or_keep(name):
    def f(x, k):
        made = x * 2.0
        part, rows = made[SLICES[name]], []
        kept = part + 0.0
        while k > 0:
            rows.append(part * k.astype("float32"))  # where nobody else holds `made`, in its memory
            part = part + 1.0
            k = k - 1
        return x[SLICES[name]], kept, part, made + 1.0, paddle.stack(rows)

    same_natively(f, inputs()[0], np.array(3))
