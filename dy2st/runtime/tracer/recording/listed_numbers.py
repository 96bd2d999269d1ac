"""Which numbers an integer tensor was put together of, so that extents that went into one come out as themselves.

`paddle.shape(x)[1:]` is `index(stack(scalar_to_tensor(dim 0), scalar_to_tensor(dim 1)))`: its number is `dim 1`, and
what `paddle.zeros` makes of it has the extent of `x` then, not one of its own. Ops that move elements move the numbers:
their `eval` runs on arrays of scalar values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.scalar_unary import ScalarToTensor
from dy2st.ops.core.constant import Cast

MOST_LISTED = 64
"""Elements of a tensor that are listed as numbers."""


def numbers_in(value: Value) -> Any:
    """Return the elements of an integer tensor as an array of scalar values and ints; None if they are not known."""
    kind, made = value.type, value.operation
    if made is None or not isinstance(kind, TensorType) or kind.dtype not in (dtypes.int64, dtypes.int32):
        return None
    found: Any = None
    if made.op.is_constant:
        array = made.attributes["value"]
        found = array.astype(object) if array.size <= MOST_LISTED else None
    elif isinstance(made.op, ScalarToTensor):
        found = _array(made.operands[0])
    elif isinstance(made.op, Cast):
        found = numbers_in(made.operands[0])
    elif made.op.is_data_movement and not made.op.is_scalar:
        found = _moved(made)
    exact = found is not None and found.size <= MOST_LISTED and all(_fits(n, kind.dtype) for n in found.flat)
    return found if exact else None


def _moved(made: Any) -> Any:
    parts = [numbers_in(x) for x in made.operands]
    if any(part is None for part in parts):
        return None
    try:
        return np.asarray(made.op.eval(np, *parts, **made.attributes), object)
    except (IndexError, ValueError):  # as the run will say
        return None


def _fits(number: Any, dtype: dtypes.DType) -> bool:
    """Return whether a number is the same in an integer dtype: an extent is in any."""
    if isinstance(number, int):
        return True
    return number.type.kind == "int" and (dtype is dtypes.int64 or number.type.extent is not None)


def _array(number: Value) -> Any:
    made = np.empty((), object)
    made[()] = number if isinstance(number.type, ScalarType) else None
    return made
