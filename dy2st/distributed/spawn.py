"""Starting a function in processes of its own: one by `multiprocessing`, several by MPI's `mpiexec`."""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from dy2st.distributed.jobs import SPAWNED, run_job
from dy2st.runtime.eager.device import get_device

METHODS = ("spawn", "fork", "forkserver")


class SpawnContext:
    """The started process; `join` waits for it and raises where it failed."""

    def __init__(self, process: Any):
        self.processes = [process]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the process ends; return whether it did. RuntimeError where it ended with an error."""
        (process,) = self.processes
        process.join(timeout)
        if process.exitcode not in (0, None):
            raise RuntimeError(
                f"spawn: the process ended with exit code {process.exitcode}; its traceback stands above"
            )
        return process.exitcode == 0


class Job:
    """Several processes that run a function; `join` waits for them and raises where they failed."""

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], count: int, daemon: bool):
        self._code: int | None = None
        setting = multiprocessing.spawn.get_preparation_data("dy2st")  # type: ignore[attr-defined]
        setting = {name: value for name, value in setting.items() if name != "authkey"}  # which is not pickled
        given = pickle.dumps(setting) + pickle.dumps((func, args))
        self._thread = threading.Thread(target=self._run, args=(given, count), daemon=daemon)
        self._thread.start()

    def _run(self, given: bytes, count: int) -> None:
        with tempfile.NamedTemporaryFile(suffix=".dy2st-spawn") as file:
            file.write(given)
            file.flush()
            command = [sys.executable, "-m", "dy2st.distributed.worker", SPAWNED, file.name]
            self._code = run_job(command, count, dict(os.environ))

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the processes end; return whether they did. RuntimeError where one ended with an error."""
        self._thread.join(timeout)
        if not self._thread.is_alive() and self._code != 0:
            raise RuntimeError(f"spawn: the processes ended with exit code {self._code}; what one raised stands above")
        return self._code == 0


def spawn(
    func: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> SpawnContext | Job:  # fmt: skip
    """Run func(*args) in `nprocs` processes (-1: in one) and return what waits for them; with `join`, wait.

    Several processes are ranks of one job, as `launch` starts them, and `func` must stand in a module. For one, of
    `options`, `start_method` is known: "spawn" by default.
    """
    if nprocs == -1 and get_device() == "cpu":
        nprocs = 1
    if nprocs < 1:
        raise ValueError(f"spawn: nprocs={nprocs} is not a number of processes")
    method = options.pop("start_method", "spawn")
    if options:
        raise TypeError(f"spawn() got an unexpected option '{next(iter(options))}'")
    if method not in METHODS:
        raise ValueError(f"spawn: start_method must be one of {', '.join(METHODS)}, not {method!r}")
    if nprocs > 1:
        job = Job(func, args, nprocs, daemon)
        if join:
            job.join()
        return job
    process = multiprocessing.get_context(method).Process(target=func, args=args, daemon=daemon)  # type: ignore[attr-defined]
    process.start()
    made = SpawnContext(process)
    if join:
        made.join()
    return made
