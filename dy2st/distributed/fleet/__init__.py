"""`paddle.distributed.fleet`: workers that have the same model and each its data."""

from dy2st.distributed.fleet import meta_parallel, metrics, utils
from dy2st.distributed.fleet.data_generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
)
from dy2st.distributed.fleet.setting_up import (
    DistributedStrategy,
    Fleet,
    PaddleCloudRoleMaker,
    Role,
    UserDefinedRoleMaker,
    UtilBase,
)
from dy2st.distributed.fleet.topology import HybridCommunicateGroup
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
init_server = run_server = fleet.init_server
load_model = fleet.load_model
save_inference_model = fleet.save_inference_model
save_persistables = fleet.save_persistables
util = UtilBase()
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
    "DataGenerator",
    "DistributedStrategy",
    "Fleet",
    "HybridCommunicateGroup",
    "MultiSlotDataGenerator",
    "MultiSlotStringDataGenerator",
    "PaddleCloudRoleMaker",
    "Role",
    "UserDefinedRoleMaker",
    "UtilBase",
    "barrier_worker",
    "distributed_model",
    "distributed_optimizer",
    "distributed_scaler",
    "fleet",
    "get_hybrid_communicate_group",
    "init",
    "init_server",
    "init_worker",
    "is_first_worker",
    "is_server",
    "is_worker",
    "load_model",
    "local_rank",
    "meta_parallel",
    "metrics",
    "node_num",
    "nranks",
    "rank",
    "recompute",
    "run_server",
    "save_inference_model",
    "save_persistables",
    "server_num",
    "stop_worker",
    "util",
    "utils",
    "worker_index",
    "worker_num",
    "world_size",
]  # fmt: skip
