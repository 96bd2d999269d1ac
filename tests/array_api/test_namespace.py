"""The array API namespace against NumPy's, on what differs from Paddle's arguments; errors; libraries that use it.

The standard's own tests run on all of it with tests/peers/array_api.py.
"""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st import array_api as xp

R = np.random.default_rng(0)
A = R.normal(size=(3, 4))
INTS = R.integers(-3, 3, (2, 5))
Z = R.normal(size=(3, 3)) + 1j * R.normal(size=(3, 3))


CALLS = {
    "arange": lambda n: n.arange(2, 9, 3),
    "linspace": lambda n: n.linspace(0.0, 1.0, 5, endpoint=False),
    "eye": lambda n: n.eye(3, 4, k=1),
    "eye far out": lambda n: n.eye(2, k=-9),
    "full": lambda n: n.full((2, 3), 7),
    "meshgrid": lambda n: n.meshgrid(n.arange(3), n.arange(2), indexing="xy")[1],
    "meshgrid ij": lambda n: n.meshgrid(n.arange(3), n.arange(2), indexing="ij")[1],
    "sum keepdims": lambda n: n.sum(n.asarray(A), axis=(0, 1), keepdims=True),
    "sum over no axes": lambda n: n.sum(n.asarray(A), axis=()),
    "sum of small ints": lambda n: n.sum(n.asarray(INTS.astype("int8")), dtype=n.int8),
    "std": lambda n: n.std(n.asarray(A), axis=1, correction=1),
    "cumulative_sum": lambda n: n.cumulative_sum(n.asarray(A), axis=1, include_initial=True),
    "cumulative_prod": lambda n: n.cumulative_prod(n.asarray(A), axis=0, include_initial=True),
    "count_nonzero": lambda n: n.count_nonzero(n.asarray(INTS), axis=1),
    "round": lambda n: n.round(n.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6])),
    "round complex": lambda n: n.round(n.asarray([0.5 + 1.5j])),
    "round ints": lambda n: n.round(n.asarray(INTS)),
    "concat flat": lambda n: n.concat([n.asarray(A), n.asarray(A[:1])], axis=None),
    "expand_dims": lambda n: n.expand_dims(n.asarray(A), axis=-2),
    "flip": lambda n: n.flip(n.asarray(A)),
    "permute_dims": lambda n: n.permute_dims(n.asarray(A), (1, 0)),
    "repeat": lambda n: n.repeat(n.asarray(A), 2, axis=1),
    "roll": lambda n: n.roll(n.asarray(A), (1, 2), axis=(0, 1)),
    "take": lambda n: n.take(n.asarray(A), n.asarray([2, -1]), axis=1),
    "take_along_axis": lambda n: n.take_along_axis(n.asarray(A), n.asarray([[0], [1], [-1]]), axis=1),
    "unstack": lambda n: n.unstack(n.asarray(A), axis=1)[2],
    "nonzero": lambda n: n.nonzero(n.asarray(INTS))[1],
    "searchsorted": lambda n: n.searchsorted(n.asarray([3, 1, 2]), n.asarray([2]), sorter=n.asarray([1, 2, 0])),
    "argsort": lambda n: n.argsort(n.asarray(INTS[0]), stable=True),
    "diff": lambda n: n.diff(n.asarray(A), axis=0, n=2),
    "unique_all": lambda n: n.unique_all(n.asarray(INTS)).inverse_indices,
    "unique_counts": lambda n: n.unique_counts(n.asarray(INTS)).counts,
    "unique_inverse": lambda n: n.unique_inverse(n.asarray(INTS)).inverse_indices,
    "unique_values": lambda n: n.sort(n.unique_values(n.asarray(INTS))),
    "vecdot": lambda n: n.vecdot(n.asarray(Z), n.asarray(Z[::-1].copy()), axis=0),
    "diagonal": lambda n: n.linalg.diagonal(n.asarray(A), offset=1),
    "trace": lambda n: n.linalg.trace(n.asarray(A), offset=-1),
    "outer": lambda n: n.linalg.outer(n.asarray(A[0]), n.asarray(A[1])),
    "vector_norm": lambda n: n.linalg.vector_norm(n.asarray(A), axis=(0, 1), ord=3),
    "vector_norm complex": lambda n: n.linalg.vector_norm(n.asarray(Z), axis=1),
    "matrix_norm": lambda n: n.linalg.matrix_norm(n.asarray(A), ord="nuc", keepdims=True),
    "solve": lambda n: n.linalg.solve(n.asarray(A[:, :3]), n.asarray(A[:, 3])),
    "slogdet": lambda n: n.linalg.slogdet(n.asarray(A[:, :3])).logabsdet,
    "svd": lambda n: n.linalg.svd(n.asarray(A[:, :3])).S,
    "eigh": lambda n: n.linalg.eigh(n.asarray(A @ A.T)).eigenvalues,
    "qr": lambda n: n.linalg.qr(n.asarray(A[:, :3])).R,
    "pinv": lambda n: n.linalg.pinv(n.asarray(A), rtol=1e-8),
    "matrix_rank": lambda n: n.linalg.matrix_rank(n.asarray(A), rtol=1e-8),
    "tensordot of nothing": lambda n: n.tensordot(n.ones((0, 3)), n.ones((3, 0)), axes=1),
    "from_dlpack": lambda n: n.from_dlpack(np.array(A)),
    "fftfreq": lambda n: n.fft.fftfreq(5, d=0.1),
    "rfft": lambda n: n.fft.rfft(n.asarray(A), axis=0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values_are_numpys(name):
    got, want = CALLS[name](xp), np.asarray(CALLS[name](np))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-6)
    assert tuple(got.shape) == want.shape


