"""Rows of a table by number, one-hot vectors, sequences out of the tables of a beam search."""

from __future__ import annotations

from typing import Any

from dy2st.dtypes import DType
from dy2st.functions.core.operands import default_dtype, op, tensor
from dy2st.functions.math import math
from dy2st.ir.context import replaced
from dy2st.nn.functional.piecewise import piecewise
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_TAKE, _ONE_HOT, _GATHER_TREE = op("take"), op("one_hot"), op("gather_tree")


def embedding(
    x: Any,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    sparse: bool = False,
    scale_grad_by_freq: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return weight[x], rows of a [num_embeddings, embedding_dim] table for integers x.

    The row `padding_idx` is read as zeros and gets no gradient. With `max_norm`, rows that are read are first scaled
    down in the table where their `norm_type`-norm is above it. `sparse` changes nothing here.
    """
    x = tensor(x, "embedding")
    if not x.dtype.is_integer:
        raise TypeError(f"embedding: the indices must be integers, not {x.dtype.name}")
    if scale_grad_by_freq:
        raise NotImplementedError("embedding: scale_grad_by_freq=True is not supported")
    count = weight.shape[0]
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise ValueError(f"embedding: padding_idx {padding_idx} is outside of a table of {count} rows")
        padding_idx %= count
    if max_norm is not None:
        _scale_rows(x, weight, max_norm, norm_type)
    rows = apply(_TAKE, weight, x, axis=0)
    if padding_idx is None:
        return rows
    return piecewise((x != padding_idx).unsqueeze(-1).expand_as(rows), rows, 0.0)


def _scale_rows(x: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    with replaced(grad=False):
        rows = apply(_TAKE, weight, x, axis=0)
        norms = (math.abs(rows) ** norm_type).sum(-1, keepdim=True) ** (1.0 / norm_type)
        weight[x] = rows * math.minimum(max_norm / (norms + 1e-7), 1.0)


def one_hot(x: Any, num_classes: int = -1, name: str | None = None) -> Tensor:
    """Return a new last axis of `num_classes` elements with 1 at the place x; -1 takes max(x) + 1 classes.

    >>> import dy2st as paddle
    >>> paddle.nn.functional.one_hot(paddle.to_tensor([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    x = tensor(x, "one_hot")
    if isinstance(num_classes, Tensor):
        num_classes = num_classes.item()
    if isinstance(num_classes, int) and num_classes == -1:
        num_classes = int(x.max()) + 1
    if isinstance(num_classes, int) and num_classes < 1:
        raise ValueError(f"one_hot: num_classes must be positive (or -1), not {num_classes}")
    return hot(x, num_classes, default_dtype())


def hot(x: Tensor, num_classes: Any, dtype: DType) -> Tensor:
    """Return one-hot vectors in a dtype; the number of classes may be an extent that is known at run time alone."""
    if isinstance(num_classes, int):
        return apply(_ONE_HOT, x, num_classes=num_classes, dtype=dtype)
    return apply(_ONE_HOT, x, num_classes, num_classes=None, dtype=dtype)


def gather_tree(ids: Any, parents: Any) -> Tensor:
    """Return the sequences of a beam search, [time, batch, beams], from the words and the beams that they came from.

    From the last step on, each beam takes its word and goes on in the beam that `parents` names.

    >>> import dy2st as paddle
    >>> ids, parents = paddle.to_tensor([[[2, 3]], [[4, 5]]]), paddle.to_tensor([[[0, 0]], [[1, 0]]])
    >>> paddle.nn.functional.gather_tree(ids, parents).tolist()
    [[[3, 2]], [[4, 5]]]
    """
    ids, parents = tensor(ids, "gather_tree"), tensor(parents, "gather_tree")
    for x in (ids, parents):
        if not x.dtype.is_integer:
            raise TypeError(f"gather_tree: ids and parents must be integers, not {x.dtype.name}")
    return apply(_GATHER_TREE, ids, parents)
