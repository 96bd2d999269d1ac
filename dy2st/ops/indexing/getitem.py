"""Index expressions: `index` (x[...]), and `index_set`, `index_add`, which give x with other values there.

`index_add` into zeros is the transpose of `index`. What stands in the index expression is the attribute `spec`
(index_spec.py); tensors and run-time ints of it are operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import bool_
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType, Type
from dy2st.ops.core.base import Op, Sample
from dy2st.ops.core.index_spec import Spec, can_miss, explain, indexed_shape, is_basic, is_rows, key, may_repeat
from dy2st.ops.core.scatter_add_arrays import add_rows
from dy2st.ops.core.transpose_helpers import summed_to, zeros_of

Tangents = Sequence[Value | None]


class Index(Op):
    """x[spec], by NumPy's rules; IndexError when an index is out of range."""

    name = "index"
    places = slice(1, None)
    raises = (IndexError,)
    is_data_movement = True
    is_gather = True
    attributes = ("spec",)
    adds = "index_add"
    linear_in = (0,)
    is_view = True
    may_raise = True

    def infer(self, x: TensorType, *operands: Type, spec: Spec) -> TensorType:
        return TensorType(x.dtype, indexed_shape(self.name, x.shape, spec, operands))  # type: ignore[arg-type]

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return can_miss(types[0].shape, attributes["spec"])

    def eval(self, xp: Any, x: Any, *operands: Any, spec: Spec) -> Any:
        return _read(xp, self.name, x, spec, operands)

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, spec: Spec) -> Tangents:  # fmt: skip
        x, places = operands[0], operands[1:]
        return [b.index_add(zeros_of(b, x), cts[0], *places, spec=spec), *[None] * len(places)]

    def makes_view(self, *, spec: Spec) -> bool:
        return is_basic(spec)

    def unview(self, b: Builder, base: Value, new: Value, operands: Sequence[Value], *, spec: Spec) -> Value:
        return b.index_set(base, new, *operands, spec=spec)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for operands, spec in _examples():
            yield Sample((rng.normal(size=(4, 3, 2)), *operands), {"spec": spec})


class _IndexWrite(Op):
    """What writes `value`, broadcast, to x[spec]; `eval_in_place` does it on `x` itself."""

    abstract = True
    eval_in_place: Callable[..., Any]
    attributes = ("spec",)
    linear_together = (0, 1)
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, value: TensorType, *operands: Type, spec: Spec) -> TensorType:
        _refuse_value(self.name, x, value, indexed_shape(self.name, x.shape, spec, operands))
        return x

    def can_raise(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        return _can_misfit(types, attributes["spec"])

    def eval(self, xp: Any, x: Any, value: Any, *operands: Any, spec: Spec) -> Any:
        return self.eval_in_place(xp, x.copy(), value, *operands, spec=spec)


class IndexSet(_IndexWrite):
    """x with `value`, broadcast, at x[spec]; where places repeat, the last value stays."""

    name = "index_set"
    places = slice(2, None)
    writes = 1
    is_data_movement = True

    def eval_in_place(self, xp: Any, x: Any, value: Any, *operands: Any, spec: Spec) -> Any:
        """Do the same on `x` itself."""
        if xp is not np:
            _raise_outside(xp, self.name, x, spec, operands)
            if may_repeat(spec):
                return _set_last(xp, self.name, x, value, spec, operands)
        try:
            x[key(spec, operands)] = value
        except IndexError:
            _raise_outside(xp, self.name, x, spec, operands)
            raise
        except ValueError:
            raise _not_broadcast(self.name, value.shape, _read(xp, self.name, x, spec, operands).shape) from None
        return x

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, spec: Spec) -> Tangents:  # fmt: skip
        (ct,), places = cts, operands[2:]
        zero = b.constant(0, ct.type.dtype)  # type: ignore[union-attr]
        answer: list[Value | None] = [None] * len(operands)
        if linear[1]:  # first, so that the write below may be in place
            read = b.index(ct, *places, spec=spec)
            if may_repeat(spec):
                read = b.where(b.index_last(ct, *places, spec=spec), read, zero)
            answer[1] = summed_to(b, read, operands[1])
        if linear[0]:
            answer[0] = b.index_set(ct, zero, *places, spec=spec)
        return answer

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for operands, spec in _examples():
            x = rng.normal(size=(4, 3, 2))
            shape = x[key(spec, operands)].shape
            yield Sample((x, rng.normal(size=shape), *operands), {"spec": spec})
        yield Sample((rng.normal(size=(4, 3)), rng.normal(size=(1,))), {"spec": (("slice", 1, 3, None),)})
        yield Sample((rng.normal(size=(4,)), rng.normal(size=(3,)), np.array([1, -3, 1])), {"spec": (("tensor",),)})
        x, y = rng.normal(size=(2, 4, 3))
        yield Sample((x, y, np.array([3, 2, 1, 0])), {"spec": (("tensor",),)})
        yield Sample((x, y), {"spec": (("slice", None, None, -1),)})


