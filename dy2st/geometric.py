"""`paddle.geometric`: graphs as lists of edges: values of nodes sent along edges, added up where they arrive.

An edge goes from node `src_index[i]` to node `dst_index[i]`; what arrives nowhere is 0.
"""

from __future__ import annotations

import operator
from typing import Any

from dy2st.dtypes import int64
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.graph_sampling import reindex_graph as reindex_graph
from dy2st.functions.math.graph_sampling import reindex_heter_graph as reindex_heter_graph
from dy2st.functions.math.graph_sampling import sample_neighbors as sample_neighbors
from dy2st.functions.math.graph_sampling import weighted_sample_neighbors as weighted_sample_neighbors
from dy2st.functions.shape.creation import full, zeros, zeros_like
from dy2st.functions.shape.gather_scatter import gather, put_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.missing import missing_in
from dy2st.runtime.eager.tensor import Tensor

__getattr__ = missing_in(__name__)


def _combined(values: Tensor, index: Tensor, count: Any, pool: str) -> Tensor:
    """Return [count, ...]: the rows of `values` with the same index as one: their sum, mean, min or max."""
    if pool not in ("sum", "mean", "min", "max"):
        raise ValueError(f"rows become one by sum, mean, min or max, not {pool!r}")
    shape = [count, *values.shape[1:]]
    index = reshape(cast_to(index, int64), [-1, *([1] * (values.ndim - 1))])
    ones = full([values.shape[0], *([1] * (values.ndim - 1))], 1.0, "float32")
    arrived = put_along_axis(zeros([count, *([1] * (values.ndim - 1))], "float32"), index, ones, 0, "add")
    if pool in ("sum", "mean"):
        total = put_along_axis(zeros(shape, values.dtype), index, values, 0, "add")
        return total if pool == "sum" else cast_to(total / arrived.clip(1.0), values.dtype)
    made = put_along_axis(zeros(shape, values.dtype), index, values, 0, f"a{pool}", include_self=False)
    return where(arrived > 0.0, made, zeros_like(made))


def _segments(data: Any, segment_ids: Any, pool: str) -> Tensor:
    data, ids = tensor(data, f"segment_{pool}"), tensor(segment_ids, f"segment_{pool}")
    return _combined(data, ids, ids.max() + 1, pool)


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the sums of the rows with the same number.

    >>> import dy2st as paddle
    >>> segment_sum(paddle.to_tensor([1.0, 2.0, 4.0]), paddle.to_tensor([0, 0, 1])).tolist()
    [3.0, 4.0]
    """
    return _segments(data, segment_ids, "sum")


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the means of the rows with the same number."""
    return _segments(data, segment_ids, "mean")


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the least of the rows with the same number; 0 where there is none."""
    return _segments(data, segment_ids, "min")


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the largest of the rows with the same number; 0 where there is none."""
    return _segments(data, segment_ids, "max")


def send_u_recv(
    x: Any, src_index: Any, dst_index: Any, reduce_op: str = "sum", out_size: Any = None, name: str | None = None
) -> Tensor:
    """Return what arrives at each node: x of the nodes where edges begin.

    `out_size` is the number of nodes where they end; that of x by default.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([[1.0], [2.0], [4.0]])
    >>> send_u_recv(x, paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 0, 1])).tolist()
    [[2.0], [5.0], [0.0]]
    """
    x = tensor(x, "send_u_recv")
    return _combined(gather(x, tensor(src_index, "send_u_recv")), tensor(dst_index, "send_u_recv"),
                     _nodes(out_size, x), reduce_op)  # fmt: skip


def send_ue_recv(
    x: Any, y: Any, src_index: Any, dst_index: Any, message_op: str = "add", reduce_op: str = "sum",
    out_size: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return what arrives at each node: x where edges begin, with y of the edge added, or as `message_op` says."""
    x, y = tensor(x, "send_ue_recv"), tensor(y, "send_ue_recv")
    y = reshape(y, [*y.shape, *([1] * (x.ndim - y.ndim))]) if y.ndim < x.ndim else y
    message = _message(message_op)(gather(x, tensor(src_index, "send_ue_recv")), y)
    return _combined(message, tensor(dst_index, "send_ue_recv"), _nodes(out_size, x), reduce_op)


def send_uv(x: Any, y: Any, src_index: Any, dst_index: Any, message_op: str = "add", name: str | None = None) -> Tensor:
    """Return for each edge x where it begins with y where it ends added, or as `message_op` says."""
    first = gather(tensor(x, "send_uv"), tensor(src_index, "send_uv"))
    return _message(message_op)(first, gather(tensor(y, "send_uv"), tensor(dst_index, "send_uv")))


def _message(name: str) -> Any:
    known = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
    if name not in known:
        raise ValueError(f"message_op is add, sub, mul or div, not {name!r}")
    return known[name]


def _nodes(out_size: Any, x: Tensor) -> Any:
    if isinstance(out_size, Tensor):
        return out_size.reshape([])
    return x.shape[0] if out_size is None or out_size <= 0 else out_size
