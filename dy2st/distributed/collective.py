"""Collective operations on tensors: what processes give each other, in place as Paddle has it.

Each is an op (`ops/collective/`), at once in eager mode and as a step of a Program in a trace: there all processes must
come to the same ones in the same order. Gradients flow through them, as of the sum of what all processes derive, where
the tensors of all of them need one; into a leaf that needs a gradient a collective writes without, as Paddle's do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from dy2st.distributed.groups import rank_in, ranks_of
from dy2st.functions.core.assigning import write
from dy2st.functions.core.operands import constant, op
from dy2st.functions.inplace import before
from dy2st.functions.shape.concat_split import stack, unstack
from dy2st.ir.context import current, replaced
from dy2st.ir.location import line_here
from dy2st.ops.collective.collective_base import on_host, typed
from dy2st.ops.collective.messages import Posted, posted
from dy2st.ops.collective.reductions import REDUCTIONS
from dy2st.ops.collective.world import shown, world
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor


class ReduceOp:
    """How tensors of several processes become one."""

    SUM, MAX, MIN, PROD, AVG = range(5)


class Task:
    """An operation that has been done."""

    def wait(self) -> bool:
        """Return True at once."""
        return True

    is_completed = wait
    synchronize = wait


class Message(Task):
    """A message on its way."""

    def __init__(self, request: Posted, then: Callable[[], Any] | None = None):
        self._request, self._then = request, then

    def wait(self) -> bool:
        """Wait until the message is there, or its tensor may change."""
        self._request.wait()
        then, self._then = self._then, None
        if then is not None:
            then()
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """Return whether `wait` would not wait."""
        return self._request.is_done()


_REDUCTIONS = (*REDUCTIONS, REDUCTIONS[0])  # a mean is a sum, divided


def collective(name: str, *operands: Any, group: Any = None, **attributes: Any) -> Any:
    """Apply a collective op for a group, at the user's line."""
    return apply(op(name), *operands, **attributes, ranks=ranks_of(group), at=line_here())


def is_available() -> bool:
    """Return whether processes can talk with each other: they can."""
    return True


def get_backend(group: Any = None) -> str:
    """Return by what processes talk: "MPI"; "GLOO" for one process, as on Paddle's CPUs."""
    return "MPI" if world().size > 1 else "GLOO"


def barrier(group: Any = None) -> None:
    """Wait for all processes."""
    collective("barrier", group=group)


def wait(tensor: Tensor, group: Any = None, use_calc_stream: bool = True) -> None:
    """Wait until a tensor is there: it is."""


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """Make the tensor the sum (or what `op` says) over all processes.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0, 2.0])
    >>> paddle.distributed.all_reduce(x).wait(), x.tolist()
    (True, [1.0, 2.0])
    """
    return _written(tensor, reduced(before(tensor), op, group))


