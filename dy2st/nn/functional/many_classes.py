"""Losses over so many classes that a softmax over all costs too much: trees, clusters, samples.

F. Morin and Y. Bengio, "Hierarchical probabilistic neural network language model" (2005); E. Grave et al., "Efficient
softmax approximation for GPUs" (2017); X. An et al., "Partial FC" (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.linalg.linalg import matmul
from dy2st.functions.math.comparison import where
from dy2st.functions.math.random import randperm
from dy2st.functions.math.search import argsort, sort
from dy2st.functions.shape.creation import arange, full_like, zeros, zeros_like
from dy2st.functions.shape.gather_scatter import gather, scatter, take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.nn.functional.activation import softplus
from dy2st.nn.functional.affine import linear
from dy2st.nn.functional.softmax_family import log_softmax
from dy2st.runtime.eager.tensor import Tensor


def hsigmoid_loss(
    input: Any, label: Any, num_classes: int, weight: Any, bias: Any = None, path_table: Any = None,
    path_code: Any = None, is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Return, [batch, 1], the sum of the losses of the two-way choices on the way to each class in a tree.

    Parameters
    ----------
    input, label
        [batch, features], and numbers of classes [batch, 1].
    weight, bias
        A row for each inner node of the tree: [num_classes - 1, features] and [num_classes - 1, 1].
    path_table, path_code
        Inner nodes on the way to each label, [batch, longest way], -1 behind its end, and which way is taken there;
        by default the tree is the complete binary one.

    Places behind the end of a way add log(2) each, as in Paddle.
    """
    x, weight = floating(input, "hsigmoid_loss"), floating(weight, "hsigmoid_loss")
    label = reshape(cast_to(tensor(label, "hsigmoid_loss"), dtypes.int64), [-1, 1])
    if (path_table is None) != (path_code is None):
        raise ValueError("hsigmoid_loss: give path_table and path_code, or none of them")
    if path_table is None:
        if num_classes < 2:
            raise ValueError(f"hsigmoid_loss: a tree needs two classes, not {num_classes}")
        bits = arange((num_classes - 1).bit_length())
        code = label + num_classes
        nodes = code // (2 ** (bits + 1)) - 1
        taken = code // (2**bits) % 2
    else:
        nodes, taken = (cast_to(tensor(t, "hsigmoid_loss"), dtypes.int64) for t in (path_table, path_code))
    known = nodes >= 0
    at = where(known, nodes, zeros_like(nodes))
    scores = (weight[at] * x.unsqueeze(1)).sum(-1)
    if bias is not None:
        scores = scores + reshape(floating(bias, "hsigmoid_loss"), [-1])[at]
    scores = where(known, scores.clip(-40.0, 40.0), zeros_like(scores))
    chosen = where(known, cast_to(taken, scores.dtype) * scores, zeros_like(scores))
    return (softplus(scores, threshold=50.0) - chosen).sum(1, keepdim=True)


def adaptive_log_softmax_with_loss(
    input: Any, label: Any, head_weight: Any, tail_weights: Sequence[Any], cutoffs: Sequence[int],
    head_bias: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the logarithms of the probabilities of the labels, [batch], and the mean of their negatives.

    The head has frequent classes and one place for each cluster of rare ones; the classes of cluster i are those from
    cutoffs[i] to cutoffs[i + 1], and `tail_weights[i]` a pair of matrices.
    """
    x, label = floating(input, "adaptive_log_softmax_with_loss"), tensor(label, "adaptive_log_softmax_with_loss")
    single = x.ndim == 1
    if label.ndim != x.ndim - 1:
        raise ValueError(f"adaptive_log_softmax_with_loss: labels of shape {label.shape} do not go with {x.shape}")
    rows, classes = (x.unsqueeze(0), label.unsqueeze(0)) if single else (x, label)
    classes = cast_to(classes, dtypes.int64).unsqueeze(1)
    head = log_softmax(linear(rows, head_weight, head_bias))
    short = cutoffs[0]
    edges = list(cutoffs)
    at = where(classes < short, classes, zeros_like(classes))
    out = take_along_axis(head, at, 1)
    for i, pair in enumerate(tail_weights):
        low, high = edges[i], edges[i + 1] if i + 1 < len(edges) else edges[i] + pair[1].shape[1]
        inside = (classes >= low) & (classes < high)
        tail = log_softmax(matmul(matmul(rows, pair[0]), pair[1]))
        found = take_along_axis(tail, where(inside, classes - low, zeros_like(classes)), 1)
        out = where(inside, found + head[:, short + i : short + i + 1], out)
    found = out[0, 0] if single else out[:, 0]
    return found, -found.mean()


def class_center_sample(label: Any, num_classes: int, num_samples: int, group: Any = None) -> tuple[Tensor, Tensor]:
    """Return labels as places among sampled classes, and these, ascending: those of the labels and random others.

    There are `num_samples` of them, or as many as there are among the labels where those are more.
    """
    label = tensor(label, "class_center_sample")
    classes = cast_to(label, dtypes.int64)
    if num_samples > num_classes:
        raise ValueError(f"class_center_sample: {num_samples} samples of {num_classes} classes")
    present = scatter(zeros([num_classes], "int64"), classes, full_like(classes, 1), overwrite=True)
    keys = randperm(num_classes) - present * num_classes  # labels come first, the others in random order
    total = present.sum()
    count = where(total > num_samples, total, full_like(total, num_samples)).item()
    chosen = sort(argsort(keys)[:count])
    places = scatter(zeros([num_classes], "int64"), chosen, arange(count), overwrite=True)
    return cast_to(gather(places, classes), label.dtype), cast_to(chosen, label.dtype)