def test_data_types():
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.uint8, ("bool", "unsigned integer"))
    assert not xp.isdtype(xp.int8, xp.int16)
    assert xp.result_type(xp.int8, xp.asarray([1], dtype=xp.int32), 2.5) is xp.float32
    assert (xp.can_cast(xp.int8, xp.int32), xp.can_cast(xp.float64, xp.float32)) == (True, False)
    x = xp.ones((2,))
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.finfo(xp.complex64).dtype is xp.float32
    assert type(xp.finfo(x).eps) is float
    assert xp.iinfo(xp.int8).max == 127


def test_what_the_namespace_says_of_itself():
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["integral"] is xp.int64
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}


def test_tensors_name_the_namespace():
    x = paddle.ones([2])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match=r"the array API standard is here in version 2024\.12, not 2099\.12"):
        x.__array_namespace__(api_version="2099.12")
    assert x.to_device("cpu").device == x.device
    with pytest.raises(ValueError, match="streams are not chosen here"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: xp.meshgrid(xp.ones(2), indexing="yx"), ValueError, "indexing must be 'xy' or 'ij'"),
        (lambda: xp.isdtype(xp.int8, "number"), ValueError, "'number' is no kind of dtype"),
        (lambda: xp.result_type(1, 2.0), ValueError, "Python numbers alone have none"),
        (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "cumulative_sum: a tensor of 2 axes needs"),
        (lambda: xp.cumulative_prod(xp.ones((2, 2))), ValueError, "cumulative_prod: a tensor of 2 axes needs"),
        (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "take: a tensor of 2 axes needs"),
        (lambda: xp.nonzero(xp.asarray(1)), ValueError, "nonzero needs a tensor with an axis"),
        (lambda: xp.expand_dims(xp.ones(2), axis=3), IndexError, "there is no axis 3 in a result of 2 axes"),
        (lambda: xp.squeeze(xp.ones((2, 1)), 0), ValueError, r"squeeze: \(2, 1\) has no axis 0 of extent 1"),
        (lambda: xp.vecdot(xp.ones(2), xp.ones(3)), ValueError, "vecdot: 2 elements along the axis against 3"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_every_function_says_what_it_does():
    for name, value in vars(xp).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            assert value.__doc__, name


def test_functions_of_the_standard_become_programs():
    def soft(x):
        n = x.__array_namespace__()
        e = n.exp(x - n.max(x, axis=-1, keepdims=True))
        return e / n.sum(e, axis=-1, keepdims=True)

    x = paddle.to_tensor(A)
    static = paddle.jit.to_static(soft, full_graph=True)
    np.testing.assert_allclose(static(x).numpy(), soft(x).numpy())
    np.testing.assert_allclose(static(x).sum(axis=-1).numpy(), np.ones(3))


SCIPY = """
import dy2st as paddle, scipy.cluster.vq, scipy.special
x = paddle.to_tensor([[1.0, 2.0], [3.0, 5.0]])
made = scipy.special.softmax(x, axis=1), scipy.cluster.vq.whiten(x)
assert all(isinstance(t, paddle.Tensor) for t in made)
assert abs(float(made[0].sum()) - 2) < 1e-6
"""


@pytest.mark.slow
def test_scipy_takes_tensors_and_returns_them():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": str(Path(paddle.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", SCIPY], env=environment, check=True)
