"""`paddle.distributed.fleet` of one process: worker 0 of 1, whose model and optimizer are as they were given."""

from dy2st.distributed.fleet import meta_parallel, utils
from dy2st.distributed.fleet.setting_up import (
    DistributedStrategy,
    Fleet,
    HybridCommunicateGroup,
    PaddleCloudRoleMaker,
    Role,
    UserDefinedRoleMaker,
)
from dy2st.distributed.fleet.utils import recompute
from dy2st.missing import missing_in

fleet = Fleet()
barrier_worker = fleet.barrier_worker
distributed_model = fleet.distributed_model
distributed_optimizer = fleet.distributed_optimizer
distributed_scaler = fleet.distributed_scaler
get_hybrid_communicate_group = fleet.get_hybrid_communicate_group
init = fleet.init
init_worker = fleet.init_worker
is_first_worker = fleet.is_first_worker
is_server = fleet.is_server
is_worker = fleet.is_worker
local_rank = fleet.local_rank
node_num = fleet.node_num
rank = worker_index = fleet.worker_index
server_num = fleet.server_num
stop_worker = fleet.stop_worker
world_size = nranks = worker_num = fleet.worker_num

__getattr__ = missing_in(__name__)

__all__ = [
    "DistributedStrategy", "Fleet", "HybridCommunicateGroup", "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker",
    "barrier_worker", "distributed_model", "distributed_optimizer", "distributed_scaler", "fleet",
    "get_hybrid_communicate_group", "init", "init_worker", "is_first_worker", "is_server", "is_worker", "local_rank",
    "meta_parallel", "node_num", "nranks", "rank", "recompute", "server_num", "stop_worker", "utils", "worker_index",
    "worker_num", "world_size",
]  # fmt: skip
