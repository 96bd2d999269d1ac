"""Pairs of numbers: greatest common divisors, least common multiples, the float next to another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dy2st.ops.core.base import Sample
from dy2st.ops.core.elementwise_base import Ufunc


class _Integers(Ufunc):
    abstract = True
    arity = 2
    differentiable = False

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.integers(-20, 20, (2, 3)), rng.integers(-20, 20, (2, 3))))
        yield Sample((np.array(12), np.array(18)))


class Gcd(_Integers):
    """The greatest common divisors of integers, not negative; gcd(0, 0) is 0."""

    name = "gcd"
    function = "gcd"


class Lcm(_Integers):
    """The least common multiples of integers, not negative; 0 where one of them is."""

    name = "lcm"
    function = "lcm"


class NextAfter(Ufunc):
    """The float next to x in the direction of y."""

    name = "nextafter"
    formula = "rounding"
    defined_on = "f"
    function = "nextafter"
    arity = 2
    differentiable = False
