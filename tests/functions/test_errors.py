"""Wrong arguments of functions on tensors: the kind of the exception, and the text that says what is wrong."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import Dy2stError
from dy2st.functions.core import defaults, operands
from dy2st.functions.shape import from_data

V, M, C = paddle.arange(3.0), paddle.arange(6.0).reshape([2, 3]), paddle.arange(24.0).reshape([2, 3, 4])
ZERO, INT = paddle.to_tensor(1.0), paddle.arange(3)
Case = tuple[Callable[[], Any], type[Exception], str]

OPERANDS: list[Case] = [
    (lambda: paddle.concat([]), ValueError, "concat() needs at least one tensor"),
    (lambda: paddle.sum(M, 2), ValueError, "sum: axis 2 is out of range for a tensor of 2 axes"),
    (lambda: paddle.sum(M, [0, -2]), ValueError, "sum: the axes [0, -2] name one axis twice"),
    (lambda: paddle.sum(M, "x"), TypeError, "sum: an axis must be an int, not str 'x'"),
    (lambda: paddle.topk(V, "2"), TypeError, "topk: an int is needed, not str '2'"),
    (lambda: paddle.broadcast_shape([2, 3], [4]), ValueError, "shapes [2, 3] and [4] cannot be broadcast together"),
    (lambda: operands.whole(1.5, "f"), TypeError, "f: an int is needed, not float 1.5"),
]  # fmt: skip
CREATION: list[Case] = [
    (lambda: paddle.to_tensor(object), TypeError, "to_tensor() needs numbers, lists, arrays or tensors, not type"),
    (lambda: paddle.to_tensor([1, "a"]), TypeError, "to_tensor() needs lists of numbers, not of"),
    (lambda: paddle.to_tensor(np.array(["a"])), TypeError, "to_tensor() needs numbers, not an array of <U1"),
    (lambda: paddle.zeros([-1]), ValueError, "the extents of a new tensor must not be negative: [-1]"),
    (lambda: paddle.full([2], V), ValueError, "full() needs one value, not a tensor of shape [3]"),
    (lambda: from_data.from_dlpack(3), TypeError, "from_dlpack() needs an object with __dlpack__, not int"),
    (lambda: paddle.finfo("int32"), TypeError, "finfo does not know the dtype int32"),
    (lambda: defaults.set_flags([]), TypeError, "set_flags() needs a dict, not list"),  # type: ignore[arg-type]
    (lambda: defaults.get_flags("FLAGS_x"), ValueError, "the flag 'FLAGS_x' was never set"),
]  # fmt: skip
RANDOM: list[Case] = [
    (lambda: paddle.rand([-1]), ValueError, "the extents of a random tensor must not be negative: [-1]"),
    (lambda: paddle.uniform([1], "int32"), TypeError, "random floats were asked for in int32"),
    (lambda: paddle.normal(), ValueError, "normal() needs a shape where mean and std are numbers"),
    (lambda: paddle.bernoulli(INT), TypeError, "bernoulli() needs probabilities in a float dtype, not int64"),
    (lambda: paddle.randperm(-1), ValueError, "randperm: n must not be negative, not -1"),
    (lambda: paddle.multinomial(C), ValueError, "multinomial needs a vector or a matrix of weights, not [2, 3, 4]"),
    (lambda: paddle.multinomial(V, 4), ValueError, "multinomial: 4 draws without putting back from 3 weights"),
]  # fmt: skip
SHAPES: list[Case] = [
    (lambda: paddle.reshape(M, [-1, -1]), ValueError, "reshape: only one extent may be -1, not [-1, -1]"),
    (lambda: paddle.reshape(M, [-2, 3]), ValueError, "reshape: an extent cannot be negative but for one -1: [-2, 3]"),
    (lambda: paddle.reshape(M, [4]), ValueError, "cannot reshape a tensor of shape [2, 3] into [4]"),
    (lambda: paddle.flatten(C, 2, 1), ValueError, "flatten: start_axis 2 is behind stop_axis 1"),
    (lambda: paddle.transpose(C, [0, 1, 1]), ValueError, "perm [0, 1, 1] is not a permutation of the 3 axes"),
    (
        lambda: paddle.moveaxis(C, [0, 1], [0]),
        ValueError,
        "moveaxis: source [0, 1] and destination [0] do not name as many different axes",
    ),
    (lambda: paddle.rot90(M, 1, [0, 0]), ValueError, "rot90: axes [0, 0] name one axis twice"),
    (lambda: paddle.roll(M, [1, 2], 0), ValueError, "roll: 2 shifts for 1 axes"),
    (lambda: paddle.diag(C), ValueError, "diag needs a vector or a matrix, not [2, 3, 4]"),
    (lambda: paddle.diag_embed(V, dim1=1, dim2=1), ValueError, "diag_embed: dim1 and dim2 are both 1"),
    (lambda: paddle.concat([ZERO, ZERO]), ValueError, "0-D tensors have no axis to be joined along; use stack"),
    (lambda: paddle.split(V, [-1, -1]), ValueError, "split: only one section may be -1, not [-1, -1]"),
    (lambda: paddle.split(V, 0), ValueError, "split: the number of parts must be a known int of at least 1, not 0"),
    (lambda: paddle.split(V, 2), ValueError, "split: axis 0 of extent 3 cannot be split into 2 equal parts"),
    (lambda: paddle.unstack(V, num=2), ValueError, "unstack: axis 0 has 3 slices, not 2"),
    (lambda: paddle.slice(M, [0, 1], [0], [1, 1]), ValueError, "slice: 2 axes, but 1, 2, 2 starts, ends, strides"),
    (
        lambda: paddle.expand(M, [3]),
        ValueError,
        "expand: a tensor of shape [2, 3] cannot be expanded to fewer axes, [3]",
    ),
    (lambda: paddle.expand(M, [-1, 2, 3]), ValueError, "expand: axis 0 is new, so its extent cannot be -1"),
    (lambda: paddle.expand(M, [2, 4]), ValueError, "expand: a tensor of shape [2, 3] cannot be expanded to [2, 4]"),
    (lambda: paddle.repeat_interleave(V, [1, 2]), ValueError, "repeat_interleave: 2 counts for an axis of extent 3"),
]  # fmt: skip
PLACES: list[Case] = [
    (
        lambda: paddle.gather(V, paddle.zeros([1, 1, 1], "int32")),
        ValueError,
        "gather needs a vector of places, not a tensor of shape [1, 1, 1]",
    ),
    (lambda: paddle.take(V, INT, mode="x"), ValueError, "take: mode is 'x', not 'raise', 'wrap' or 'clip'"),
    (
        lambda: paddle.take_along_axis(M, INT, 0),
        ValueError,
        "indices of shape [3] have not the rank of the tensor, [2, 3]",
    ),
    (
        lambda: paddle.put_along_axis(V, INT, V, 0, "x"),
        ValueError,
        "put_along_axis: reduce is 'x', not assign, add, mul, amax, amin or mean",
    ),
    (lambda: paddle.searchsorted(V, V, side="up"), ValueError, "searchsorted: side is 'up', not 'left' or 'right'"),
    (lambda: paddle.bincount(V), TypeError, "bincount needs integers, not float32"),
    (lambda: paddle.bincount(paddle.to_tensor([2, -1])), IndexError, "out of range"),
    (lambda: paddle.where(V > 0, V), ValueError, "where() needs both x and y, or none of them"),
]  # fmt: skip
MATHS: list[Case] = [
    (
        lambda: paddle.divide(V, V, rounding_mode="up"),
        ValueError,
        "rounding_mode is 'up', not None, 'floor'",
    ),
    (lambda: paddle.scale(V, act="x"), ValueError, "scale: act is 'x', not None or one of tanh, sigmoid, relu, exp"),
    (lambda: paddle.polygamma(V, -1), ValueError, "polygamma: n must be an int that is not negative, not -1"),
    (lambda: paddle.median(V, mode="x"), ValueError, "median: mode is 'x', not 'avg' or 'min'"),
    (
        lambda: paddle.quantile(V, 0.5, interpolation="x"),
        ValueError,
        "quantile: interpolation is 'x', not linear, lower",
    ),
    (lambda: paddle.quantile(V, 2.0), ValueError, "quantile: q must be from 0 to 1, not 2.0"),
    (lambda: V.to(shape=3), TypeError, "to() does not know shape"),
]  # fmt: skip
ALGEBRA: list[Case] = [
    (lambda: paddle.matmul(ZERO, V), ValueError, "matmul needs operands of rank 1 or more, not [] and [3]"),
    (lambda: paddle.matmul(M, M), ValueError, "matmul: the inner extents differ: [2, 3] and [2, 3] (3 against 2)"),
    (
        lambda: paddle.matmul(paddle.ones([2, 1, 1]), paddle.ones([3, 1, 1])),
        ValueError,
        "matmul: the batch extents cannot be broadcast: [2, 1, 1] and [3, 1, 1]",
    ),
    (lambda: paddle.bmm(M, M), ValueError, "bmm needs tensors of rank 3, not [2, 3] and [2, 3]"),
    (lambda: paddle.dot(V, M), ValueError, "dot needs two vectors, or two batches of vectors, not [3] and [2, 3]"),
    (lambda: paddle.tensordot(M, M, [[0, 1], [0]]), ValueError, "tensordot: 2 axes of x against 1 of y"),
    (lambda: paddle.linalg.vector_norm(V, "x"), ValueError, "vector_norm: p is 'x', not a number"),
    (lambda: paddle.linalg.matrix_norm(M, "x"), ValueError,
     "matrix_norm: p is 'x', not 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"),
    (lambda: paddle.as_strided(V, [2], [1, 1]), ValueError, "as_strided: 1 extents and 2 strides"),
    (lambda: paddle.as_strided(V, [3], [2]), IndexError, "as_strided reads elements 0 to 4 of 3"),
    (lambda: paddle.as_strided(V, [2**40], [1]), IndexError, "as_strided reads elements 0 to 1099511627775 of 3"),
    (lambda: paddle.as_strided(V, [2, 2], [-1, 1]), IndexError, "as_strided reads elements -1 to 1 of 3"),
    (lambda: paddle.as_strided(V, [-1], [1]), ValueError, "as_strided: an extent of [-1] is negative"),
    (lambda: paddle.diagonal(M, 0, 1, -1), ValueError, "diagonal: axis1 and axis2 are one axis: 1 and -1 of a tensor"),
    (lambda: paddle.trace(M, 0, 0, -2), ValueError, "diagonal: axis1 and axis2 are one axis: 0 and -2 of a"),
    (lambda: paddle.topk(M, -1), ValueError, "topk: k must not be negative, not -1"),
    (lambda: paddle.linalg.cov(paddle.ones([1, 2, 3])), ValueError, "cov needs a vector or a matrix"),
    (lambda: paddle.histogramdd(M, [2, 2]), ValueError, "histogramdd: 2 bins for points of 3 coordinates"),
    (lambda: paddle.swapaxes(C, 1), TypeError, "swapaxes needs two axes, or a permutation, not [1]"),
    (lambda: paddle.t(C), ValueError, "t() needs a tensor of rank 2 or less, not [2, 3, 4]"),
    (lambda: V.mT, ValueError, "matrix_transpose needs a tensor of rank 2 or more, not [3]"),
    (lambda: paddle.cross(M, M, 0), ValueError, "cross needs an axis of extent 3, not [2, 3] and [2, 3]"),
    (lambda: paddle.cross(C[:, :2], C[:, :2]), ValueError, "cross needs an axis of extent 3, not [2, 2, 4]"),
]  # fmt: skip


ALL = [*OPERANDS, *CREATION, *RANDOM, *SHAPES, *PLACES, *MATHS, *ALGEBRA]


@pytest.mark.parametrize(("call", "kind", "text"), ALL, ids=[case[2] for case in ALL])
def test_a_wrong_argument_is_named(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


IN_A_PROGRAM: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: bool(x), "the truth of a tensor was needed as a Python bool"),
    (lambda x: int(x), "a tensor was needed as a Python int"),
    (lambda x: float(x), "a tensor was needed as a Python float"),
    (lambda x: [1, 2][x.astype("int32")], "a tensor was needed as a Python int (an index)"),
    (lambda x: x.numpy(), "numpy() of a tensor of a Program that is being built was asked for"),
    (lambda x: hash(x.shape[0]), "the hash of a symbolic int was needed (a key, or an item of a set)"),
    (lambda x: len(x), "the length of a tensor was needed as a Python int"),
    (lambda x: range(x.shape[0]), "a symbolic int was needed as a Python int"),
    (lambda x: np.float64(x.shape[0]), "a symbolic int was needed as a Python float"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "text"), IN_A_PROGRAM, ids=[case[1] for case in IN_A_PROGRAM])
def test_what_a_program_cannot_give_to_python_is_said(use: Callable[[Any], Any], text: str) -> None:
    hidden = paddle.jit.not_to_static(use)

    @paddle.jit.to_static(full_graph=True, input_spec=[paddle.static.InputSpec([None], "float32")])
    def f(x: Any) -> Any:
        hidden(x[x > -100])
        return x

    with pytest.raises(Exception, match=re.escape(text)):
        f(V)


SYMBOLIC: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: paddle.matmul(x.unsqueeze(0), paddle.ones([2, 4]).T @ paddle.ones([3, 1])), "the inner extents differ"),
    (lambda x: paddle.reshape(paddle.ones([2, 3]), [5]), "cannot reshape a tensor of shape [2, 3]"),
    (lambda x: paddle.gather_nd(paddle.ones([3]), x[x > -100].astype("int32")),
     "gather_nd: the last extent of the index must be known while tracing; reshape it to [..., k]"),
    (lambda x: paddle.broadcast_tensors([x[x > -100].unsqueeze(0), paddle.ones([2, 1]), paddle.ones([3, 1])]),
     "operands could not be broadcast together: extents 2 and 3 differ"),
    (lambda x: x.unsqueeze(0) + paddle.ones([2, 1]) + paddle.ones([3, 1]), "2 and 3"),
    (lambda x: paddle.zeros([x.sum()]), "'float' object cannot be interpreted as an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "text"), SYMBOLIC, ids=[case[1] for case in SYMBOLIC])
def test_shapes_that_do_not_fit_are_found_while_tracing(use: Callable[[Any], Any], text: str) -> None:
    static = paddle.jit.to_static(use, full_graph=True, input_spec=[paddle.static.InputSpec([None], "float32")])
    with pytest.raises(Exception, match=re.escape(text)):
        static(V)


SEVERAL: list[tuple[Callable[[Any], Any], str]] = [
    (lambda v: bool(v()), "its truth was needed as a Python bool"),
    (lambda v: [1, 2][v()], "it was needed as a Python int (an index or a count)"),
    (lambda v: list(v()), "Python was to run through it"),
    (lambda v: len(v()), "its length was needed as a Python int"),
    (lambda v: str(v()), "it was needed as text"),
]


@pytest.mark.parametrize(("use", "text"), SEVERAL, ids=[case[1] for case in SEVERAL])
def test_one_of_several_things_is_not_given_to_python(use: Callable[[Any], Any], text: str) -> None:
    hidden = paddle.jit.not_to_static(use)

    @paddle.jit.to_static(full_graph=True)
    def f(x: Any) -> Any:
        v = (1, 2) if x.sum() > 0 else "a"
        hidden(lambda: v)
        return x

    with pytest.raises(Dy2stError, match=re.escape(text)):
        f(V)
