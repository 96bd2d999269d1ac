"""Starting a function in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

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


def spawn(
    func: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> SpawnContext:  # fmt: skip
    """Run func(*args) in a process of its own and return what waits for it; with `join`, wait.

    `nprocs` must be 1, or -1 on the CPU, which means the same. Of `options`, `start_method` is known: "spawn" by
    default, for which `func` must stand in a module.
    """
    if nprocs == -1 and get_device() == "cpu":
        nprocs = 1
    if nprocs != 1:
        raise NotImplementedError(f"spawn: nprocs={nprocs} is not supported: processes cannot exchange data here")
    method = options.pop("start_method", "spawn")
    if options:
        raise TypeError(f"spawn() got an unexpected option '{next(iter(options))}'")
    if method not in METHODS:
        raise ValueError(f"spawn: start_method must be one of {', '.join(METHODS)}, not {method!r}")
    process = multiprocessing.get_context(method).Process(target=func, args=args, daemon=daemon)  # type: ignore[attr-defined]
    process.start()
    made = SpawnContext(process)
    if join:
        made.join()
    return made
