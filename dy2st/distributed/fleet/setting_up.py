"""What a script says of its processes, and what it is told: they have a model, or parts of it, and each its data.

A strategy says how a model is spread (`hybrid_configs`, `sharding`); what only says how processes talk changes nothing.
"""

from __future__ import annotations

from typing import Any

from dy2st.distributed.collective import barrier
from dy2st.distributed.data_parallel import DataParallel
from dy2st.distributed.fleet.pipeline_layer import PipelineLayer
from dy2st.distributed.fleet.pipeline_parallel import PipelineParallel
from dy2st.distributed.fleet.topology import HybridCommunicateGroup, degrees_of, ways
from dy2st.distributed.model_parts import share_whole_parameters
from dy2st.distributed.objects import all_gather_object
from dy2st.distributed.parallel import get_rank, get_world_size, init_parallel_env
from dy2st.distributed.spread_steps import spread
from dy2st.ops.collective.world import world
from dy2st.static.model_files import load, save, save_inference_model
from dy2st.static.program import default_main_program


class DistributedStrategy:
    """Switches and settings by name: those that were not set are False, settings ("..._configs") empty."""

    def __init__(self) -> None:
        self.hybrid_configs: dict[str, Any] = {f"{kind}_degree": 1 for kind in ("dp", "mp", "pp", "sharding", "sep")}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hybrid_configs":
            value = {**self.__dict__.get(name, {}), **value}
            degrees_of(value, get_world_size())
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a DistributedStrategy has no {name!r}", name=name)
        return self.__dict__.setdefault(name, {}) if name.endswith("_configs") else False


class Role:
    """What a process is for."""

    WORKER, SERVER, HETER_WORKER, ALL, COORDINATOR = range(1, 6)


class PaddleCloudRoleMaker:
    """Tells a process which worker it is."""

    def __init__(self, is_collective: bool = False, **kwargs: Any):
        self._is_collective = is_collective

    def _worker_index(self) -> int:
        return get_rank()

    def _worker_num(self) -> int:
        return get_world_size()


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """As PaddleCloudRoleMaker; ValueError where it is told of further workers."""

    def __init__(self, is_collective: bool = False, current_id: int = 0, worker_num: int = 1, **kwargs: Any):
        super().__init__(is_collective)
        if (current_id, worker_num) != (get_rank(), get_world_size()):
            raise ValueError(f"worker {current_id} of {worker_num}: this is {get_rank()} of {get_world_size()}")


class UtilBase:
    """What processes of a job do together, with numbers and arrays."""

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """Return the sum, "max" or "min" of the inputs of all processes."""
        return {"sum": sum, "max": max, "min": min}[mode](self.all_gather(input))

    def all_gather(self, input: Any, comm_world: str = "worker") -> list[Any]:
        """Return a list of the inputs of all processes."""
        found: list[Any] = []
        all_gather_object(found, input)
        return found

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait for all processes."""
        barrier()

    def get_file_shard(self, files: list[str]) -> list[str]:
        """Return the files that this process reads: with others, every one of so many."""
        if not isinstance(files, list):
            raise TypeError(f"get_file_shard takes a list of files, not {type(files).__name__}")
        return files[get_rank() :: get_world_size()]

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print a message in one process."""
        if rank_id == get_rank():
            print(message)


class Fleet:
    """The processes of a job, seen from this one."""

    def __init__(self) -> None:
        self._strategy: Any = None

    def init(
        self, role_maker: Any = None, is_collective: bool = False, strategy: Any = None, log_level: Any = "INFO"
    ) -> Fleet:
        """Begin to work as one of the processes that a launcher of MPI started, laid out as the strategy says."""
        init_parallel_env()
        self._strategy = strategy or DistributedStrategy()
        configs = dict(self._strategy.hybrid_configs)
        if self._strategy.sharding and configs.get("sharding_degree", 1) == 1:
            others = [d for axis, d in degrees_of(configs, get_world_size()).items() if axis != "dp"]
            if max(others) > 1:
                raise ValueError("strategy.sharding beside other ways needs its sharding_degree in hybrid_configs")
            configs |= {"dp_degree": 1, "sharding_degree": get_world_size()}
        world().ways = HybridCommunicateGroup(configs)
        return self

    def is_first_worker(self) -> bool:
        """Return whether this is process 0."""
        return self.worker_index() == 0

    def worker_index(self) -> int:
        """Return the number of this process."""
        return get_rank()

    local_rank = worker_index

    def worker_num(self) -> int:
        """Return how many processes train."""
        return get_world_size()

    node_num = worker_num

    def server_num(self) -> int:
        """Return how many processes keep parameters for others: 0."""
        return 0

    def is_worker(self) -> bool:
        """Return True: this process trains."""
        return True

    def is_server(self) -> bool:
        """Return False."""
        return False

    def barrier_worker(self) -> None:
        """Wait for all processes."""
        barrier()

    def init_worker(self, scopes: Any = None) -> None:
        """Connect with servers: there are none."""

    def init_server(self, *args: Any, **keywords: Any) -> None:
        """Raise RuntimeError: there are no servers; `is_server` says so."""
        raise RuntimeError("this process is no server: there are none, fleet.is_server() is False")

    run_server = init_server

    def save_persistables(self, executor: Any, dirname: str, main_program: Any = None, mode: int = 0) -> None:
        """Save the values of a hand-built Program below a folder."""
        save(main_program or default_main_program(), f"{dirname}/persistables")

    def load_model(self, path: str, mode: int = 0) -> None:
        """Load what `save_persistables` wrote into the global scope."""
        load(default_main_program(), f"{path}/persistables")

    def save_inference_model(
        self, executor: Any, dirname: str, feeded_var_names: Any, target_vars: Any, main_program: Any = None,
        export_for_deployment: bool = True, mode: int = 0,
    ) -> None:  # fmt: skip
        """Save what computes variables from data, by name, below a folder."""
        program = main_program or default_main_program()
        feeds: Any = [program.global_block().var(name) for name in feeded_var_names]
        save_inference_model(f"{dirname}/model", feeds, target_vars, executor, program=program)

    def stop_worker(self) -> None:
        """Leave the servers: there are none."""

    def distributed_model(self, model: Any) -> Any:
        """Return the model as the processes train it: gradients are averages over those that have the same part of it.

        A PipelineLayer becomes a PipelineParallel; with one process, the model is as it was.
        """
        if isinstance(model, PipelineLayer):
            return PipelineParallel(model, ways(), self._settings())
        if ways().degrees["pp"] > 1:
            raise TypeError("fleet.distributed_model: with pp_degree above 1 the model is a PipelineLayer")
        if get_world_size() == 1:
            return model
        share_whole_parameters(model, ways())
        return DataParallel(model, group=ways().group("dp", "sharding"))

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Return the optimizer; with a sharding_degree, each process keeps the state of some parameters.

        `strategy.sharding_configs["stage"]` is 1 (state) or 2 (gradients too).
        """
        stage = (strategy or self._settings()).sharding_configs.get("stage", 1)
        if stage not in (1, 2):
            raise NotImplementedError(f"sharding_configs: the stage is 1 or 2, not {stage!r}")
        keepers = ways().group("sharding")
        return spread(optimizer, keepers, ways().get_check_parallel_group(), stage == 2 and keepers.nranks > 1)

    def distributed_scaler(self, scaler: Any) -> Any:
        """Return the scaler: with one process it sees all gradients."""
        return scaler

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        """Return the ranks of this process along each way to spread a model."""
        return ways()

    def _settings(self) -> DistributedStrategy:
        if self._strategy is None:
            self._strategy = DistributedStrategy()
        return self._strategy
