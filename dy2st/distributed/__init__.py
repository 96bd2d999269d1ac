"""`paddle.distributed`, as far as one process goes: ranks, data parallel layers, starting a process."""

from dy2st.distributed import fleet
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
    "DataParallel",
    "ParallelEnv",
    "fleet",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_initialized",
    "spawn",
]
