"""What a script says of its processes, and what it is told: this is the first worker, and there is no other.

A strategy that spreads a model over several processes is refused; what only says how processes talk changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

from dy2st.distributed.groups import get_group
from dy2st.distributed.parallel import get_rank, get_world_size, init_parallel_env
from dy2st.static.model_files import load, save, save_inference_model
from dy2st.static.program import default_main_program


class DistributedStrategy:
    """Switches and settings by name: those that were not set are False, settings ("..._configs") empty."""

    def __init__(self) -> None:
        self.hybrid_configs: dict[str, Any] = {f"{kind}_degree": 1 for kind in ("dp", "mp", "pp", "sharding", "sep")}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hybrid_configs":
            value = {**self.__dict__.get(name, {}), **value}
            degrees = [d for key, d in value.items() if key.endswith("_degree") and d != -1]
            if math.prod(degrees) != 1:
                raise ValueError(f"hybrid_configs {value} needs {math.prod(degrees)} processes, and there is one")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a DistributedStrategy has no {name!r}", name=name)
        return self.__dict__.setdefault(name, {}) if name.endswith("_configs") else False


class Role:
    """What a process is for."""

    WORKER, SERVER, HETER_WORKER, ALL, COORDINATOR = range(1, 6)


class PaddleCloudRoleMaker:
    """Tells a process what it is: worker 0 of 1."""

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
        if (current_id, worker_num) != (0, 1):
            raise ValueError(f"worker {current_id} of {worker_num}: there is one process")


class HybridCommunicateGroup:
    """Ranks and sizes along each way to spread a model: 0 of 1 along all.

    >>> group = HybridCommunicateGroup()
    >>> group.get_model_parallel_rank(), group.get_data_parallel_world_size(), group.get_stage_id()
    (0, 1, 0)
    """

    nranks, global_rank = 1, 0

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("get_")
        if kind != name and not kind.startswith("_"):
            if kind.endswith(("_rank", "_id")):
                return lambda: 0
            if kind.endswith("_world_size"):
                return lambda: 1
            if kind.endswith("_parallel_group"):
                return get_group
        raise AttributeError(f"a HybridCommunicateGroup has no {name!r}", name=name)


class UtilBase:
    """What processes of a job do together: with one, each result is its own."""

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """Return the input."""
        return input

    def all_gather(self, input: Any, comm_world: str = "worker") -> list[Any]:
        """Return a list with the input."""
        return [input]

    def barrier(self, comm_world: str = "worker") -> None:
        """Wait for all processes: they are here."""

    def get_file_shard(self, files: list[str]) -> list[str]:
        """Return the files that this process reads: all."""
        if not isinstance(files, list):
            raise TypeError(f"get_file_shard takes a list of files, not {type(files).__name__}")
        return files

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Print a message where the rank is 0."""
        if rank_id == 0:
            print(message)


class Fleet:
    """The processes of a job, seen from this one."""

    def init(
        self, role_maker: Any = None, is_collective: bool = False, strategy: Any = None, log_level: Any = "INFO"
    ) -> Fleet:
        """Begin to work as one of several processes: there is one. NotImplementedError under a launcher of more."""
        self._strategy = strategy or DistributedStrategy()
        init_parallel_env()
        return self

    def is_first_worker(self) -> bool:
        """Return True."""
        return self.worker_index() == 0

    def worker_index(self) -> int:
        """Return the number of this process: 0."""
        return get_rank()

    local_rank = worker_index

    def worker_num(self) -> int:
        """Return how many processes train: 1."""
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
        """Wait for all processes: they are here."""

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
        """Return the model: with one process it is not spread."""
        return model

    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any:
        """Return the optimizer: with one process there is nothing to add up."""
        return optimizer

    def distributed_scaler(self, scaler: Any) -> Any:
        """Return the scaler: with one process it sees all gradients."""
        return scaler

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        """Return the ranks of this process along each way to spread a model."""
        return HybridCommunicateGroup()
