"""Layers whose weights are spread over processes: columns or rows of a matrix, rows of a table, classes of scores.

    x -- copied --> x @ columns + their bias -- joined (or left in parts) --> y       ColumnParallelLinear
    x, in parts (or its own block) --> x @ rows -- summed, + bias --> y               RowParallelLinear

All processes of the group call them with the same inputs, and begin with parts of what one process would begin with: a
whole weight is drawn and cut. In one process they are the plain layers.
"""

from __future__ import annotations

from typing import Any

from dy2st.distributed.collective import ReduceOp, reduced
from dy2st.distributed.fleet.topology import ways
from dy2st.distributed.groups import Group, ranks_of
from dy2st.distributed.model_parts import block_size, copied, joined, keep_block, own_block, summed
from dy2st.functions.core.operands import cast_to, tensor
from dy2st.nn.functional.affine import linear
from dy2st.nn.functional.lookup import embedding
from dy2st.nn.layer import Layer
from dy2st.nn.layers.linear import Embedding, Linear
from dy2st.nn.maths import TENSORS
from dy2st.runtime.eager.tensor import Tensor


def _group(given: Any) -> Group:
    """Return the group of the processes that have parts of a layer."""
    if given is None:
        return ways().group("mp")
    ranks_of(given)
    return given


class ColumnParallelLinear(Linear):
    """A linear layer of which each process has some columns; its output is whole, or the own block of it.

    ValueError where the columns are not shared evenly.

    >>> import dy2st as paddle
    >>> from dy2st.distributed.fleet.meta_parallel import ColumnParallelLinear
    >>> ColumnParallelLinear(4, 6, has_bias=True)(paddle.ones([3, 4])).shape
    [3, 6]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool | None = None,
        gather_output: bool = True, fuse_matmul_bias: bool = False, mp_group: Any = None, name: str | None = None,
    ):  # fmt: skip
        self._group = _group(mp_group)
        block_size("ColumnParallelLinear: out_features", out_features, self._group)
        super().__init__(in_features, out_features, weight_attr, None if has_bias else False, name)
        self.is_mp, self.gather_output = self._group.nranks > 1, gather_output
        keep_block(self, "weight", 1, self._group)
        keep_block(self, "bias", 0, self._group)

    def forward(self, input: Tensor) -> Tensor:
        y = linear(copied(input, self._group), self.weight, self.bias)
        return joined(y, -1, self._group) if self.gather_output else y


class RowParallelLinear(Linear):
    """A linear layer of which each process has some rows; its input is whole, or the own block of it.

    ValueError where the rows are not shared evenly.
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool = True,
        input_is_parallel: bool = False, fuse_matmul_bias: bool = False, mp_group: Any = None, name: str | None = None,
    ):  # fmt: skip
        self._group = _group(mp_group)
        block_size("RowParallelLinear: in_features", in_features, self._group)
        super().__init__(in_features, out_features, weight_attr, None if has_bias else False, name)
        self.is_mp, self.input_is_parallel = self._group.nranks > 1, input_is_parallel
        keep_block(self, "weight", 0, self._group)

    def forward(self, input: Tensor) -> Tensor:
        x = input if self.input_is_parallel else own_block(input, -1, self._group)
        if not self.is_mp:
            return linear(x, self.weight, self.bias)
        y = summed(linear(x, self.weight), self._group)
        return y if self.bias is None else y + self.bias


class VocabParallelEmbedding(Embedding):
    """An embedding of which each process has some rows; ValueError where they are not shared evenly."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, weight_attr: Any = None, mp_group: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        self._group = _group(mp_group)
        self._rows = block_size("VocabParallelEmbedding: num_embeddings", num_embeddings, self._group)
        super().__init__(num_embeddings, embedding_dim, weight_attr=weight_attr, name=name)
        self.is_mp = self._group.nranks > 1
        keep_block(self, "weight", 0, self._group)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return super().forward(x)
        local, here = _in_block(tensor(x, "embedding"), self._rows, self._group)
        rows = embedding(local, self.weight)
        return summed(rows * cast_to(here, rows.dtype).unsqueeze(-1), self._group)


class ParallelCrossEntropy(Layer):
    """The loss of each row of scores, [..., 1]; each process has the scores of some classes, the labels are all.

    As many classes in each process; rows whose label is `ignore_index` have no loss.
    """

    def __init__(self, mp_group: Any = None, name: str | None = None, ignore_index: int = -100):
        super().__init__()
        self._group, self._ignore_index = _group(mp_group), ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        label = tensor(label, "ParallelCrossEntropy")
        label = label if label.ndim == input.ndim else label.unsqueeze(-1)
        highest = reduced(input.detach().max(-1, keepdim=True), ReduceOp.MAX, self._group)
        shifted = input - highest
        total = summed(shifted.exp().sum(-1, keepdim=True), self._group)
        kept = label != self._ignore_index
        local, here = _in_block(TENSORS.where(kept, label, TENSORS.zeros_like(label)), input.shape[-1], self._group)
        chosen = shifted.take_along_axis(local, -1) * cast_to(here, input.dtype)
        loss = total.log() - summed(chosen, self._group)
        return TENSORS.where(kept, loss, TENSORS.zeros_like(loss))


def _in_block(number: Tensor, size: Any, group: Group) -> tuple[Tensor, Tensor]:
    """Return numbers within the block of this process, 0 for others, and which ones these are."""
    local = number - group.rank * size
    here = (local >= 0).logical_and(local < size)
    nowhere = (number < 0).logical_or(number >= group.nranks * size)  # which the look-up then refuses
    return local * cast_to(here, local.dtype) + number * cast_to(nowhere, local.dtype), here