def reduced(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the tensors of all processes reduced to one; TypeError for a mean of integers."""
    _refuse(tensor, op)
    made = collective("all_reduce", tensor, group=group, reduction=_REDUCTIONS[op])
    return made / len(ranks_of(group)) if op == ReduceOp.AVG else made


def _refuse(tensor: Tensor, op: Any) -> None:
    if op not in range(len(_REDUCTIONS)):
        raise ValueError(f"a reduction is one of ReduceOp.SUM, MAX, MIN, PROD and AVG, not {op!r}")
    if op == ReduceOp.AVG and tensor.dtype.kind not in "fc":
        raise TypeError(f"ReduceOp.AVG is a mean of floats, not of {tensor.dtype.name}")


def reduce(tensor: Tensor, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """Make the tensor of process `dst` the sum (or what `op` says) over all processes; others keep theirs."""
    root, count = rank_in(group, dst, "reduce: dst"), len(ranks_of(group))
    here = world().rank == dst
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        made = reduced(tensor.detach(), op, group)
        return _written(tensor, made) if here else Task()
    _refuse(tensor, op)
    total = collective("reduce_to", tensor, group=group, root=root)  # zeros where it is not for: so all have a gradient
    total = total / count if op == ReduceOp.AVG else total
    return _written(tensor, total if here else tensor + total)


def broadcast(tensor: Tensor, src: int, group: Any = None, sync_op: bool = True) -> Task:
    """Give all processes the tensor of process `src`."""
    root = rank_in(group, src, "broadcast: src")
    return _written(tensor, collective("broadcast_from", tensor, group=group, root=root))


def all_gather(tensor_list: list[Any], tensor: Tensor, group: Any = None, sync_op: bool = True) -> Task:
    """Append the tensors of all processes, which have one shape, to the list, or write them into the tensors there."""
    return _listed(tensor_list, unstack(collective("all_gather", tensor.unsqueeze(0), group=group, axis=0)))


def gather(
    tensor: Tensor, gather_list: list[Any] | None = None, dst: int = 0, group: Any = None, sync_op: bool = True
) -> Task:
    """Append the tensors of all processes, which have one shape, to the list of process `dst`; without gradients."""
    place, count = ranks_of(group).index(rank_in(group, dst, "gather: dst")), len(ranks_of(group))
    goes, comes = _only(place, count), (1 if world().rank == dst else 0,) * count
    made = collective("all_to_all_sizes", tensor.detach().unsqueeze(0), group=group, axis=0, goes=goes, comes=comes)
    return _listed(gather_list, unstack(made)) if gather_list is not None and world().rank == dst else Task()


def scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor] | None = None, src: int = 0, group: Any = None, sync_op: bool = True
) -> Task:
    """Give the tensor of each process its part of the list of process `src`; without gradients."""
    place, count = ranks_of(group).index(rank_in(group, src, "scatter: src")), len(ranks_of(group))
    here = world().rank == src
    if here and len(tensor_list or ()) != count:
        raise ValueError(f"scatter: {len(tensor_list or ())} tensors for {count} processes")
    parts = stack([t.detach() for t in tensor_list or ()]) if here else tensor.unsqueeze(0)[:0]
    goes, comes = (1 if here else 0,) * count, _only(place, count)
    made = collective("all_to_all_sizes", parts, group=group, axis=0, goes=goes, comes=comes)
    return _written(tensor, made.squeeze(0))


def reduce_scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True
) -> Task:
    """Give the tensor of each process its part of the sum (or what `op` says) of all lists."""
    ranks, parts = ranks_of(group), stack(list(tensor_list))
    if len(tensor_list) != len(ranks):
        raise ValueError(f"reduce_scatter: {len(tensor_list)} tensors for {len(ranks)} processes")
    if op == ReduceOp.SUM:
        return _written(tensor, collective("reduce_scatter", parts, group=group, axis=0).squeeze(0))
    return _written(tensor, reduced(parts, op, group)[ranks.index(world().rank)])


def alltoall(
    out_tensor_list: list[Any], in_tensor_list: Sequence[Tensor], group: Any = None, sync_op: bool = True
) -> Task:
    """Append to the list what each process has for this one: tensors of one shape."""
    if len(in_tensor_list) != len(ranks_of(group)):
        raise ValueError(f"alltoall: {len(in_tensor_list)} tensors for {len(ranks_of(group))} processes")
    made = collective("all_to_all", stack(list(in_tensor_list)), group=group, axis=0)
    return _listed(out_tensor_list, unstack(made))


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, out_split_sizes: Any = None, in_split_sizes: Any = None, group: Any = None,
    sync_op: bool = True,
) -> Task:  # fmt: skip
    """Make one tensor of what each process has for this one: blocks along the first axis, even ones without sizes."""
    if not out_split_sizes and not in_split_sizes:
        return _written(out_tensor, collective("all_to_all", in_tensor, group=group, axis=0))
    count = len(ranks_of(group))
    goes, comes = (
        tuple(sizes) if sizes else (int(t.shape[0]) // count,) * count
        for sizes, t in ((in_split_sizes, in_tensor), (out_split_sizes, out_tensor))
    )
    return _written(out_tensor, collective("all_to_all_sizes", in_tensor, group=group, axis=0, goes=goes, comes=comes))


def send(tensor: Tensor, dst: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Send the tensor to process `dst`, which receives it; ValueError where that is this one."""
    collective("send", tensor, group=group, to=_other(group, dst, "send"))
    return Task()


def recv(tensor: Tensor, src: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Make the tensor the one that process `src` sends, of the same dtype and shape."""
    return _written(tensor, collective("receive", tensor, group=group, source=_other(group, src, "recv")))


def isend(tensor: Tensor, dst: int = 0, group: Any = None) -> Task:
    """Begin to send the tensor to process `dst`; what is returned waits for that. In a trace: `send`."""
    to = _other(group, dst, "isend")
    if current().trace is not None:
        return send(tensor, dst, group)
    array = on_host(tensor.payload)
    return Message(
        posted(ranks_of(group), array, to, f"isend(to {to}) of {typed(array)} at {shown(line_here())}", True)
    )


def irecv(tensor: Tensor, src: int = 0, group: Any = None) -> Task:
    """Begin to receive a tensor from process `src`; it is there after its `wait`. In a trace: `recv`."""
    source = _other(group, src, "irecv")
    if current().trace is not None:
        return recv(tensor, src, group)
    array = np.empty_like(on_host(tensor.payload))
    request = posted(
        ranks_of(group), array, source, f"irecv(from {source}) of {typed(array)} at {shown(line_here())}", False
    )
    return Message(request, lambda: _written(tensor, constant(array, tensor.place)))


all_to_all = alltoall


def _other(group: Any, rank: int, name: str) -> int:
    if rank == world().rank or rank not in ranks_of(group):
        raise ValueError(f"{name}: process {rank} is not another one of {list(ranks_of(group))}")
    return rank


def _only(place: int, count: int) -> tuple[int, ...]:
    return tuple(1 if i == place else 0 for i in range(count))


def _written(tensor: Tensor, made: Tensor) -> Task:
    leaf = tensor.is_leaf and not tensor.stop_gradient
    with replaced(grad=False) if leaf else nullcontext():
        write(tensor, made)
    return Task()


def _listed(listed: list[Any], made: Sequence[Tensor]) -> Task:
    if len(listed) == len(made):
        for t, part in zip(listed, made, strict=True):
            _written(t, part)
    else:
        listed.extend(made)
    return Task()
