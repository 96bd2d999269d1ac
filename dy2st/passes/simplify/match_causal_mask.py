"""Recognise masks that let a query see the keys up to its own place: those that are added to scores,

1. (tril(1) - 1) * c for a large c, of what is made of the constant 1 or true
2. triu(c) above the diagonal for a c that is very negative
3. a constant with 0 up to the diagonal and very negative numbers above it

and where(tril(1), scores, -c), for which a score that is not seen may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.core.constant import Cast, Full
from dy2st.ops.shape.flip_roll_pad import Triu
from dy2st.ops.shape.shape import Broadcast
from dy2st.passes.simplify.constant_fold import constant_of
from dy2st.shapes import Shape

_LARGE = 1e6
"""What is taken from a score at least, for its weight to be 0."""


def is_causal(mask: Value, scores: Shape) -> bool:
    """Return whether a mask of scores with these extents is one of these."""
    if tensor_type(mask).shape != scores:
        return False
    content = constant_of(mask)
    if content is not None:  # 3.
        known: np.ndarray[Any, Any] = np.asarray(content)
        lower = np.tril(np.ones(known.shape, bool))
        return bool(np.all(known[lower] == 0) and np.all(known[~lower] <= -_LARGE))
    made = mask.operation
    if made is not None and isinstance(made.op, Triu):  # 2.
        number = filled(made.operands[0])
        return made.attributes["diagonal"] == 1 and number is not None and number <= -_LARGE
    product = _of("mul", mask)
    difference = None if product is None else _of("sub", product.operands[0])
    if product is None or difference is None:
        return False
    factor, one = filled(product.operands[1]), filled(difference.operands[1])
    return factor is not None and factor >= _LARGE and one == 1 and _is_lower(difference.operands[0])


def is_causal_where(operands: Sequence[Value], scores: Shape) -> bool:
    """Return whether a `where` of these operands keeps the scores up to the diagonal alone."""
    seen, _, other = operands
    while (made := seen.operation) is not None and isinstance(made.op, Broadcast):
        seen = made.operands[0]
    number = filled(other)
    return number is not None and number <= -_LARGE and tensor_type(seen).shape == scores and _is_lower(seen)


def _is_lower(value: Value) -> bool:
    cast = _of("cast", value)
    triangle = _of("tril", value if cast is None else cast.operands[0])
    return triangle is not None and triangle.attributes["diagonal"] == 0 and filled(triangle.operands[0]) == 1


def _of(name: str, value: Value) -> Operation | None:
    made = value.operation
    return made if made is not None and made.op.name == name else None


def filled(value: Value) -> float | None:
    """Return the number that all elements of a value are; None where that is not known."""
    while (made := value.operation) is not None and isinstance(made.op, (Broadcast, Cast, Full)):
        value = made.operands[0]
    content = constant_of(value)
    return float(content) if content is not None and np.size(content) == 1 else None
