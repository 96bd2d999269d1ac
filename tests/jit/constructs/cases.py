"""How the files of constructs register their functions.

`@case(call, call, ...)` registers a function and the argument tuples of its calls. `@scenario(...)` registers a
builder: it returns a fresh function and, with it, a function that shows the state to compare after each call. NumPy
arrays among the arguments become tensors; floating ones need gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One construct: `build()` gives (function, observe); `calls` are argument tuples, `holds` words of the Program."""

    name: str
    group: str
    build: Callable[[], tuple[Callable[..., Any], Callable[[], Any]]]
    calls: tuple[tuple[Any, ...], ...]
    holds: tuple[str, ...]
    programs: int
    same_message: bool
    fresh: Callable[[], Any] | None


CASES: list[Case] = []


def _register(build: Any, function: Any, calls: Any, holds: Any, programs: int, same_message: bool) -> None:
    words = (holds,) if isinstance(holds, str) else tuple(holds)
    group = function.__module__.rpartition(".")[2]
    made = tuple(c if isinstance(c, tuple) else (c,) for c in calls)
    CASES.append(Case(function.__name__, group, build, made, words, programs, same_message, None))


def case(*calls: Any, holds: Any = (), programs: int = 1, same_message: bool = True) -> Any:
    """Register a function that has no state outside of its arguments."""

    def register(function: Any) -> Any:
        _register(lambda: (function, lambda: None), function, calls, holds, programs, same_message)
        return function

    return register


def scenario(*calls: Any, holds: Any = (), programs: int = 1, same_message: bool = True) -> Any:
    """Register a builder of a function with state."""

    def register(builder: Any) -> Any:
        _register(builder, builder, calls, holds, programs, same_message)
        return builder

    return register


def f(*values: Any) -> np.ndarray:
    """Return a float32 tensor: `f(1)` has rank 1; `f([[1, 2]])` takes nested lists."""
    given = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return np.array(given, "float32")


def s(value: float) -> np.ndarray:
    """Return a 0-D float32 tensor."""
    return np.array(value, "float32")


def n(value: int) -> np.ndarray:
    """Return a 0-D int64 tensor."""
    return np.array(value, "int64")


POS, NEG = f(1, 2), f(-1, -2)
