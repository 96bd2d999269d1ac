"""`paddle.distributed`, as far as one process goes: ranks, data parallel layers, collectives, starting a process."""

from dy2st.distributed import fleet
from dy2st.distributed.collective import (
    Group,
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    all_to_all,
    alltoall,
    alltoall_single,
    barrier,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    get_backend,
    get_group,
    irecv,
    is_available,
    isend,
    new_group,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    scatter_object_list,
    send,
    wait,
)
from dy2st.distributed.parallel import (
    DataParallel,
    ParallelEnv,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_initialized,
)
from dy2st.distributed.spawn import spawn
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = [
    "DataParallel", "Group", "ParallelEnv", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "all_to_all",
    "alltoall", "alltoall_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "fleet",
    "gather", "get_backend", "get_group", "get_rank", "get_world_size", "init_parallel_env", "irecv", "is_available",
    "is_initialized", "isend", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "scatter_object_list",
    "send", "spawn", "wait",
]  # fmt: skip
