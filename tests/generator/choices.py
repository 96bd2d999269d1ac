"""Where the choices of a program come from: a seed, so that a number names a program for ever, or hypothesis."""

import random
from collections.abc import Callable

from hypothesis import strategies as st

Below = Callable[[int], int]
"""Gives a number from 0 to below its argument; 0 is the simplest."""
BELOW = [st.integers(0, n) for n in range(400)]


def seeded(seed: int) -> Below:
    """Return choices that the seed alone decides."""
    return random.Random(seed).randrange


def drawn(draw: st.DrawFn) -> Below:
    """Return hypothesis's choices."""
    return lambda n: draw(BELOW[n - 1])