class IndexAdd(_IndexWrite):
    """x with `value`, broadcast, added at x[spec]; where places repeat, all are added."""

    name = "index_add"
    places = slice(2, None)
    writes = 1
    accumulates = True

    def eval_in_place(self, xp: Any, x: Any, value: Any, *operands: Any, spec: Spec) -> Any:
        """Do the same on `x` itself."""
        if not may_repeat(spec):
            region = _read(xp, self.name, x, spec, operands)
            total = _fit(xp, self.name, value, region.shape) + region
            x[key(spec, operands)] = total
            return x
        if is_rows(spec):
            _raise_outside(xp, self.name, x, spec, operands)
            shape = operands[0].shape + x.shape[1:]
            rows = _fit(xp, self.name, value, shape).reshape(operands[0].size, *x.shape[1:])
            add_rows(xp, x, operands[0].reshape(-1), rows)
            return x
        positions = _read(xp, self.name, xp.arange(x.size).reshape(x.shape), spec, operands)
        flat = xp.ascontiguousarray(x).reshape(-1)
        add_rows(xp, flat, positions.reshape(-1), _fit(xp, self.name, value, positions.shape).reshape(-1))
        x[...] = flat.reshape(x.shape)
        return x

    def transpose(self, b: Builder, cts: Tangents, operands: Sequence[Value], linear: Sequence[bool],
                  *, spec: Spec) -> Tangents:  # fmt: skip
        (ct,), places = cts, operands[2:]
        answer: list[Value | None] = [None] * len(operands)
        if linear[0]:
            answer[0] = ct
        if linear[1]:
            answer[1] = summed_to(b, b.index(ct, *places, spec=spec), operands[1])
        return answer

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield from IndexSet.samples(self, rng)  # type: ignore[arg-type]


def _can_misfit(types: Sequence[Any], spec: Spec) -> bool:
    """Return whether a place may be missed, or the value may not broadcast to the region, as far as types tell."""
    x, value, *operands = types
    if can_miss(x.shape, spec):
        return True
    region = indexed_shape("index_set", x.shape, spec, operands)
    pairs = zip(reversed(value.shape), reversed(region), strict=False)
    return value.rank > len(region) or any(e != 1 and (f is None or e != f) for e, f in pairs)


class IndexLast(Op):
    """For each element of x[spec]: is it the last that names its place? (Only that one stays in `index_set`.)"""

    name = "index_last"
    places = slice(1, None)
    attributes = ("spec",)
    differentiable = False
    may_raise = True
    fresh = True

    def infer(self, x: TensorType, *operands: Type, spec: Spec) -> TensorType:
        return TensorType(bool_, indexed_shape(self.name, x.shape, spec, operands))  # type: ignore[arg-type]

    def eval(self, xp: Any, x: Any, *operands: Any, spec: Spec) -> Any:
        return _last(xp, x.shape, spec, operands)

    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((rng.normal(size=(4,)), np.array([1, -3, 0])), {"spec": (("tensor",),)})


