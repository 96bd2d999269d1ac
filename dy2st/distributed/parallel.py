"""Which process this is, and of how many; how a script begins to be one of several."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from typing import Any

from dy2st.config import collective_timeout
from dy2st.ir.context import current
from dy2st.missing import missing_in
from dy2st.ops.collective.world import World, mpi_module, world

__getattr__ = missing_in(__name__, "dy2st.distributed.data_parallel")  # Paddle has DataParallel here too
_COUNTS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE")
"""The variables in which a launcher of MPI says how many processes it started."""
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


class ParallelEnv:
    """Which process this is, and of how many."""

    @property
    def rank(self) -> int:
        """The number of this process."""
        return world().rank if is_initialized() else _number(_RANKS, 0)

    @property
    def world_size(self) -> int:
        """How many processes there are."""
        return world().size if is_initialized() else _number(_COUNTS, 1)

    nranks = world_size

    @property
    def local_rank(self) -> int:
        """The number of this process among those of its machine."""
        return _number(("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"), self.rank)

    @property
    def device_id(self) -> int:
        """The number of the CUDA device of this process."""
        place = current().process.place
        return 0 if place is None else place.index


def init_parallel_env(nccl_config: Any = None) -> ParallelEnv:
    """Begin to work as one of the processes that `mpiexec` or `dy2st.distributed.launch` started.

    From then on an exception that nobody catches ends all of them, with one message. A script that was started by
    itself is one process.

    Raises RuntimeError where another launcher started more than one, MissingExtraError without the extra `mpi`, and
    NotImplementedError for a `nccl_config`.

    >>> import dy2st as paddle
    >>> paddle.distributed.init_parallel_env().world_size
    1
    """
    if nccl_config is not None:
        raise NotImplementedError("init_parallel_env: nccl_config has no meaning for processes that talk by MPI")
    process = current().process
    if process.parallel is None:
        process.parallel = _joined(_number(_COUNTS, 1))
    return ParallelEnv()


def _joined(count: int) -> World:
    announced = int(os.environ.get("PADDLE_TRAINERS_NUM", count))
    if announced != count:
        raise RuntimeError(
            f"init_parallel_env: PADDLE_TRAINERS_NUM says {announced} processes, and MPI's launcher started {count}; "
            "start them with `python -m dy2st.distributed.launch` or mpiexec"
        )
    if count == 1:
        return World()
    comm = mpi_module("a job of several processes").COMM_WORLD
    if comm.size != count:
        raise RuntimeError(
            f"the launcher started {count} processes, and MPI sees {comm.size}: it is another MPI's launcher"
        )
    made = World(comm, collective_timeout())
    sys.excepthook = _end_all
    atexit.register(made.note, "has ended")
    return made


def _end_all(kind: type[BaseException], error: BaseException, tb: Any) -> None:
    """End all processes for an exception that nobody has caught, with one message."""
    here = world()
    text = "".join(traceback.format_exception(kind, error, tb))
    here.note(f"raised {traceback.format_exception_only(error)[-1].strip()}")
    here.abort(f"{text}rank {here.rank} of {here.size} raised {kind.__name__}: all processes end")


def is_initialized() -> bool:
    """Return whether `init_parallel_env` was called."""
    return current().process.parallel is not None


def get_rank(group: Any = None) -> int:
    """Return the number of this process, or in a group; -1 where it is not in that."""
    return ParallelEnv().rank if group is None else group.rank


def get_world_size(group: Any = None) -> int:
    """Return how many processes there are, in all or in a group."""
    return ParallelEnv().world_size if group is None else group.nranks


def _number(names: tuple[str, ...], otherwise: int) -> int:
    """Return the number that the first of some environment variables says."""
    return next((int(os.environ[name]) for name in names if name in os.environ), otherwise)


class parallel_helper:  # noqa: N801 (a module of Paddle's)
    """Whether processes work together, as old code asks."""

    _is_parallel_ctx_initialized = staticmethod(is_initialized)
