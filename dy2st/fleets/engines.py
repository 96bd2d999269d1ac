"""What runs the actors of a fleet: Ray, or processes of this machine where Ray is not installed.

An actor runs one item at a time, in the order in which items come. Its futures are those of `concurrent.futures`, and
end with one of the engine's `deaths` where the actor has died.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

from dy2st.errors import MissingExtraError
from dy2st.fleets import shared_values
from dy2st.forks import handlers_wait
from dy2st.runtime.backends.cpu.thread_pool.pool import set_num_threads

Work = Callable[[Any, Any], Any]
Prepare = Callable[[Any], Any]


class Engine(ABC):
    """Makes actors, and shares values with them."""

    deaths: tuple[type[BaseException], ...]

    @abstractmethod
    def actor(self) -> Any:
        """Begin an actor."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """Give all actors a value; return what stands for it. The value before it is given up."""

    @abstractmethod
    def submit(self, actor: Any, shared: Any, item: Any) -> Future[Any]:
        """Let an actor run an item."""

    @abstractmethod
    def end(self, actor: Any) -> None:
        """End an actor, which may be dead."""

    @abstractmethod
    def close(self) -> None:
        """Give up what is shared."""


class Actor:
    """In an actor's process: does the work on one thread, and prepares what is shared once for each value."""

    def __init__(self, work: Work, prepare: Prepare | None):
        self._work, self._prepare = work, prepare
        self._version, self._state = -1, None
        set_num_threads(1)

    def run(self, version: int, value: Callable[[], Any], item: Any) -> Any:
        """Run one item."""
        if version != self._version:
            self._state = value() if self._prepare is None else self._prepare(value())
            self._version = version
        return self._work(self._state, item)


# ---- processes ---------------------------------------------------------------------------------------------------
class Processes(Engine):
    """An actor is a pool of one process, so that one that dies takes no other with it."""

    deaths = (BrokenProcessPool,)

    def __init__(self, work: Work, prepare: Prepare | None):
        self._made_of = work, prepare
        self._folder = tempfile.TemporaryDirectory(prefix="dy2st-fleet-")
        self._versions = itertools.count()
        self._last: Path | None = None

    def actor(self) -> ProcessPoolExecutor:
        """Begin a process: a new interpreter, since this one may have threads."""
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, self._made_of)

    def share(self, value: Any) -> tuple[int, Path]:
        """Write a value to a file."""
        version = next(self._versions)
        path = Path(self._folder.name) / str(version)
        shared_values.write(value, path)
        if self._last is not None:
            with suppress(PermissionError):  # Windows keeps what is mapped, until the folder goes
                self._last.unlink()
        self._last = path
        return version, path

    def submit(self, actor: ProcessPoolExecutor, shared: tuple[int, Path], item: Any) -> Future[Any]:
        """Send an item to the process."""
        with handlers_wait():  # it may begin the process
            return actor.submit(_run, *shared, item)

    def end(self, actor: ProcessPoolExecutor) -> None:
        """Let the process end when it has done what it runs."""
        actor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Delete the file."""
        self._folder.cleanup()


_HERE: list[Actor] = []
"""The actor that this process is."""


def _begin(work: Work, prepare: Prepare | None) -> None:
    _HERE.append(Actor(work, prepare))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(version: int, path: Path, item: Any) -> Any:
    return _HERE[0].run(version, lambda: shared_values.read(path), item)


# ---- Ray ---------------------------------------------------------------------------------------------------------
class Ray(Engine):
    """Actors of a Ray cluster: the one that `ray.init` joined, or one of this machine for as long as the fleet."""

    def __init__(self, work: Work, prepare: Prepare | None, workers: int):
        self._ray: Any = ray_package()
        self._made_of = work, prepare
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
        found = self._ray.cluster_resources().get("CPU", 0)
        if found < workers:
            raise ValueError(f"{workers} actors take a CPU each, and the Ray cluster has {found:g}")
        self._kind = self._ray.remote(_RayActor)
        self._versions = itertools.count()
        self.deaths = (self._ray.exceptions.RayActorError,)

    def actor(self) -> Any:
        """Begin an actor; Ray does not begin it again by itself."""
        return self._kind.options(num_cpus=1, max_restarts=0).remote(*self._made_of)

    def share(self, value: Any) -> tuple[int, Any]:
        """Put a value into the object store, from which actors read its arrays without a copy."""
        return next(self._versions), self._ray.put(value)

    def submit(self, actor: Any, shared: tuple[int, Any], item: Any) -> Future[Any]:
        """Send an item to the actor."""
        return actor.run.remote(*shared, item).future()

    def end(self, actor: Any) -> None:
        """Kill the actor."""
        self._ray.kill(actor)

    def close(self) -> None:
        """End the cluster where it is ours."""
        if self._is_ours:
            self._ray.shutdown()


class _RayActor:
    def __init__(self, work: Work, prepare: Prepare | None):
        self._actor = Actor(work, prepare)

    def run(self, version: int, value: Any, item: Any) -> Any:
        """Run one item; Ray has put the value in the place of its reference."""
        return self._actor.run(version, lambda: value, item)


def ray_package() -> Any:
    """Return Ray; MissingExtraError says which extra has it."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "a fleet on Ray") from error
