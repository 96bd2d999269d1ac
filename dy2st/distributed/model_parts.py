"""Tensors between processes that have parts of one model, and the parameters that are such parts.

A parameter that is a part knows of what: `part` is (axis, number of this block, number of blocks), which checkpoints
read. What is not is whole in all processes, which begin with that of the first and get equal gradients.
"""

from __future__ import annotations

from typing import Any

from dy2st.distributed.collective import broadcast, collective
from dy2st.distributed.groups import Group
from dy2st.ir.context import replaced
from dy2st.nn.layer import Layer
from dy2st.ops.collective.world import world
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor


def copied(x: Tensor, group: Group) -> Tensor:
    """Return a tensor that all processes have equally for the use of each; its gradient is the sum of theirs."""
    return x if group.nranks == 1 else collective("copy_to_parts", x, group=group)


def summed(x: Tensor, group: Group) -> Tensor:
    """Return the sum of what the processes have, which all of them use equally."""
    return x if group.nranks == 1 else collective("sum_of_parts", x, group=group)


def own_block(x: Tensor, axis: int, group: Group) -> Tensor:
    """Return the block of this process along an axis of a tensor that all have equally."""
    return x if group.nranks == 1 else collective("own_block", x, group=group, axis=axis % x.ndim)


def joined(x: Tensor, axis: int, group: Group) -> Tensor:
    """Return the blocks of all processes along an axis as one tensor, which all of them use equally."""
    return x if group.nranks == 1 else collective("joined_blocks", x, group=group, axis=axis % x.ndim)


def block_size(what: str, extent: int, group: Group) -> int:
    """Return how many of `extent` each process has; ValueError where they do not share them evenly."""
    if extent % group.nranks:
        raise ValueError(f"{what}: {group.nranks} processes do not share {extent} evenly")
    return extent // group.nranks


def keep_block(layer: Layer, name: str, axis: int, group: Group) -> None:
    """Replace a parameter of a layer by this process's block of it along an axis."""
    p = getattr(layer, name)
    if p is None or group.nranks == 1:
        return
    size = block_size(f"{type(layer).__name__}: {name}", int(p.shape[axis]), group)
    index: list[Any] = [slice(None)] * p.ndim
    index[axis] = slice(group.rank * size, (group.rank + 1) * size)
    made = Parameter(
        p.array("a parameter")[tuple(index)].copy(), not p.stop_gradient, name=p.name, regularizer=p.regularizer,
        need_clip=p.need_clip,
    )  # fmt: skip
    made.optimize_attr, made.is_distributed = p.optimize_attr, True
    made.part = (axis, group.rank, group.nranks)
    setattr(layer, name, made)


def share_whole_parameters(model: Layer, ways: Any) -> None:
    """Give the processes that have parts of a model the same values of what is whole in all of them."""
    group = ways.group("mp")
    if group.nranks == 1:
        return
    with replaced(grad=False):
        for t in (*model.parameters(), *model.buffers()):
            if t.part is None:
                broadcast(t, group.ranks[0], group)
                t.counted_by = group.ranks[0]


def counted_here(p: Tensor) -> bool:
    """Return whether this process counts a parameter, where each counts once of those that are whole in several."""
    return p.counted_by in (None, world().rank)
