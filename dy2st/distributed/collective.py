"""Collective operations of one process: what all processes give is what this one gives.

A sum, maximum or mean over one tensor is that tensor, so `all_reduce` leaves it as it is. Messages to another process
have nobody to go to and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.distributed.parallel import get_rank
from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor


class ReduceOp:
    """How tensors of several processes become one."""

    SUM, MAX, MIN, PROD, AVG = range(5)


class Group:
    """The processes that talk with each other: this one."""

    rank, nranks, world_size, id, name = 0, 1, 1, 0, "_default_pg"
    ranks = (0,)

    def is_member(self) -> bool:
        """Return True."""
        return True

    def get_group_rank(self, rank: int) -> int:
        """Return the number in the group of a process; -1 where it is not in it."""
        return 0 if rank == 0 else -1

    def __repr__(self) -> str:
        return "Group(ranks=[0])"


class Task:
    """An operation that has been done."""

    def wait(self) -> bool:
        """Return True at once."""
        return True

    is_completed = wait
    synchronize = wait


_GROUP = Group()


def get_group(id: int = 0) -> Group:
    """Return the group of all processes; ValueError for another number."""
    if id != 0:
        raise ValueError(f"there is one group, 0, not {id}")
    return _GROUP


def new_group(ranks: Sequence[int] | None = None, backend: str | None = None, timeout: Any = None) -> Group:
    """Return the group of these processes: there is one, 0. ValueError for others."""
    if ranks is not None and list(ranks) not in ([0], []):
        raise ValueError(f"new_group: there is one process, 0, not {list(ranks)}")
    return _GROUP


def destroy_process_group(group: Any = None) -> None:
    """Work as one process alone from now on."""
    current().process.parallel = False


def is_available() -> bool:
    """Return whether processes can talk with each other: there is one, which can."""
    return True


def get_backend(group: Any = None) -> str:
    """Return by what processes would talk: "GLOO", as on Paddle's CPUs."""
    return "GLOO"


def barrier(group: Any = None) -> None:
    """Wait for all processes: they are here."""


def wait(tensor: Tensor, group: Any = None, use_calc_stream: bool = True) -> None:
    """Wait until a tensor is there: it is."""


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """Make the tensor the sum (or what `op` says) over all processes: of one, it is that already.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([1.0, 2.0])
    >>> paddle.distributed.all_reduce(x).wait(), x.tolist()
    (True, [1.0, 2.0])
    """
    return Task()


def reduce(tensor: Tensor, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True) -> Task:
    """Make the tensor of process `dst` the sum over all processes."""
    return _only_here(dst, "reduce: dst")


def broadcast(tensor: Tensor, src: int, group: Any = None, sync_op: bool = True) -> Task:
    """Give all processes the tensor of process `src`."""
    return _only_here(src, "broadcast: src")


def all_gather(tensor_list: list[Any], tensor: Tensor, group: Any = None, sync_op: bool = True) -> Task:
    """Append the tensors of all processes to the list."""
    tensor_list.append(tensor.clone())
    return Task()


def gather(
    tensor: Tensor, gather_list: list[Any] | None = None, dst: int = 0, group: Any = None, sync_op: bool = True
) -> Task:
    """Append the tensors of all processes to the list of process `dst`."""
    if gather_list is not None:
        gather_list.append(tensor.clone())
    return _only_here(dst, "gather: dst")


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Append what all processes give to the list."""
    object_list.append(obj)


def broadcast_object_list(object_list: list[Any], src: int, group: Any = None) -> None:
    """Give all processes the list of process `src`."""
    _only_here(src, "broadcast_object_list: src")


def scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor] | None = None, src: int = 0, group: Any = None, sync_op: bool = True
) -> Task:
    """Give the tensor of each process its part of the list of process `src`."""
    (part,) = tensor_list or (tensor,)
    tensor.set_value(part)
    return _only_here(src, "scatter: src")


def scatter_object_list(
    out_object_list: list[Any], in_object_list: Sequence[Any] | None = None, src: int = 0, group: Any = None
) -> None:
    """Give each process its part of the list of process `src`."""
    out_object_list[:] = in_object_list or []
    _only_here(src, "scatter_object_list: src")


def reduce_scatter(
    tensor: Tensor, tensor_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, sync_op: bool = True
) -> Task:
    """Give the tensor of each process its part of the sum of all lists."""
    return scatter(tensor, tensor_list)


def alltoall(
    out_tensor_list: list[Any], in_tensor_list: Sequence[Tensor], group: Any = None, sync_op: bool = True
) -> Task:
    """Append to the list what each process has for this one."""
    out_tensor_list.extend(t.clone() for t in in_tensor_list)
    return Task()


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, out_split_sizes: Any = None, in_split_sizes: Any = None, group: Any = None,
    sync_op: bool = True,
) -> Task:  # fmt: skip
    """Make one tensor of what each process has for this one."""
    out_tensor.set_value(in_tensor)
    return Task()


def send(tensor: Tensor, dst: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Raise ValueError: there is no other process."""
    raise ValueError(f"send: there is no process beside {get_rank()}, {dst} neither")


def recv(tensor: Tensor, src: int = 0, group: Any = None, sync_op: bool = True) -> Task:
    """Raise ValueError: there is no other process."""
    raise ValueError(f"recv: there is no process beside {get_rank()}, {src} neither")


isend, irecv, all_to_all = send, recv, alltoall


def _only_here(rank: int, name: str) -> Task:
    if rank != 0:
        raise ValueError(f"{name}={rank}, and there is one process, 0")
    return Task()
