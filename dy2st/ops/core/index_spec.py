"""What stands in the index expression of `x[...]`: the spec of `index`, `index_set` and `index_add`.

A spec is a tuple of items, in the order of the index expression, ellipses already written out:

    ("int", k)                     one place of an axis
    ("slice", start, stop, step)   each an int, None where it is left out
    ("new",)                       a new axis of extent 1
    ("tensor",)                    places given by the next operand, an integer tensor
    ("mask",)                      places where the next operand, a bool tensor, is true; it spans its rank of axes

An int `k`, a start, a stop or a step of "?" is the next operand, a Python int. NumPy's rules hold: integer tensors
are broadcast together, ints beside them count as 0-D tensors, and the axes they make stand where the indexed axes
were, or first when a slice or a new axis separates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.ops.core.scatter_add_arrays import outside_message
from dy2st.shapes import Dim, Extent, Shape

Item = tuple[Any, ...]
Spec = tuple[Item, ...]
Unknown = Extent | None


@lru_cache(maxsize=1024)
def is_basic(spec: Spec) -> bool:
    """Return whether the spec has ints, slices and new axes only, so that indexing gives a view."""
    return all(item[0] in ("int", "slice", "new") for item in spec)


def may_repeat(spec: Spec) -> bool:
    """Return whether the same element may be indexed more than once."""
    return any(item[0] == "tensor" for item in spec)


def is_rows(spec: Spec) -> bool:
    """Return whether the spec is one integer tensor on the first axis and whole axes behind it."""
    return spec[:1] == (("tensor",),) and all(item == ("slice", None, None, None) for item in spec[1:])


def can_miss(shape: Shape, spec: Spec) -> bool:
    """Return whether reading at this spec can raise: where an index is not known, or may be outside of its axis."""
    axis = 0
    for item in spec:
        if item[0] in ("tensor", "mask"):
            return True
        if item[0] == "int":
            extent, at = shape[axis], item[1]
            if at == "?" or not isinstance(extent, int) or not -extent <= at < extent:
                return True
        elif item[0] == "slice" and item[3] == "?":
            return True
        axis += item[0] != "new"
    return False


_ONE_INT, _ONE_TENSOR = (("int", "?"),), (("tensor",),)


def key(spec: Spec, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the index that NumPy and CuPy take; its last item is an ellipsis, so that the result is an array."""
    if spec in (_ONE_INT, _ONE_TENSOR):
        return operands[0], ...
    return _key(spec, operands) if operands else _known_key(spec)


@lru_cache(maxsize=1024)
def _known_key(spec: Spec) -> tuple[Any, ...]:
    return _key(spec, ())


def _key(spec: Spec, operands: Sequence[Any]) -> tuple[Any, ...]:
    rest = iter(operands)

    def given(part: Any) -> Any:
        return next(rest) if part == "?" else part

    made: list[Any] = []
    for item in spec:
        if item[0] == "int":
            made.append(given(item[1]))
        elif item[0] == "slice":
            made.append(slice(given(item[1]), given(item[2]), given(item[3])))
        else:
            made.append(None if item[0] == "new" else next(rest))
    return (*made, ...)


def indexed_shape(name: str, shape: Shape, spec: Spec, operands: Sequence[Type]) -> tuple[Unknown, ...]:
    """Return the shape of `x[spec]`; an extent is None where it is known only at run time."""
    entries = list(_entries(name, shape, spec, iter(operands)))
    advanced = [i for i, (kind, _) in enumerate(entries) if kind == "advanced"]
    if not advanced:
        return tuple(part for kind, part in entries if kind == "axis")
    places = [i for i, (kind, _) in enumerate(entries) if kind != "axis"]
    common = _broadcast(name, [entries[i][1] for i in places])
    together = places[-1] - places[0] + 1 == len(places)
    first = places[0] if together else 0
    before = [part for kind, part in entries[:first] if kind == "axis"]
    after = [part for kind, part in entries[first:] if kind == "axis"]
    return (*before, *common, *after)


