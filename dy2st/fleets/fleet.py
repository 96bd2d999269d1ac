"""Items to actors, and results back in order: a bounded number under way, and again what a dead actor had.

An item may be begun more than once, where an actor dies over it, and its result is given exactly once. An actor holds
at most two items, one that it runs and one that waits, so that it need not wait for us.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from importlib.util import find_spec
from typing import Any, Literal, Self

from dy2st.errors import Dy2stError
from dy2st.fleets.engines import Engine, Prepare, Processes, Ray, Work
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus

_HELD = 2


class ActorDied(Dy2stError, RuntimeError):
    """An item over which actors died again and again."""


@record(eq=False)
class _Task:
    number: int
    item: Any
    deaths: int = 0


@record(eq=False)
class _Member:
    actor: Any
    tasks: dict[Future[Any], _Task] = field(default_factory=dict[Future[Any], _Task])
    """What it has, in the order in which it came."""


class Fleet:
    """Run `work(shared, item)` on actors, each of which does one item at a time.

    `prepare` makes what `work` is given of a shared value, once in each actor, such as a Layer of its weights. Both are
    functions at the top level of a module. The engine is "ray", "processes", or "auto": Ray where it is installed.

    >>> import operator
    >>> with Fleet(operator.mul, workers=1, engine="processes") as fleet:
    ...     print(list(fleet.map([1, 2, 3], shared=10)))
    [10, 20, 30]
    """

    def __init__(
        self,
        work: Work,
        prepare: Prepare | None = None,
        *,
        workers: int | None = None,
        engine: Literal["auto", "ray", "processes"] = "auto",
        ahead: int | None = None,
        attempts: int = 3,
    ):
        count = usable_cpus() if workers is None else workers
        if count < 1 or attempts < 1 or (ahead is not None and ahead < 1):
            raise ValueError("a fleet has one worker or more, one attempt or more, and takes one item or more ahead")
        if engine == "auto":
            engine = "ray" if find_spec("ray") else "processes"
        if engine not in ("ray", "processes"):
            raise ValueError(f"engine is 'auto', 'ray' or 'processes', not {engine!r}")
        self._most = ahead or 2 * _HELD * count
        """How many items are taken and not yet given back as results."""
        self._attempts = attempts
        self._engine: Engine = Ray(work, prepare, count) if engine == "ray" else Processes(work, prepare)
        self._members = [_Member(self._engine.actor()) for _ in range(count)]

    def map(self, items: Iterable[Any], shared: Any = None) -> Generator[Any, None, None]:
        """Yield the result of each item, in order. An item is taken only when there is room for its result.

        What `work` raises is raised here, with a note that names the item; ActorDied where an item ended actors again
        and again.
        """
        reference = self._engine.share(shared)
        source = enumerate(items)
        again: list[_Task] = []
        done: dict[int, Any] = {}
        first, taken = 0, 0
        try:
            while True:
                while (member := self._least_busy()) is not None and (again or taken - first < self._most):
                    task = again.pop(0) if again else next((_Task(*pair) for pair in source), None)
                    if task is None:
                        break
                    taken = max(taken, task.number + 1)
                    self._give(member, reference, task)
                futures = [future for member in self._members for future in member.tasks]
                if not futures:
                    return
                wait(futures, return_when=FIRST_COMPLETED)
                for member in self._members:
                    again += self._collect(member, done)
                again.sort(key=lambda task: task.number)
                while first in done:
                    first += 1
                    yield done.pop(first - 1)
        finally:
            for member in self._members:
                for future in member.tasks:
                    future.cancel()
                member.tasks.clear()

    def _least_busy(self) -> _Member | None:
        """Return the member with the fewest items, where it has room."""
        member = min(self._members, key=lambda m: len(m.tasks))
        return member if len(member.tasks) < _HELD else None

    def _give(self, member: _Member, reference: Any, task: _Task) -> None:
        try:
            future = self._engine.submit(member.actor, reference, task.item)
        except self._engine.deaths as error:  # nobody has seen yet that it died
            future = Future()
            future.set_exception(error)
        member.tasks[future] = task

    def _collect(self, member: _Member, done: dict[int, Any]) -> list[_Task]:
        """Take the results that a member has; return what has to be done again because it died."""
        lost: list[_Task] = []
        for future, task in list(member.tasks.items()):
            if not future.done():
                continue
            error = future.exception()
            if isinstance(error, self._engine.deaths):
                lost.append(task)
            elif error is not None:
                error.add_note(f"in item {task.number} of a fleet")
                raise error
            else:
                done[task.number] = future.result()
            del member.tasks[future]
        if not lost:
            return []
        lost += member.tasks.values()
        member.tasks.clear()
        self._engine.end(member.actor)
        member.actor = self._engine.actor()
        lost[0].deaths += 1
        if lost[0].deaths >= self._attempts:
            raise ActorDied(f"item {lost[0].number}: {lost[0].deaths} actors died over it")
        return lost

    def close(self) -> None:
        """End the actors."""
        for member in self._members:
            self._engine.end(member.actor)
        self._members.clear()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
