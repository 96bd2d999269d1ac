"""`paddle.distributed`: several processes by MPI, or one: ranks, collectives, data parallel layers, how to begin."""

from dy2st.distributed import fleet, sharding
from dy2st.distributed.checkpoint import load_state_dict, save_state_dict
from dy2st.distributed.collective import (
    ReduceOp,
    all_gather,
    all_reduce,
    all_to_all,
    alltoall,
    alltoall_single,
    barrier,
    broadcast,
    gather,
    get_backend,
    irecv,
    is_available,
    isend,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
    wait,
)
from dy2st.distributed.data_parallel import DataParallel
from dy2st.distributed.groups import Group, destroy_process_group, get_group, new_group
from dy2st.distributed.objects import all_gather_object, broadcast_object_list, scatter_object_list
from dy2st.distributed.parallel import (
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
    "is_initialized", "isend", "load_state_dict", "new_group", "recv", "reduce", "reduce_scatter", "save_state_dict",
    "scatter", "scatter_object_list", "send", "sharding", "spawn", "wait",
]  # fmt: skip