def _entries(name: str, shape: Shape, spec: Spec, operands: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """Yield ("axis", extent) for slices and new axes, ("advanced" or "point", shape) for the rest."""
    axis = 0
    for item in spec:
        kind = item[0]
        if kind == "new":
            yield "axis", 1
            continue
        tensor: Any = next(operands) if kind in ("tensor", "mask") else None
        spans = tensor.rank if kind == "mask" else 1
        if axis + spans > len(shape):
            raise IndexError(f"{name}: too many indices for a tensor of rank {len(shape)}")
        if kind == "int":
            if item[1] == "?":
                next(operands)
            yield "point", ()
        elif kind == "slice":
            yield "axis", _sliced(shape[axis], [next(operands).extent if p == "?" else _absent(p) for p in item[1:]])
        elif kind == "tensor":
            if not tensor.dtype.is_integer:
                raise IndexError(f"{name}: an index must be an integer or bool tensor, not {tensor.dtype.name}")
            yield "advanced" if tensor.rank else "point", tensor.shape
        else:
            _refuse_mask(name, shape[axis : axis + spans], tensor, axis)
            yield "advanced", (None,)
        axis += spans
    for extent in shape[axis:]:
        yield "axis", extent


_LEFT_OUT = object()


def _absent(part: int | None) -> Any:
    return _LEFT_OUT if part is None else part


def _sliced(extent: Extent, parts: list[Any]) -> Unknown:
    """Return the extent of a slice; parts are extents, None when unknown, `_LEFT_OUT` when absent."""
    if any(p is None for p in parts):
        return None
    start, stop, step = (None if p is _LEFT_OUT else p for p in parts)
    step = 1 if step is None else step
    if not isinstance(step, int):
        return None
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if all(not isinstance(e, Dim) for e in (extent, start, stop)):
        return len(range(*slice(start, stop, step).indices(extent)))  # type: ignore[arg-type]
    if step < 0:
        return _steps(extent, -step) if start is None and stop is None else None
    low = _clipped(extent, 0 if start is None else start)
    high = _clipped(extent, extent if stop is None else stop)
    if low is None or high is None or not at_least(high - low, 0):
        return None
    return _steps(high - low, step)


_LONGEST = 240
"""Letters of an extent. What steps of steps of steps have is asked of the run where its text would be longer."""


def _steps(length: Extent, step: int) -> Unknown:
    if step == 1:
        return length
    count = (length + (step - 1)) // step
    return count if isinstance(count, int) or len(str(count)) <= _LONGEST else None


def _clipped(extent: Extent, bound: Extent) -> Unknown:
    """Return where a bound of a slice stands, in [0, extent], when that can be proved."""
    if isinstance(bound, int) and bound < 0:
        bound = extent + bound
    return bound if at_least(bound, 0) and at_least(extent - bound, 0) else None


def extent_of(number: ScalarType) -> Extent | None:
    """Return the extent that a number is; of one that may be negative nothing is known."""
    return number.extent if number.extent is not None and at_least(number.extent, 0) else None


def at_least(extent: Extent, least: int) -> bool:
    """Return whether an extent is provably `least` or more: symbols stand for extents, which are not negative.

    >>> from dy2st.shapes import symbol
    >>> at_least(symbol("N") + 2, 2), at_least(symbol("N") - 1, 0)
    (True, False)
    """
    if isinstance(extent, int):
        return extent >= least
    constant = sum(coefficient for monomial, coefficient in extent.terms if not monomial)
    return constant >= least and all(coefficient > 0 for monomial, coefficient in extent.terms if monomial)


def _broadcast(name: str, shapes: list[tuple[Unknown, ...]]) -> tuple[Unknown, ...]:
    rank = max(map(len, shapes))
    common: list[Unknown] = []
    for axis in range(-rank, 0):
        extents = [shape[axis] for shape in shapes if len(shape) >= -axis]
        fixed = sorted({e for e in extents if isinstance(e, int) and e != 1})
        loose = list(dict.fromkeys(e for e in extents if not isinstance(e, int)))
        if len(fixed) > 1:
            raise IndexError(f"{name}: index tensors cannot be broadcast together: extents {fixed[0]} and {fixed[1]}")
        common.append(fixed[0] if fixed else (1 if not loose else loose[0] if len(loose) == 1 else None))
    return tuple(common)


def _refuse_mask(name: str, shape: Shape, mask: TensorType, axis: int) -> None:
    if not mask.dtype.is_bool:
        raise IndexError(f"{name}: a mask must be a bool tensor, not {mask.dtype.name}")
    for i, (extent, own) in enumerate(zip(shape, mask.shape, strict=True)):
        if isinstance(extent, int) and isinstance(own, int) and extent != own:
            raise IndexError(_mask_message(name, own, axis + i, extent))


def explain(xp: Any, name: str, x: Any, spec: Spec, operands: Sequence[Any]) -> IndexError | None:
    """Return the error of an index that is out of range, with its axis and extent; None when all is in range."""
    axis, parts = 0, key(spec, operands)[:-1]
    if sum(_span(item, part) for item, part in zip(spec, parts, strict=True)) > x.ndim:
        return IndexError(f"{name}: too many indices for a tensor of rank {x.ndim}")
    for item, part in zip(spec, parts, strict=True):
        span = _span(item, part)
        shape = x.shape[axis : axis + span]
        if item[0] == "mask" and part.shape != shape:
            i = next(i for i in range(span) if part.shape[i] != shape[i])
            return IndexError(_mask_message(name, part.shape[i], axis + i, shape[i]))
        if item[0] in ("int", "tensor"):
            places = np.asarray(part) if item[0] == "int" else part
            outside = places[(places < -shape[0]) | (places >= shape[0])]
            if outside.size:
                return IndexError(outside_message(name, int(outside[0]), axis, shape[0]))
        axis += span
    return None


def _span(item: Item, part: Any) -> int:
    return 0 if item[0] == "new" else part.ndim if item[0] == "mask" else 1


def _mask_message(name: str, own: int, axis: int, extent: Any) -> str:
    return f"{name}: a mask of extent {own} does not fit axis {axis} of extent {extent}"
