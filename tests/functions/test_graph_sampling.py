"""Neighbours that are drawn from graphs, and numbers of nodes; values that PaddlePaddle 3.3.1 gave too."""

from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import geometric

ROW = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]
STARTS = [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]
NODES = [0, 8, 1, 7, 2]


def graph(dtype: str = "int64") -> list[Any]:
    return [paddle.to_tensor(v, dtype) for v in (ROW, STARTS, NODES)]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_all_neighbors(dtype: str) -> None:
    neighbors, count = geometric.sample_neighbors(*graph(dtype))
    assert neighbors.tolist() == [3, 7, 9, 7, 0, 9, 1]
    assert count.tolist() == [2, 2, 2, 0, 1]
    assert (neighbors.dtype, count.dtype) == (dtype, "int32")
    assert [t.tolist() for t in geometric.sample_neighbors(*graph(), sample_size=5)] == [
        neighbors.tolist(),
        count.tolist(),
    ]


def test_neighbors_are_drawn_alike_and_again_by_the_seed() -> None:
    times, rounds = np.zeros(13), 600
    for turn in range(rounds):
        paddle.seed(turn)
        found = geometric.sample_neighbors(*graph(), sample_size=1, eids=paddle.arange(13), return_eids=True)
        paddle.seed(turn)
        again = geometric.sample_neighbors(*graph(), sample_size=1, eids=paddle.arange(13), return_eids=True)
        assert [t.tolist() for t in found] == [t.tolist() for t in again]
        neighbors, count, edges = (t.numpy() for t in found)
        assert count.tolist() == [1, 1, 1, 0, 1]
        assert neighbors.tolist() == np.asarray(ROW)[edges].tolist()
        times[edges] += 1
    np.testing.assert_allclose(times[[0, 1, 2, 3, 4, 11, 12]] / rounds, [0.5, 0.5, 0.5, 0.5, 1, 0.5, 0.5], atol=0.07)
    assert times[5:11].sum() == 0


def test_neighbors_are_drawn_by_weight() -> None:
    paddle.seed(0)
    weights = paddle.to_tensor([1.0, 3.0, 0.0, 1.0, *[1.0] * 9])
    row, starts, _ = graph()
    nodes = paddle.to_tensor([0, 1])
    drawn = [geometric.weighted_sample_neighbors(row, starts, weights, nodes, 1)[0].tolist() for _ in range(800)]
    assert {second for _, second in drawn} == {9}
    assert abs(np.mean([first == 7 for first, _ in drawn]) - 0.75) < 0.06
    whole = geometric.weighted_sample_neighbors(row, starts, weights, nodes)
    assert [t.tolist() for t in whole] == [[3, 7, 0, 9], [2, 2]]


def test_nodes_get_numbers_by_where_they_come_up() -> None:
    x, neighbors, count = (paddle.to_tensor(v, "int32") for v in ([0, 1, 2], [8, 9, 0, 4, 7, 6, 7], [2, 3, 2]))
    found = geometric.reindex_graph(x, neighbors, count)
    assert [t.tolist() for t in found] == [[3, 4, 0, 5, 6, 7, 6], [0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 8, 9, 4, 7, 6]]
    assert all(t.dtype == "int32" for t in found)
    more, many = paddle.to_tensor([0, 2, 3, 5, 1], "int32"), paddle.to_tensor([1, 3, 1], "int32")
    sources, targets, nodes = geometric.reindex_heter_graph(x, [neighbors, more], [count, many])
    assert sources.tolist() == [3, 4, 0, 5, 6, 7, 6, 0, 2, 8, 9, 1]
    assert targets.tolist() == [0, 0, 1, 1, 1, 2, 2, 0, 1, 1, 1, 2]
    assert nodes.tolist() == [0, 1, 2, 8, 9, 4, 7, 6, 3, 5]


def test_what_is_wrong_with_a_graph_is_said() -> None:
    row, starts, nodes = graph()
    with pytest.raises(ValueError, match="return_eids needs eids"):
        geometric.sample_neighbors(row, starts, nodes, return_eids=True)
    with pytest.raises(IndexError, match="nodes are from 0 to 9, not 10 to 10"):
        geometric.sample_neighbors(row, starts, paddle.to_tensor([10]))
    with pytest.raises(ValueError, match="1 nodes have 3 neighbours by count, 2 in all"):
        geometric.reindex_graph(paddle.to_tensor([0]), paddle.to_tensor([1, 2]), paddle.to_tensor([3]))
    with pytest.raises(ValueError, match="a node stands in x twice"):
        geometric.reindex_graph(paddle.to_tensor([0, 0]), paddle.to_tensor([1]), paddle.to_tensor([1, 0]))
