"""`paddle.tensor`: every function on tensors under one roof, those that `paddle` itself has and a few that it has not.

>>> import dy2st as paddle
>>> paddle.tensor.add is paddle.add, paddle.tensor.fill_constant([2], "int32", 7).tolist()
(True, [7, 7])
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.functions import (
    arithmetic,
    arrays,
    assigning,
    broadcasting,
    comparison,
    creation,
    diagonals,
    from_data,
    gathering,
    inplace,
    joining,
    linear_algebra,
    manipulation,
    math,
    matrices,
    random,
    reduction,
    search,
)
from dy2st.missing import no_attribute

_MODULES = (
    arithmetic, math, manipulation, joining, broadcasting, diagonals, creation, from_data, linear_algebra, comparison,
    reduction, search, gathering, random, assigning, arrays, matrices,
)  # fmt: skip


def _collected() -> dict[str, Callable[..., Any]]:
    """Return the public functions of the modules by name."""
    found: dict[str, Callable[..., Any]] = dict(inplace.INPLACE)
    for module in _MODULES:
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_"):
                found[name] = value
    return found


_FUNCTIONS = _collected()


def __getattr__(name: str) -> Any:
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise no_attribute("dy2st.tensor", name, _FUNCTIONS) from None


def __dir__() -> list[str]:
    return sorted(_FUNCTIONS)
