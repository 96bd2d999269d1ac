"""`paddle.tensor`: every function on tensors under one roof, those that `paddle` itself has and a few that it has not.

>>> import dy2st as paddle
>>> paddle.tensor.add is paddle.add, paddle.tensor.fill_constant([2], "int32", 7).tolist()
(True, [7, 7])
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from dy2st.functions import inplace
from dy2st.functions.core import assigning
from dy2st.functions.linalg import linalg, matrix_functions
from dy2st.functions.math import arithmetic, comparison, math, random, reduction, search
from dy2st.functions.shape import (
    broadcasting,
    concat_split,
    creation,
    diagonals,
    from_data,
    gather_scatter,
    manipulation,
    tensor_arrays,
)
from dy2st.missing import no_attribute
from dy2st.paths import submodule

__path__: list[str] = []
_MODULES = (
    arithmetic, math, manipulation, concat_split, broadcasting, diagonals, creation, from_data, linalg, comparison,
    reduction, search, gather_scatter, random, assigning, tensor_arrays, matrix_functions,
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
        if (found := submodule(__name__, name)) is not None:
            return found
        raise no_attribute("dy2st.tensor", name, _FUNCTIONS) from None


def __dir__() -> list[str]:
    return sorted(_FUNCTIONS)
