"""Graphs as lists of edges, beside loops over NumPy arrays."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import geometric

RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=[5, 3]).astype("float32"), RNG.normal(size=[7, 3]).astype("float32")
SRC, DST = np.array([0, 1, 1, 4, 3, 2, 0]), np.array([1, 0, 1, 3, 3, 1, 0])
POOLS = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max}


def arrived(messages, nodes, pool):
    made = np.zeros([nodes, *messages.shape[1:]], "float32")
    for node in range(nodes):
        if (DST == node).any():
            made[node] = POOLS[pool](messages[node == DST], axis=0)
    return made


@pytest.mark.parametrize("pool", POOLS)
def test_values_are_sent_along_edges(pool):
    edges = [paddle.to_tensor(e) for e in (SRC, DST)]
    x, y = paddle.to_tensor(X), paddle.to_tensor(Y)
    found = geometric.send_u_recv(x, *edges, pool)
    np.testing.assert_allclose(found.numpy(), arrived(X[SRC], 5, pool), rtol=1e-5)
    static = paddle.jit.to_static(lambda x, s, d: geometric.send_u_recv(x, s, d, pool), full_graph=True)
    np.testing.assert_allclose(static(x, *edges).numpy(), found.numpy(), rtol=1e-6)
    assert geometric.send_u_recv(x, *edges, pool, out_size=4).shape == [4, 3]
    for name, message in {"add": X[SRC] + Y, "sub": X[SRC] - Y, "mul": X[SRC] * Y, "div": X[SRC] / Y}.items():
        found = geometric.send_ue_recv(x, y, *edges, name, pool)
        np.testing.assert_allclose(found.numpy(), arrived(message, 5, pool), rtol=1e-4)
    one = geometric.send_ue_recv(x, y[:, 0], *edges, "mul", pool)
    np.testing.assert_allclose(one.numpy(), arrived(X[SRC] * Y[:, :1], 5, pool), rtol=1e-4)
    between = geometric.send_uv(x, x, *edges, "sub")
    np.testing.assert_allclose(between.numpy(), X[SRC] - X[DST], rtol=1e-6)


@pytest.mark.parametrize("pool", POOLS)
def test_rows_with_the_same_number_become_one(pool):
    ids = np.array([0, 0, 2, 2, 2])
    found = getattr(geometric, f"segment_{pool}")(paddle.to_tensor(X), paddle.to_tensor(ids))
    wanted = [POOLS[pool](X[:2], axis=0), np.zeros(3), POOLS[pool](X[2:], axis=0)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)


def test_gradients_go_back_along_edges():
    x = paddle.to_tensor(X, stop_gradient=False)
    geometric.send_u_recv(x, paddle.to_tensor(SRC), paddle.to_tensor(DST)).sum().backward()
    assert x.grad.tolist() == np.bincount(SRC, minlength=5)[:, None].repeat(3, 1).astype(float).tolist()


def test_unknown_ways_are_named():
    edges = [paddle.to_tensor(e) for e in (SRC, DST)]
    with pytest.raises(ValueError, match="by sum, mean, min or max, not 'prod'"):
        geometric.send_u_recv(X, *edges, "prod")
    with pytest.raises(ValueError, match="message_op is add, sub, mul or div, not 'pow'"):
        geometric.send_uv(X, X, *edges, "pow")