def _read(xp: Any, name: str, x: Any, spec: Spec, operands: Sequence[Any]) -> Any:
    if xp is not np:
        _raise_outside(xp, name, x, spec, operands)  # CuPy wraps indices that are out of range
    try:
        return x[key(spec, operands)]
    except IndexError:
        _raise_outside(xp, name, x, spec, operands)
        raise


def _last(xp: Any, shape: tuple[int, ...], spec: Spec, operands: Sequence[Any]) -> Any:
    """Say of each indexed element whether none after it names its place, whatever the order a device writes in."""
    size = math.prod(shape)
    places = _read(xp, "index_last", xp.arange(size).reshape(shape), spec, operands)
    iterations = xp.arange(places.size).reshape(places.shape)
    latest = xp.full(size, -1, iterations.dtype)
    xp.maximum.at(latest, places.reshape(-1), iterations.reshape(-1))
    return latest[places] == iterations


def _set_last(xp: Any, name: str, x: Any, value: Any, spec: Spec, operands: Sequence[Any]) -> Any:
    """Set the last value of each place: CuPy leaves open which of several writes stays."""
    last = _last(xp, x.shape, spec, operands)
    places = xp.arange(x.size).reshape(x.shape)[key(spec, operands)][last]
    flat = xp.ascontiguousarray(x).reshape(-1)
    flat[places] = _fit(xp, name, value, last.shape)[last]
    x[...] = flat.reshape(x.shape)
    return x


def _raise_outside(xp: Any, name: str, x: Any, spec: Spec, operands: Sequence[Any]) -> None:
    error = explain(xp, name, x, spec, operands)
    if error is not None:
        raise error from None


def _fit(xp: Any, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    try:
        return xp.broadcast_to(value, shape)
    except ValueError:
        raise _not_broadcast(name, value.shape, shape) from None


def _not_broadcast(name: str, shape: Sequence[Any], region: Sequence[Any]) -> ValueError:
    shapes = ["[" + ", ".join("?" if e is None else str(e) for e in s) + "]" for s in (shape, region)]
    return ValueError(f"{name}: a value of shape {shapes[0]} does not fit the indexed shape {shapes[1]}")


def _refuse_value(name: str, x: TensorType, value: TensorType, region: Sequence[Any]) -> None:
    if value.dtype is not x.dtype:
        raise TypeError(f"{name} needs a value of the tensor's dtype, not {value.dtype.name} for {x.dtype.name}")
    known = zip(reversed(value.shape), reversed(region), strict=False)
    clash = any(isinstance(a, int) and isinstance(e, int) and a not in (1, e) for a, e in known)
    if value.rank > len(region) or clash:
        raise _not_broadcast(name, value.shape, region)


def _examples() -> Iterator[tuple[tuple[Any, ...], Spec]]:
    """Yield operands and spec of one index of each form, for a tensor of shape (4, 3, 2)."""
    rows, columns, mask = np.array([[2, 0], [-1, 2]]), np.array([1, -1]), np.array([True, False, True, True])
    yield (), ()
    yield (), (("int", -1), ("new",), ("slice", None, None, -2))
    yield (2, 1, 2), (("int", "?"), ("slice", "?", None, "?"), ("new",))
    yield (rows,), (("tensor",),)
    yield (rows, columns), (("tensor",), ("slice", 0, 2, None), ("tensor",))
    yield (rows, columns), (("tensor",), ("tensor",))
    yield (mask,), (("mask",), ("int", 1))
    yield (columns,), (("int", 0), ("tensor",), ("new",))
    yield (np.array(1),), (("slice", None, None, None), ("tensor",))
    yield (np.arange(12).reshape(4, 3) % 2 == 0,), (("mask",),)
