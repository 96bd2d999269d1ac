"""Hyperparameters tried on many actors: `search` over configurations that `grid` lists or `draw` draws."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from dy2st.fleets.fleet import Fleet
from dy2st.records import record

Configuration = dict[str, Any]


@record(frozen=True)
class Trial:
    """One configuration: the number that it reached, or the text of the error that it ended with."""

    configuration: Configuration
    value: float = math.nan
    error: str = ""


def search(
    objective: Callable[..., float], configurations: Iterable[Configuration], *, shared: Any = None, **fleet: Any
) -> Iterator[Trial]:
    """Yield a Trial of each configuration, in order: `objective(**configuration)`, on the actors of a Fleet.

    With `shared` (data, such as arrays, of which actors read one copy) it is `objective(shared, **configuration)`. An
    objective that raises is a Trial with an error. `fleet` are options of a Fleet (workers, engine, ...).
    """
    work = functools.partial(_tried, objective, shared is not None)
    with Fleet(work, **fleet) as actors, closing(actors.map(configurations, shared)) as trials:
        yield from trials


def _tried(objective: Callable[..., float], is_shared: bool, shared: Any, configuration: Configuration) -> Trial:
    try:
        value = float(objective(*([shared] if is_shared else []), **configuration))
    except Exception as error:
        return Trial(configuration, error=f"{type(error).__name__}: {error}")
    return Trial(configuration, value)


def best(trials: Iterable[Trial], *, highest: bool = False) -> Trial:
    """Return the trial with the lowest number, or the highest; of equals the first. ValueError where there is none."""
    found = [t for t in trials if not math.isnan(t.value)]
    if not found:
        raise ValueError("no trial has reached a number")
    return (max if highest else min)(found, key=lambda t: t.value)


def grid(**values: Sequence[Any]) -> Iterator[Configuration]:
    """Yield every combination of values.

    >>> list(grid(lr=[0.1, 0.01], depth=[2]))
    [{'lr': 0.1, 'depth': 2}, {'lr': 0.01, 'depth': 2}]
    """
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def draw(count: int, seed: int = 0, **ranges: Sequence[Any] | tuple[float, float]) -> Iterator[Configuration]:
    """Yield drawn configurations: a tuple of two positive floats is a range, on a logarithmic scale; lists are choices.

    >>> [sorted(c) for c in draw(2, lr=(1e-4, 1e-1), depth=[2, 3])]
    [['depth', 'lr'], ['depth', 'lr']]
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield {name: _drawn(rng, values) for name, values in ranges.items()}


def _drawn(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, float) and v > 0 for v in values):
        return float(np.exp(rng.uniform(*np.log(values))))
    return values[int(rng.integers(len(values)))]
