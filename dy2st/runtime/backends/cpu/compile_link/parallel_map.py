"""Functions that run at the same time, where there are CPUs for it: code is compiled without Python's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.forks import Locked, started
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus


class Once(Locked):
    """A function that is called once: who comes meanwhile waits, and who comes later gets what it gave.

    >>> once = Once(lambda: [])
    >>> once() is once()
    True
    """

    def __init__(self, function: Callable[[], Any]):
        super().__init__()
        self._function: Callable[[], Any] | None = function
        self._result: Any = None

    def __call__(self) -> Any:
        with self._lock:
            if self._function is not None:
                self._result = self._function()
                self._function = None
            return self._result


def together(functions: Sequence[Callable[[], Any]], threads: int | None = None) -> list[Any]:
    """Return what functions give, in order; the first error is raised when all have ended.

    They take as many threads as there are CPUs, or as many as is said.

    >>> together([lambda: 1, lambda: 2])
    [1, 2]
    """
    count = min(len(functions), usable_cpus() if threads is None else threads)
    results: list[Any] = [None] * len(functions)
    errors: dict[int, BaseException] = {}
    left = iter(range(len(functions)))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                i = next(left, None)
            if i is None or errors:
                return
            try:
                results[i] = functions[i]()
            except BaseException as error:
                errors[i] = error

    helpers = [threading.Thread(target=work, name="dy2st compile") for _ in range(count - 1)]
    for helper in helpers:
        started(helper)
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[min(errors)]
    return results
