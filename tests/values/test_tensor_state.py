"""What a tensor says about itself, and what changes its gradient, its name, its memory."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import MissingExtraError

A = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def x():
    return paddle.to_tensor(A)


@pytest.mark.proves(
    "Tensor.dtype Tensor.place Tensor.is_contiguous Tensor.strides Tensor.stride Tensor.get_strides Tensor.is_dense "
    "Tensor.is_sparse Tensor.is_sparse_coo Tensor.is_sparse_csr Tensor.is_dist Tensor.persistable "
    "Tensor.inplace_version"
)
def test_a_tensor_says_what_it_is(x):
    assert (x.dtype, str(x.place), x.persistable, x.inplace_version) == ("float64", "Place(cpu)", False, 0)
    assert (x.strides, x.get_strides(), x.stride(), x.stride(0)) == ([3, 1], [3, 1], [3, 1], 3)
    assert x.is_contiguous()
    assert not x.T.is_contiguous()
    assert x.T.strides == [1, 3]
    assert x.is_dense()
    assert [x.is_sparse(), x.is_sparse_coo(), x.is_sparse_csr(), x.is_dist()] == [False] * 4
    x.zero_()
    assert x.inplace_version == 1


@pytest.mark.proves("Tensor.to Tensor.cuda Tensor.to_dense Tensor.value Tensor.get_tensor")
def test_a_tensor_moves_and_is_cast(x):
    assert x.to("float32").dtype == "float32"
    assert x.to(paddle.zeros([1], "int32")).dtype == "int32"
    assert x.to(paddle.CPUPlace(), "int64").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.to_dense() is x
    assert x.value() is x
    assert x.get_tensor() is x
    if not paddle.is_compiled_with_cuda():
        with pytest.raises(MissingExtraError, match="needs the package 'cupy'"):
            x.cuda()


@pytest.mark.proves("Tensor.name")
def test_a_name_can_be_given(x):
    x.name = "weights"
    assert x.name == "weights"


@pytest.mark.proves(
    "Tensor.backward autograd.backward grad Tensor.grad Tensor.gradient Tensor.clear_grad Tensor.clear_gradient "
    "Tensor.stop_gradient Tensor.requires_grad Tensor.requires_grad_"
)
def test_gradients_come_and_go(x):
    assert x.stop_gradient
    x.requires_grad_()
    assert (x.requires_grad, x.stop_gradient) == (True, False)
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * A)
    (x * x).backward(paddle.to_tensor(A))
    np.testing.assert_array_equal(x.gradient(), 2 * A + 2 * A * A)
    x.clear_gradient()
    assert not x.grad.numpy().any()
    x.clear_grad()
    assert x.grad is None
    paddle.autograd.backward([x.sum(), (x * 2).sum()], [paddle.to_tensor(3.0, "float64"), None])
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 5.0))
    np.testing.assert_array_equal(paddle.grad(x**3, x, grad_outputs=paddle.to_tensor(A))[0].numpy(), 3 * A**3)
    x.requires_grad = False
    assert x.stop_gradient


def test_a_kept_tape_is_walked_again(x):
    x.stop_gradient = False
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 4 * A)
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


@pytest.mark.proves("Tensor.retain_grads Tensor.register_hook")
def test_a_result_keeps_its_gradient_and_hooks_change_it(x):
    x.stop_gradient = False
    y = x * 2
    y.retain_grads()
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), np.ones((2, 3)))  # as it was when retain_grads was called
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 20.0))
    handle.remove()


@pytest.mark.proves("Tensor.detach Tensor.detach_ Tensor.data_ptr Tensor.zero_ Tensor.apply Tensor.new_empty")
def test_detached_tensors_share_memory(x):
    x.stop_gradient = False
    y = x.detach()
    assert (y.stop_gradient, y.data_ptr()) == (True, x.data_ptr())
    assert y.zero_().tolist() == [[0.0] * 3] * 2
    assert x.tolist() == [[0.0] * 3] * 2
    z = x * 2
    assert z.detach_().stop_gradient
    assert y.apply(lambda t: t + 1).tolist() == [[1.0] * 3] * 2
    assert (y.new_empty([4, 2]).shape, y.new_empty([2], dtype="int32").dtype) == ([4, 2], "int32")


@pytest.mark.proves("Tensor.broadcast_shape Tensor.broadcast_shapes Tensor.multi_dot")
@pytest.mark.proves("Tensor.multiplex Tensor.block_diag")
def test_methods_of_lists_are_functions(x):
    assert paddle.Tensor.broadcast_shape([2, 1], [3]) == [2, 3]
    assert paddle.Tensor.broadcast_shapes([2, 1], [3]) == [2, 3]
    np.testing.assert_array_equal(paddle.Tensor.multi_dot([x, x.T]).numpy(), A @ A.T)
    rows = paddle.to_tensor([[1], [0]])
    np.testing.assert_array_equal(paddle.Tensor.multiplex([x, x + 10], rows).numpy(), [A[0] + 10, A[1]])
    assert paddle.Tensor.block_diag([x, x]).shape == [4, 6]


@pytest.mark.proves("Tensor.broadcast_tensors Tensor.concat Tensor.stack")
def test_methods_that_join_take_a_list(x):
    np.testing.assert_array_equal(paddle.Tensor.concat([x, x]).numpy(), np.concatenate([A, A]))
    np.testing.assert_array_equal(paddle.Tensor.stack([x, x]).numpy(), np.stack([A, A]))
    assert [t.shape for t in paddle.Tensor.broadcast_tensors([x, x[0]])] == [[2, 3], [2, 3]]


@pytest.mark.proves("Tensor.where_ Tensor.sigmoid Tensor.softmax Tensor.msort msort Tensor.true_divide true_divide")
def test_methods_that_have_no_row(x):
    y = paddle.to_tensor(-A)
    assert paddle.to_tensor([[True, False, True]]).where_(y, x) is y
    np.testing.assert_array_equal(y.numpy(), np.where([True, False, True], -A, A))
    np.testing.assert_allclose(x.sigmoid().numpy(), 1 / (1 + np.exp(-A)))
    np.testing.assert_allclose(x.softmax(1).numpy(), np.exp(A) / np.exp(A).sum(1, keepdims=True))
    np.testing.assert_array_equal(paddle.to_tensor(-A).msort().numpy(), -A[::-1])
    np.testing.assert_array_equal(paddle.msort(paddle.to_tensor(-A)).numpy(), -A[::-1])
    np.testing.assert_array_equal(x.true_divide(x + 1).numpy(), A / (A + 1))
    np.testing.assert_array_equal(paddle.true_divide(x, x + 1).numpy(), A / (A + 1))


@pytest.mark.proves("Tensor.fill_diagonal_tensor Tensor.fill_diagonal_tensor_")
def test_a_diagonal_is_filled(x):
    want = np.where(np.eye(2, 3) > 0, [[7.0], [8.0]], A)
    y = paddle.to_tensor([7.0, 8.0], "float64")
    np.testing.assert_array_equal(x.fill_diagonal_tensor(y).numpy(), want)
    assert x.fill_diagonal_tensor_(y) is x
    np.testing.assert_array_equal(x.numpy(), want)
    x.fill_diagonal_tensor_(y + 2, offset=-1, dim1=1, dim2=0)
    np.testing.assert_array_equal(x.numpy(), [[7.0, 9.0, 2.0], [3.0, 8.0, 10.0]])


@pytest.mark.proves("Tensor.cfloat Tensor.cdouble")
def test_casts_to_complex_numbers(x):
    assert (x.cfloat().dtype, x.cdouble().dtype) == ("complex64", "complex128")
    np.testing.assert_array_equal(x.cdouble().numpy(), A.astype(complex))
