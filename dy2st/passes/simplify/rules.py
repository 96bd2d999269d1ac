"""The rules of `simplify` on single operations: when a result is an operand, and how two in a row become one.

A rule of EXACT returns the value that the result of an operation is, or None. A rule of MERGED changes an operation so
that it no longer needs the one before it, and says whether it did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st.ir.opdef import entering
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import TensorType
from dy2st.ops.control.lists import ListNew
from dy2st.ops.control.optional import VariantNew, VariantTag
from dy2st.ops.core.constant import Full, OnesLike
from dy2st.ops.elementwise.arithmetic import Neg
from dy2st.ops.shape.concat_split import ExpandDims
from dy2st.ops.shape.shape import Broadcast, Reshape
from dy2st.passes.simplify.constant_fold import constant_of

EXACT: dict[str, Callable[[Operation], Value | None]] = {}
_exact = entering(EXACT)

MERGED: dict[str, Callable[[Operation], bool]] = {}
_merged = entering(MERGED)


def uniform(value: Value) -> Any:
    """Return the one number that all elements of a tensor are known to be, as a 0-D array, else None."""
    if isinstance(content := constant_of(value), np.ndarray):
        return _only_element(content)
    operation = value.operation
    if operation is None:
        return None
    if isinstance(operation.op, (Broadcast, Full, Reshape)):
        return uniform(operation.operands[0])
    if operation.op.splat is not None and isinstance(value.type, TensorType):
        return np.array(isinstance(operation.op, OnesLike), value.type.dtype.numpy)
    return None


def _only_element(array: Any) -> Any:
    """Return the element that all of a small array are, bit by bit, as a 0-D array."""
    elements = array.reshape(-1)
    if not 1 <= elements.size <= 65 or any(e.tobytes() != elements[0].tobytes() for e in elements):
        return None
    return elements[:1].reshape(())


def _is(value: Value, number: int) -> bool:
    found = uniform(value)
    return found is not None and bool(found == number)


def _is_minus_zero(value: Value) -> bool:
    """Return whether x + value is x for every x: -0.0, and any 0 of integers."""
    if not _is(value, 0):
        return False
    found = uniform(value)
    return found.dtype.kind in "iu" or (found.dtype.kind == "f" and bool(np.signbit(found)))


def _is_plus_zero(value: Value) -> bool:
    """Return whether x - value is x for every x: 0.0, and any 0 of integers."""
    if not _is(value, 0):
        return False
    found = uniform(value)
    return found.dtype.kind in "iu" or (found.dtype.kind == "f" and not np.signbit(found))


@_exact("mul")
def _mul(operation: Operation) -> Value | None:
    x, y = operation.operands
    if x.type.dtype.is_complex:  # type: ignore[union-attr]
        return None  # the product with 1 + 0j turns infinities into NaN
    return _unchanged(operation, x if _is(y, 1) else y if _is(x, 1) else None)


@_exact("div")
def _div(operation: Operation) -> Value | None:
    x, y = operation.operands
    plain = not x.type.dtype.is_complex  # type: ignore[union-attr]
    return _unchanged(operation, x if plain and _is(y, 1) else None)


@_exact("add")
def _add(operation: Operation) -> Value | None:
    x, y = operation.operands
    return _unchanged(operation, x if _is_minus_zero(y) else y if _is_minus_zero(x) else None)


@_exact("sub")
def _sub(operation: Operation) -> Value | None:
    x, y = operation.operands
    return _unchanged(operation, x if _is_plus_zero(y) else None)


@_exact("neg")
def _neg(operation: Operation) -> Value | None:
    inner = operation.operands[0].operation
    return inner.operands[0] if inner is not None and isinstance(inner.op, Neg) else None


@_exact("cast", "broadcast", "sum_to", "reshape")
def _same_type(operation: Operation) -> Value | None:
    """Serve cast, broadcast, sum_to and reshape: nothing is left to do where the type stays."""
    return _unchanged(operation, operation.operands[0])


@_exact("transpose")
def _transpose(operation: Operation) -> Value | None:
    perm = operation.attributes["perm"]
    return operation.operands[0] if perm == tuple(range(len(perm))) else None


@_exact("variant_get")
def _variant_get(operation: Operation) -> Value | None:
    inner = operation.operands[0].operation
    if inner is None or not isinstance(inner.op, VariantNew) or inner.attributes["tag"] != operation.attributes["tag"]:
        return None
    return inner.operands[0] if inner.operands else None


@_exact("list_get")
def _list_get(operation: Operation) -> Value | None:
    items = operation.operands[0].operation
    at = constant_of(operation.operands[1])
    if items is None or not isinstance(items.op, ListNew) or not isinstance(at, int):
        return None
    return items.operands[at] if -len(items.operands) <= at < len(items.operands) else None


@_exact("scalar_eq")
def _scalar_eq(operation: Operation) -> Value | None:
    """Return the predicate of a `cond` of which the first branch alone gives a variant of the tag that is asked for."""
    asked, tag = operation.operands[0].operation, constant_of(operation.operands[1])
    if asked is None or not isinstance(asked.op, VariantTag):
        return None
    variant = asked.operands[0]
    made = variant.operation
    if made is None or not made.op.is_branch:
        return None
    ways = [block.results[made.results.index(variant)].operation for block in made.blocks]
    tags = [way.attributes["tag"] for way in ways if way is not None and isinstance(way.op, VariantNew)]
    if len(tags) != 2 or tags[0] != tag or tags[1] == tag:
        return None
    return _unchanged(operation, made.operands[0])


def _unchanged(operation: Operation, value: Value | None) -> Value | None:
    return value if value is not None and value.type == operation.results[0].type else None


def _before(operation: Operation) -> Operation | None:
    """Return the operation of the same kind that makes the first operand."""
    inner = operation.operands[0].operation
    return inner if inner is not None and inner.op is operation.op else None


@_merged("transpose")
def _merge_transposes(operation: Operation) -> bool:
    inner = _before(operation)
    if inner is None:
        return False
    perm = inner.attributes["perm"]
    operation.operands = [inner.operands[0]]
    operation.attributes = {"perm": tuple(perm[p] for p in operation.attributes["perm"])}
    return True


@_merged("reshape", "detach")
def _merge_reshapes(operation: Operation) -> bool:
    """Serve reshape, broadcast and detach: only the last one says what comes out."""
    inner = _before(operation)
    if inner is None:
        return False
    operation.operands = [inner.operands[0], *operation.operands[1:]]
    return True


@_merged("broadcast")
def _merge_broadcasts(operation: Operation) -> bool:
    """What only puts axes of extent 1 in front is done by the broadcast anyway."""
    inner = operation.operands[0].operation
    if inner is not None and isinstance(inner.op, (ExpandDims, Reshape)):
        source, made = inner.operands[0].type, inner.results[0].type
        if isinstance(source, TensorType) and isinstance(made, TensorType):
            more = made.rank - source.rank
            if more > 0 and made.shape == ((1,) * more + source.shape):
                operation.operands = [inner.operands[0], *operation.operands[1:]]
                return True
    return _merge_reshapes(operation)
