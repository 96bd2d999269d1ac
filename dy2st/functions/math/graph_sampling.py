"""Neighbours of nodes, drawn from graphs in compressed columns, and their numbers made dense.

A graph has the neighbours of node `i` in `row[colptr[i] : colptr[i + 1]]`. How many are found is known from the values
alone, so these functions run on the values: they prepare data, in front of Programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.functions.core.operands import tensor
from dy2st.functions.math.random import rand
from dy2st.functions.shape.from_data import to_tensor
from dy2st.runtime.eager.tensor import Tensor


def sample_neighbors(
    row: Any, colptr: Any, input_nodes: Any, sample_size: int = -1, eids: Any = None, return_eids: bool = False,
    perm_buffer: Any = None, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return neighbours of nodes, and how many each has: at most `sample_size`, drawn alike, or all of them for -1.

    Parameters
    ----------
    row, colptr
        The graph: neighbours [edges], and where those of each node begin [1 + nodes].
    input_nodes
        The nodes that are asked for.
    eids, return_eids
        Numbers of the edges, which are returned too, for the ones that are drawn; ValueError where there are none.
    perm_buffer
        Makes no difference.

    >>> import dy2st as paddle
    >>> row, colptr = paddle.to_tensor([1, 2, 0, 0, 1]), paddle.to_tensor([0, 2, 3, 5])
    >>> neighbors, count = paddle.geometric.sample_neighbors(row, colptr, paddle.to_tensor([2, 0]))
    >>> neighbors.tolist(), count.tolist()
    ([0, 1, 1, 2], [2, 2])
    """
    return _sampled(row, colptr, input_nodes, sample_size, eids, return_eids, None)


def weighted_sample_neighbors(
    row: Any, colptr: Any, edge_weight: Any, input_nodes: Any, sample_size: int = -1, eids: Any = None,
    return_eids: bool = False, name: str | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Do what `sample_neighbors` does; an edge is drawn next in proportion to its weight among those left.

    P. Efraimidis and P. Spirakis, "Weighted random sampling with a reservoir" (2006).
    """
    return _sampled(row, colptr, input_nodes, sample_size, eids, return_eids, _values(edge_weight, "edge_weight"))


def reindex_graph(
    x: Any, neighbors: Any, count: Any, value_buffer: Any = None, index_buffer: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges from neighbours to the nodes x, with numbers from 0 on, and which nodes these numbers are.

    Nodes have their number by where they first come up: those of x, then their `neighbors`, `count` for each. The
    buffers make no difference.

    >>> import dy2st as paddle
    >>> found = paddle.geometric.reindex_graph(
    ...     paddle.to_tensor([5, 7]), paddle.to_tensor([7, 9, 9]), paddle.to_tensor([2, 1]))
    >>> [t.tolist() for t in found]
    [[1, 2, 2], [0, 0, 1], [5, 7, 9]]
    """
    return reindex_heter_graph(x, [neighbors], [count])


def reindex_heter_graph(
    x: Any, neighbors: Sequence[Any], count: Sequence[Any], value_buffer: Any = None, index_buffer: Any = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Do what `reindex_graph` does for several kinds of edges, one after the other, with the same numbers of nodes.

    Raises ValueError where there are not as many neighbours as counts say, or a node stands in x twice.
    """
    nodes = _values(x, "x")
    found = [_values(n, "neighbors") for n in neighbors]
    counts = [_values(c, "count") for c in count]
    for some, many in zip(found, counts, strict=True):
        if len(many) != len(nodes) or many.sum() != len(some):
            raise ValueError(
                f"reindex_graph: {len(nodes)} nodes have {many.sum()} neighbours by count, {len(some)} in all"
            )
    every = np.concatenate([nodes, *[some.astype(nodes.dtype) for some in found]])
    known, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    if len(np.unique(nodes)) != len(nodes):
        raise ValueError("reindex_graph: a node stands in x twice")
    number = np.empty(len(known), nodes.dtype)
    number[order] = np.arange(len(known), dtype=nodes.dtype)
    targets = [np.repeat(np.arange(len(nodes), dtype=nodes.dtype), many) for many in counts]
    return (
        to_tensor(number[inverse.reshape(-1)[len(nodes) :]]),
        to_tensor(np.concatenate(targets)),
        to_tensor(known[order]),
    )


def _sampled(
    row: Any, colptr: Any, input_nodes: Any, sample_size: int, eids: Any, return_eids: bool, weights: Any
) -> tuple[Tensor, ...]:
    if return_eids and eids is None:
        raise ValueError("sample_neighbors: return_eids needs eids, the numbers of the edges")
    neighbors, starts, nodes = (_values(v, n) for v, n in ((row, "row"), (colptr, "colptr"), (input_nodes, "nodes")))
    if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(starts) - 1:
        raise IndexError(f"sample_neighbors: nodes are from 0 to {len(starts) - 2}, not {nodes.min()} to {nodes.max()}")
    count = (starts[nodes + 1] - starts[nodes]).astype(np.int64)
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    edges = np.arange(total) - np.repeat(ends - count - starts[nodes], count)
    if sample_size >= 0 and (count > sample_size).any():
        keys = -np.log1p(-rand([total], "float64").numpy())
        if weights is not None:
            with np.errstate(divide="ignore"):
                keys = keys / weights[edges]
        owner = np.repeat(np.arange(len(nodes)), count)
        order = np.lexsort((keys, owner))
        rank = np.arange(total) - np.repeat(ends - count, count)
        edges = edges[np.sort(order[rank < sample_size])]
        count = np.minimum(count, sample_size)
    result = to_tensor(neighbors[edges]), to_tensor(count.astype(np.int32))
    return (*result, to_tensor(_values(eids, "eids")[edges])) if return_eids else result


def _values(given: Any, name: str) -> np.ndarray:
    return tensor(given, name).numpy().reshape(-1)
