"""Sparse tensors beside dense ones, and beside the figures of PaddlePaddle 3.3.1 where it has a kernel for the CPU."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import sparse

MATRIX = np.array([[0, 1, 0, 2], [0, 0, 3, 0], [4, 5, 0, 0]], "float32")
DENSE = np.arange(12, dtype="float32").reshape(4, 3)


def coo():
    at = [[0, 0, 1, 2, 2], [1, 3, 2, 0, 1]]
    return sparse.sparse_coo_tensor(at, [1.0, 2.0, 3.0, 4.0, 5.0], [3, 4], stop_gradient=False)


def csr():
    columns = [1, 3, 2, 0, 1]
    return sparse.sparse_csr_tensor([0, 2, 3, 5], columns, [1.0, 2.0, 3.0, 4.0, 5.0], [3, 4], stop_gradient=False)


def both(function, *arguments):
    """Return what a function of tensors gives, the same eagerly and as a Program."""
    eager, made = function(*arguments), paddle.jit.to_static(function, full_graph=True)(*arguments)
    np.testing.assert_allclose(eager.numpy(), made.numpy(), rtol=1e-6)
    return eager


@pytest.mark.parametrize("make", [coo, csr])
def test_products(make):
    dense = paddle.to_tensor(DENSE, stop_gradient=False)
    x = make()
    product = both(sparse.matmul, x, dense)
    np.testing.assert_allclose(product.numpy(), MATRIX @ DENSE)
    (product * product).sum().backward()
    np.testing.assert_allclose(dense.grad.numpy(), MATRIX.T @ (2 * MATRIX @ DENSE))
    at = x.to_sparse_coo().indices().numpy()
    np.testing.assert_allclose(x.grad.values().numpy(), (2 * MATRIX @ DENSE @ DENSE.T)[tuple(at)])
    np.testing.assert_allclose((x @ dense).numpy(), product.numpy())
    np.testing.assert_allclose(sparse.mv(x, dense[:, 0]).numpy(), MATRIX @ DENSE[:, 0])
    np.testing.assert_allclose(sparse.addmm(paddle.ones([3, 3]), x, dense, 2.0, 3.0).numpy(), 2 + 3 * MATRIX @ DENSE)
    squared = sparse.matmul(x, sparse.transpose(x, [1, 0]))
    assert type(squared) is type(x)
    np.testing.assert_allclose(squared.numpy(), MATRIX @ MATRIX.T)
    np.testing.assert_allclose(sparse.addmm(squared, x, x.t(), 1.0, 2.0).numpy(), 3 * MATRIX @ MATRIX.T)
    masked = sparse.masked_matmul(dense.t(), dense, sparse.to_sparse_coo(paddle.eye(3)))
    np.testing.assert_allclose(masked.values().numpy(), (DENSE.T @ DENSE).diagonal())
    with pytest.raises(ValueError, match="different numbers of axes"):
        sparse.matmul(x, dense[:, 0])
    with pytest.raises(TypeError, match=r"sparse\.matmul needs a sparse tensor, not Tensor"):
        sparse.matmul(dense, dense)


@pytest.mark.proves("Tensor.to_sparse_coo Tensor.to_sparse_csr")
def test_forms():
    dense = paddle.to_tensor(MATRIX)
    x, y = dense.to_sparse_coo(2), dense.to_sparse_csr()
    np.testing.assert_array_equal(x.indices().numpy(), coo().indices().numpy())
    assert (y.crows().tolist(), y.cols().tolist(), y.values().tolist()) == (
        [0, 2, 3, 5],
        [1, 3, 2, 0, 1],
        [1, 2, 3, 4, 5],
    )
    assert x.to_sparse_csr().crows().tolist() == [0, 2, 3, 5]
    assert y.to_sparse_coo().indices().tolist() == x.indices().tolist()
    assert (x.is_sparse_coo(), x.is_sparse_csr(), y.is_sparse_csr(), y.is_dense()) == (True, False, True, False)
    assert (x.nnz(), x.sparse_dim(), x.dense_dim(), x.ndim, len(x)) == (5, 2, 0, 2, 3)
    assert (x.stop_gradient, coo().stop_gradient, x.dtype.name) == (True, False, "float32")
    part = paddle.to_tensor(MATRIX).to_sparse_coo(1)
    assert (part.nnz(), part.dense_dim(), part.values().shape) == (3, 1, [3, 4])
    np.testing.assert_array_equal(part.to_dense().numpy(), MATRIX)
    np.testing.assert_array_equal(part.transpose([0, 1]).to_dense().numpy(), MATRIX)
    with pytest.raises(ValueError, match="cannot change places with dense ones"):
        part.transpose([1, 0])
    with pytest.raises(ValueError, match="2 or 3 sparse axes"):
        part.to_sparse_csr()
    with pytest.raises(ValueError, match="indices are"):
        sparse.sparse_coo_tensor([1, 2], [1.0, 2.0])
    assert sparse.sparse_coo_tensor([[0, 2]], [1, 2]).shape == [3]
    several = np.array([[[0, 1], [2, 0]], [[3, 4], [0, 0]]], "float32")
    z = paddle.to_tensor(several).to_sparse_csr()
    assert z.crows().tolist() == [0, 1, 2, 0, 2, 2]
    np.testing.assert_array_equal(z.to_dense().numpy(), several)
    assert both(sparse.matmul, z, paddle.ones([2, 2, 1])).tolist() == [[[1], [2]], [[7], [0]]]
    assert "SparseCooTensor(shape=[3, 4]" in repr(x)
    assert "SparseCsrTensor(shape=[3, 4]" in repr(y)


def test_places_that_are_named_twice():
    x = sparse.sparse_coo_tensor([[0, 0, 2], [1, 1, 3]], [1.0, 2.0, 3.0], [3, 4])
    made = sparse.coalesce(x)
    assert (made.indices().tolist(), made.values().tolist()) == ([[0, 2], [1, 3]], [3.0, 3.0])
    assert (x.is_coalesced(), made.is_coalesced()) == (False, True)
    np.testing.assert_array_equal(x.to_dense().numpy(), made.to_dense().numpy())
    assert sparse.reshape(made, [2, 6]).to_dense().tolist() == [[0, 3, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3]]


@pytest.mark.parametrize("make", [coo, csr])
def test_two_of_them(make):
    x, y = make(), sparse.multiply(make(), 2.0)
    for made, wanted in (
        (x + y, 3 * MATRIX), (x - y, -MATRIX), (-x, -MATRIX), (x * y, 2 * MATRIX**2), (2.0 * x, 2 * MATRIX),
        (x / 4.0, MATRIX / 4), (x * paddle.to_tensor(MATRIX), MATRIX**2), (sparse.sum(x), [MATRIX.sum()]),
        (sparse.sum(x, 0), MATRIX.sum(0)), (sparse.slice(x, [0, 1], [0, 1], [2, 4]), MATRIX[:2, 1:]),
        (sparse.reshape(x, [2, 6]), MATRIX.reshape(2, 6)), (x.t(), MATRIX.T), (x.astype("float64"), MATRIX),
    ):  # fmt: skip
        np.testing.assert_allclose(made.to_dense().numpy(), wanted)
    np.testing.assert_allclose((x + paddle.ones([3, 4])).numpy(), MATRIX + 1)
    np.testing.assert_allclose(sparse.divide(x, y).values().numpy(), 0.5)
    assert sparse.is_same_shape(x, y)
    np.testing.assert_allclose(sparse.mask_as(paddle.ones([3, 4]), x).to_dense().numpy(), MATRIX != 0)
    with pytest.raises(ValueError, match="differ"):
        sparse.add(x, x.t())


def test_values_one_by_one():
    for name in ("abs", "asinh", "atan", "deg2rad", "expm1", "log1p", "neg", "rad2deg", "sin", "sinh", "sqrt", "square",
                 "tan", "tanh"):  # fmt: skip
        made = getattr(sparse, name)(coo()).values()
        np.testing.assert_allclose(made.numpy(), getattr(paddle, name)(coo().values()).numpy())
    small = sparse.multiply(coo(), 0.1)
    for name in ("asin", "atanh"):
        np.testing.assert_allclose(getattr(sparse, name)(small).values().numpy(),
                                   getattr(paddle, name)(small.values()).numpy())  # fmt: skip
    assert sparse.pow(coo(), 2).values().tolist() == [1, 4, 9, 16, 25]
    assert sparse.isnan(coo()).values().tolist() == [False] * 5
    made = sparse.cast(csr(), "int32", "float64")
    assert (made.crows().dtype.name, made.dtype.name) == ("int32", "float64")
    assert sparse.cast(coo(), "int32").indices().dtype.name == "int32"
    np.testing.assert_allclose(sparse.nn.LeakyReLU(0.1)(-coo()).values().numpy(), [-0.1, -0.2, -0.3, -0.4, -0.5])
    assert sparse.nn.functional.relu6(sparse.multiply(coo(), 2.0)).values().tolist() == [2, 4, 6, 6, 6]
    values = coo().values()
    loss = both(lambda v: sparse.tanh(sparse.sparse_coo_tensor([[0, 1, 2, 3, 4]], v, [6])).to_dense().sum(), values)
    np.testing.assert_allclose(loss.item(), np.tanh([1, 2, 3, 4, 5]).sum(), rtol=1e-6)


@pytest.mark.parametrize("make", [coo, csr])
def test_softmax_of_rows(make):
    made = sparse.nn.Softmax()(make())
    np.testing.assert_allclose(made.values().numpy(), [0.268941, 0.731059, 1.0, 0.268941, 0.731059], rtol=1e-5)
    both(lambda v: sparse.nn.functional.softmax(make().with_values(v)).values(), make().values())
    with pytest.raises(ValueError, match="along the last axis"):
        sparse.nn.functional.softmax(make(), 0)


def points():
    at = [[0, 0, 0, 0], [0, 1, 2, 1], [0, 2, 1, 1], [1, 0, 2, 2]]
    return sparse.sparse_coo_tensor(at, [[1.0, 2.0], [3.0, -4.0], [-5.0, 6.0], [7.0, 8.0]], [1, 3, 3, 3, 2])


def test_convolutions_of_points():
    x, functional = points(), sparse.nn.functional
    kernel = paddle.to_tensor((np.arange(108) * 7 % 11 - 5).reshape(3, 3, 3, 2, 2).astype("float32") / 10)
    same = functional.subm_conv3d(x, kernel).coalesce()
    assert same.indices().tolist() == [[0, 0, 0, 0], [0, 1, 1, 2], [0, 1, 2, 1], [1, 2, 0, 2]]
    wanted = [[-2.7, -1.1], [-3.2, 1.3], [-0.8, 2.9], [-0.7, -4.9]]
    np.testing.assert_allclose(same.values().numpy(), wanted, rtol=1e-5)
    made = functional.conv3d(x, kernel, stride=2, padding=1)
    at = [[0] * 7, [0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 1, 1], [0, 1, 0, 1, 1, 0, 1]]
    assert (made.shape, made.indices().tolist()) == ([1, 2, 2, 2, 2], at)
    wanted = [[1.2, 0], [6.3, -0.9], [-0.7, -1.4], [0.9, -5.1], [-4.9, 4.1], [-0.9, 2.8], [5.7, -0.7]]
    np.testing.assert_allclose(made.values().numpy(), wanted, rtol=1e-4, atol=1e-6)
    pooled = sparse.nn.MaxPool3D(2, 1)(x)
    assert pooled.indices().tolist() == at
    assert pooled.values().tolist() == [[1, 2], [7, 8], [3, -4], [7, 8], [7, 8], [3, -4], [7, 8]]
    layer = sparse.nn.SubmConv3D(2, 3, 3)
    assert (layer.weight.shape, layer(x).shape) == ([3, 3, 3, 2, 3], [1, 3, 3, 3, 3])
    layer(x).values().sum().backward()
    assert layer.weight.grad is not None
    assert sparse.nn.Conv2D(2, 3, 1)(sparse.to_sparse_coo(paddle.ones([1, 2, 2, 2]), 3)).shape == [1, 2, 2, 3]
    with pytest.raises(TypeError, match="needs a COO tensor"):
        functional.conv3d(csr(), kernel)
    with pytest.raises(ValueError, match="groups 1"):
        sparse.nn.Conv3D(2, 2, 3, groups=2)


def test_norms_of_values():
    made = sparse.nn.BatchNorm(2)(points()).values()
    wanted = [[-0.11547, -0.21822], [0.34641, -1.52752], [-1.50111, 0.65465], [1.27017, 1.09109]]
    np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-4)
    layer = sparse.nn.SyncBatchNorm(2)
    assert sparse.nn.SyncBatchNorm.convert_sync_batchnorm(layer) is layer


@pytest.mark.proves("Tensor.stft Tensor.istft")
def test_short_time_transforms_as_methods():
    x = paddle.to_tensor(np.sin(np.arange(32.0)).astype("float32"))
    made = both(lambda x: x.stft(8, 4).real(), x)
    np.testing.assert_array_equal(made.numpy(), paddle.signal.stft(x, 8, 4).real().numpy())
    np.testing.assert_allclose(x.stft(8, 4).istft(8, 4).numpy(), x.numpy(), atol=1e-6)
