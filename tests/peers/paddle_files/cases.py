"""The cases: what is saved, its inputs' specs, and runs of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from paddle.static import InputSpec

R = np.random.default_rng(0)
CASES: dict[str, tuple[Callable[[], Any], list[Any], list[Any]]] = {}


def f32(*shape: int) -> Any:
    return R.standard_normal(shape).astype("float32").round(2)


def case(specs: list[Any], *runs: list[Any]) -> Callable[[Any], Any]:
    """Register a layer class, or a function of tensors: its specs, and lists of inputs."""

    def enter(made: Any) -> Any:
        CASES[made.__name__] = made, specs, list(runs)
        return made

    return enter


def spec(name: str, shape: list[Any], dtype: str = "float32") -> Any:
    return InputSpec(shape, dtype, name)


def static_case(specs: list[Any], *runs: list[Any]) -> Callable[[Any], Any]:
    """Register a function that puts operations into a Program of 2.6."""

    def enter(made: Any) -> Any:
        made.is_static = True
        return case(specs, *runs)(made)

    return enter
