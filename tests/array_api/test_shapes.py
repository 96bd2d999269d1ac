"""Shapes once the array namespace is used: lists, as Paddle's, that compare and add as the tuples of the standard."""

import copy
import pickle

import dy2st as paddle
import dy2st.array_api as xp


def test_a_shape_equals_and_adds_as_a_tuple():
    x = xp.zeros((2, 3))
    assert x.shape == (2, 3)
    assert (2, 3) == x.shape
    assert x.shape == [2, 3]
    assert x.shape != (3, 2)
    assert x.shape[:1] + (5,) == (2, 5)
    assert (1,) + x.shape == (1, 2, 3) == [1] + x.shape
    assert {x.shape: "a shape"}[(2, 3)] == "a shape"
    assert xp.reshape(x, x.shape[::-1]).shape == (3, 2)


def test_it_stays_a_list_for_paddle():
    shape = xp.zeros((2, 3)).shape
    assert isinstance(shape, list)
    assert repr(shape) == "[2, 3]"
    assert type(pickle.loads(pickle.dumps(shape))) is type(copy.copy(shape)) is list
    assert paddle.ones(shape).shape == [2, 3]


def test_programs_read_it_as_eager_mode_does():
    def f(x):
        return x.reshape([x.shape[1], x.shape[0]]) * x.shape[0] if len(x.shape) == 2 else x

    static = paddle.jit.to_static(f)
    for rows in (2, 3, 5):
        x = paddle.ones([rows, 4])
        assert static(x).tolist() == f(x).tolist()


def branchy(x):
    return x + 1 if x.shape == (2, 3) else x - 1


def test_a_comparison_of_shapes_is_never_another_one_in_a_program():
    static = paddle.jit.to_static(branchy)
    for shape in ([2, 3], [3, 3], [2, 3]):
        x = paddle.ones(shape)
        assert static(x).tolist() == branchy(x).tolist()


def shapes(x):
    y = x if x.sum() > 0 else paddle.concat([x, x])
    shape = y.shape
    return y * 2, shape, [shape], shape[:1] + (y.ndim,)


def test_programs_hand_them_out():
    static = paddle.jit.to_static(shapes, full_graph=True)
    for values in ([1.0, 2.0], [-1.0], [3.0], [-1.0, -2.0]):
        x = paddle.to_tensor(values)
        (_, *want), (_, *got) = shapes(x), static(x)
        assert got == want
        assert [type(s) for s in (got[0], got[1][0], got[2])] == [type(want[0])] * 3
        assert got[0] is got[1][0]
        assert got[0] == tuple(want[0])
    assert len(static.program_cache.concrete_programs()) == 1
