"""Extents to which others broadcast: one name for all orders in which they meet, and one check a pair."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.shapes import broadcast, parse_extent, symbol

N, M, K = symbol("N"), symbol("M"), symbol("K")


@pytest.mark.parametrize(
    ("a", "b", "met"),
    [
        (2, 2, 2),
        (1, 1, 1),
        (1, 3, 3),
        (N, 1, N),
        (N, N, N),
        (N, 3, 3),
        (3, N, 3),
        (N, M, symbol("bcast(M, N)")),
        (M, N, symbol("bcast(M, N)")),
        (broadcast(N, M), N, broadcast(M, N)),
        (N, broadcast(M, N), broadcast(M, N)),
        (broadcast(N, M), broadcast(M, K), symbol("bcast(K, M, N)")),
        (broadcast(N, M), 4, 4),
        (N - 1, N, symbol("bcast(N, N - 1)")),
        (broadcast(N - 1, N), N - 1, symbol("bcast(N, N - 1)")),
        (broadcast(N, M) + 1, N, symbol("bcast(N, bcast(M, N) + 1)")),
    ],
)
def test_the_name_does_not_depend_on_the_order(a, b, met):
    assert broadcast(a, b) == broadcast(b, a) == met
    assert parse_extent(str(met)) == met


@paddle.jit.to_static(full_graph=True)
def mixed(x, y):
    z = x + y
    z = y * z
    return z - x + y


def test_extents_that_met_are_checked_once():
    mixed(paddle.ones([2]), paddle.ones([2]))
    names = [operation.name for operation in mixed.main_program.walk()]
    assert names.count("broadcast_extent") == 1


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((1,), (3,)), ((3,), (1,)), ((0,), (1,)), ((2, 1), (3,))])
def test_values_and_gradients_are_those_of_eager_mode(shapes):
    arrays = [np.random.default_rng(0).normal(size=shape) for shape in shapes]
    found = []
    for function in (mixed, mixed.dygraph_function):
        x, y = (paddle.to_tensor(array, stop_gradient=False) for array in arrays)
        z = function(x, y)
        z.sum().backward()
        found.append([z.numpy(), x.grad.numpy(), y.grad.numpy()])
    for static, eager in zip(*found, strict=True):
        np.testing.assert_allclose(static, eager, rtol=1e-12)


def test_extents_that_do_not_meet_are_refused_by_the_run():
    with pytest.raises(ValueError, match="operands could not be broadcast together: extents 2 and 3 differ"):
        mixed(paddle.ones([2]), paddle.ones([3]))
