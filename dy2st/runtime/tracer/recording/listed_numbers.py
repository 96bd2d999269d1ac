"""Which numbers an integer tensor was put together of, so that extents that went into one come out as themselves.

`paddle.shape(x)[1:]` is `index(stack(scalar_to_tensor(dim 0), scalar_to_tensor(dim 1)))`: its number is `dim 1`, and
what `paddle.zeros` makes of it has the extent of `x` then, not one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st import dtypes
from dy2st.ir.program import Operation, Value

MOST_LISTED = 64
"""Elements of a tensor that are listed as numbers."""
_WIDE = (dtypes.int64, dtypes.int32)
"""Dtypes in which an extent is what it is."""


def numbers_in(value: Value) -> list[Any] | None:
    """Return the elements of an integer tensor of at most one axis, as scalar values and ints; None if not known."""
    operation = value.operation
    if operation is None or getattr(value.type, "dtype", None) not in _WIDE or value.type.rank > 1:  # type: ignore[union-attr]
        return None
    read = _READERS.get(operation.op.name)
    return None if read is None else read(operation)


def _of_number(operation: Operation) -> list[Any] | None:
    kind: Any = operation.operands[0].type
    exact = operation.attributes["dtype"] is dtypes.int64 or kind.extent is not None
    return [operation.operands[0]] if kind.kind == "int" and exact else None


def _of_constant(operation: Operation) -> list[Any] | None:
    array = operation.attributes["value"]
    return array.reshape(-1).tolist() if array.size <= MOST_LISTED else None


def _of_parts(operation: Operation) -> list[Any] | None:
    parts = [numbers_in(x) for x in operation.operands]
    return None if None in parts else [n for part in parts for n in part]  # type: ignore[union-attr]


def _of_cast(operation: Operation) -> list[Any] | None:
    found = numbers_in(operation.operands[0])
    extents = found and all(isinstance(n, int) or n.type.extent is not None for n in found)
    return found if extents or operation.attributes["dtype"] is dtypes.int64 else None


def _of_index(operation: Operation) -> list[Any] | None:
    spec, found = operation.attributes["spec"], numbers_in(operation.operands[0])
    if found is None or len(spec) != 1 or len(operation.operands) > 1:
        return None
    kind, *bounds = spec[0]
    if kind == "int" and -len(found) <= bounds[0] < len(found):
        return [found[bounds[0]]]
    return found[slice(*bounds)] if kind == "slice" else None


_READERS: dict[str, Callable[[Operation], list[Any] | None]] = {
    "scalar_to_tensor": _of_number, "constant": _of_constant, "stack": _of_parts, "concat": _of_parts,
    "cast": _of_cast, "index": _of_index,
}  # fmt: skip
