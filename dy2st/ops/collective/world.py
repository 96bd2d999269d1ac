"""The processes of a job, by MPI: who they are, and what they exchange.

1. Before a collective, ranks compare what they are about to do (op, dtype, shape): where they differ, each of them
   raises the same error, which names both ranks and their lines. Without that, MPI would hang or mix up memory.
2. Each rank notes in memory that the ranks of a machine share what it does, so that one that waits too long can say for
   whom.

mpi4py is imported when the first world of more than one process is made, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np

from dy2st.errors import CollectiveError, MissingExtraError
from dy2st.ir.context import current

Array = Any
Place = tuple[str, int]
SLOT = 256
"""The bytes in which a rank says what it does."""
LAST_WORDS = "last-words"
"""The file in which a rank says why it ends the job."""


class World:
    """All processes of a job, seen from this one."""

    def __init__(self, comm: Any = None, timeout: float = 1800.0):
        self.comm, self.timeout = comm, timeout
        self.rank, self.size = (0, 1) if comm is None else (comm.rank, comm.size)
        self.groups: dict[tuple[int, ...], Group] = {}
        self.pending: dict[int, Pending] = {}
        """What was begun and not waited for, by number."""
        self.listed: dict[int, Any] = {}
        """What users call groups, by number (distributed/groups.py)."""
        self.ways: Any = None
        """How they are laid out to spread a model (distributed/fleet/topology.py), once that is asked for."""
        self.saving: Any = None
        """What writes a checkpoint beside training (distributed/checkpoint.py)."""
        self.started = 0
        self.since: float | None = None
        """When this rank began to wait for others."""
        self.doing = "has begun"
        if comm is not None:
            self._share_notes()
            everybody = tuple(range(self.size))
            self.groups[everybody] = Group(self, everybody, comm.Dup())

    def _share_notes(self) -> None:
        machine = self.comm.Split_type(mpi_module().COMM_TYPE_SHARED)
        here = machine.allgather(self.rank)
        import tempfile  # which costs each import of dy2st milliseconds

        folder = machine.bcast(notes_folder() or tempfile.mkdtemp() if machine.rank == 0 else None)
        path = os.path.join(folder, "notes")
        if machine.rank == 0:
            with open(path, "wb") as file:
                file.write(bytes(SLOT * self.size))
        machine.Barrier()
        self._notes = np.memmap(path, np.uint8, "r+", shape=(self.size, SLOT))
        self._here: list[int] = here
        machine.Barrier()
        if machine.rank == 0 and not notes_folder():
            shutil.rmtree(folder)
        self.note("has begun")
        threading.Thread(target=self._watch, name="dy2st-collectives", daemon=True).start()

    # ---- what this rank does ----------------------------------------------------------------------------------------
    def note(self, doing: str) -> None:
        """Say, to whom asks, what this rank does."""
        self.doing = doing
        text = f"{os.getpid()} {doing}".encode()[: SLOT - 1]
        self._notes[self.rank, : len(text) + 1] = np.frombuffer(text + b"\0", np.uint8)

    @contextmanager
    def waiting(self, what: str) -> Generator[None]:
        """Note that this rank waits for others, for the length of a `with`."""
        self.note(f"waits in {what}")
        self.since = time.monotonic()
        try:
            yield
        finally:
            self.since = None
        self.note(f"has done {what}")

    def _watch(self) -> None:
        """End the job where this rank has waited too long."""
        while True:
            time.sleep(min(1.0, self.timeout / 4))
            since = self.since
            if since is not None and time.monotonic() - since > self.timeout:
                self.abort(f"rank {self.rank} has waited {self.timeout:g} seconds:\n{self.notes()}")

    def notes(self) -> str:
        """Say what the ranks of this machine do, a line for each."""
        found = notes_in(self._notes.tobytes())
        return "\n".join(f"  rank {rank} {found[rank][1]}" for rank in self._here)

    def abort(self, message: str) -> None:
        """Say a message and end all processes of the job; of several ranks that a launcher started one speaks.

        The launcher reads it from a file: what a rank writes just before the end may not come through MPI's pipes.
        """
        sys.stdout.flush()
        if folder := notes_folder():
            try:
                with open(os.path.join(folder, LAST_WORDS), "x", errors="replace") as file:
                    file.write(f"{message}\n")
            except FileExistsError:
                time.sleep(5.0)  # another rank ends the job
        else:
            sys.stderr.write(f"{message}\n")
            sys.stderr.flush()
        self.comm.Abort(1)

    # ---- groups -----------------------------------------------------------------------------------------------------
    def group(self, ranks: tuple[int, ...]) -> Group:
        """Return the group of some ranks, which includes this one; all of them make it together, in the same order."""
        found = self.groups.get(ranks)
        if found is None:
            if self.rank not in ranks:
                raise ValueError(f"rank {self.rank} is none of {list(ranks)}, the ranks of the group")
            if max(ranks) >= self.size:
                raise ValueError(f"the group has rank {max(ranks)}, and there are {self.size} processes")
            comm = None
            if len(ranks) > 1:
                members = self.comm.Get_group().Incl(ranks)
                with self.waiting(f"the first collective of the ranks {list(ranks)}"):
                    comm = self.comm.Create_group(members, crc32(repr(ranks).encode()) & 0x7FFF)
            found = self.groups[ranks] = Group(self, ranks, comm)
        return found


class Group:
    """Some processes of a job that exchange data; ranks of arguments are those in the world."""

    def __init__(self, world: World, ranks: tuple[int, ...], comm: Any):
        self.world, self.ranks, self.comm = world, ranks, comm
        self.place = ranks.index(world.rank)
        """The number of this process in the group."""

    def run(self, what: str, at: Place, do: Callable[[Any], Any]) -> Any:
        """Do something with the communicator once all ranks have said that they are about to do the same."""
        text = f"{what} at {shown(at)}"
        with self.world.waiting(text):
            self._agree(what, text)
            return do(self.comm)

    def _agree(self, what: str, text: str) -> None:
        """Raise CollectiveError on all ranks where one of them is about to do something else."""
        code = crc32(what.encode())
        seen = np.array([code, -code], np.int64)
        self.comm.Allreduce(mpi_module().IN_PLACE, seen, mpi_module().MAX)
        if seen[0] != -seen[1]:
            self._disagree(text)

    def _disagree(self, text: str) -> None:
        texts = self.comm.allgather(text)
        other = next(i for i, one in enumerate(texts) if one.partition(" at ")[0] != texts[0].partition(" at ")[0])
        raise CollectiveError(
            f"ranks part: rank {self.ranks[0]} does {texts[0]}, rank {self.ranks[other]} does {texts[other]}"
        )


class Pending:
    """A collective that was begun: its request, what it reads and what it fills."""

    def __init__(self, requests: Sequence[Any], keeps: Sequence[Array], result: Callable[[], Array]):
        self.requests, self.keeps, self.result = requests, keeps, result


def mpi_module(purpose: str = "a collective") -> Any:
    """Return mpi4py's module; MissingExtraError, naming the extra, where it is not installed."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise MissingExtraError("mpi4py", "mpi", purpose) from None
    return MPI


def shown(at: Place) -> str:
    """Return a place as errors say it."""
    return f"{at[0]}:{at[1]}"


def notes_folder() -> str:
    """Return the folder in which the launcher of a job looks for what its ranks do; "" where nobody does."""
    return os.environ.get("DY2ST_JOB_FOLDER", "")


def notes_in(memory: bytes) -> list[tuple[int, str]]:
    """Return the number of its process, and what it does, for each rank."""
    texts = [memory[i : i + SLOT].partition(b"\0")[0].decode(errors="replace") for i in range(0, len(memory), SLOT)]
    return [(int(pid or 0), doing) for pid, _, doing in (text.partition(" ") for text in texts)]


def world() -> World:
    """Return the processes of the job: this one alone before `init_parallel_env`."""
    process = current().process
    return process.parallel or _ALONE


def group_of(ranks: tuple[int, ...]) -> Group | None:
    """Return the group of some ranks; None where this process is alone in it, so that nothing is exchanged."""
    if ranks == (world().rank,):
        return None
    return world().group(ranks)


_ALONE = World()
