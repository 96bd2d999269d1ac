"""Type rules of index expressions: `x[...]`, and writes there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from dy2st.dtypes import bool_
from dy2st.ir.checker.shapes import typed
from dy2st.ir.checker.type_join import Known, at_least_zero
from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.shapes import Dim, Extent


@rule("index index_last index_set index_add")
def _index(g: TypedOperation) -> Sequence[Type]:
    writes = g.name in ("index_set", "index_add")
    x, given = g.tensor(0), iter(range(2 if writes else 1, len(g.types)))
    shape = _indexed(g, x, list(_entries(g, x, given)))
    g.require(next(given, None) is None, "too many operands")
    if not writes:
        return (typed(bool_ if g.name == "index_last" else x.dtype, shape),)
    value = g.like(1, x.dtype)
    g.fits(value.shape, shape)
    return (x,)


def _entries(g: TypedOperation, x: TensorType, given: Iterator[int]) -> Iterator[tuple[str, tuple[Known, ...]]]:
    """Yield what each item of the index expression gives: an axis, or a place told by numbers or tensors."""

    def operand() -> int:
        i = next(given, None)
        return g.refuse("too few operands") if i is None else i

    at = 0
    for item in g.sequence("spec"):
        if type(item) is not tuple or not item:
            g.refuse(f"spec has {item!r:.40}")
        item = cast("tuple[Any, ...]", item)
        kind = item[0]
        if kind == "new" and len(item) == 1:
            yield "axis", (1,)
            continue
        g.require(at < x.rank, "more items than axes")
        if kind == "int" and len(item) == 2:
            g.number(operand(), "int", "bool") if item[1] == "?" else g.small(item[1], "spec")
            yield "place", ()
        elif kind == "slice" and len(item) == 4:
            yield "axis", (_sliced(g, x.shape[at], [_bound(g, p, operand) for p in item[1:]]),)
        elif kind == "tensor" and len(item) == 1:
            places = g.tensor(operand(), "iu")
            yield ("tensor" if places.rank else "place"), places.shape
        elif kind == "mask" and len(item) == 1:
            mask = g.tensor(operand(), "b")
            g.require(at + mask.rank <= x.rank, f"a mask of rank {mask.rank}")
            g.equals(mask.shape, x.shape[at : at + mask.rank])
            yield "tensor", (None,)
            at += mask.rank - 1
        else:
            g.refuse(f"spec has {item!r:.40}")
        at += 1
    for extent in x.shape[at:]:
        yield "axis", (extent,)


def _bound(g: TypedOperation, part: Any, operand: Any) -> Any:
    """Return a bound of a slice as what is known of it: a type, or None where it is left out."""
    if part == "?":
        return g.number(operand(), "int", "bool")
    return None if part is None else ScalarType("int", g.small(part, "spec"))


def _sliced(g: TypedOperation, extent: Extent, bounds: Sequence[ScalarType | None]) -> Known:
    start, stop, step = bounds
    by = 1 if step is None else step.extent
    if not isinstance(by, int) or any(b is not None and b.extent is None for b in bounds):
        return None
    g.require(by != 0, "a slice with step 0")
    first, last = (None if b is None else b.extent for b in (start, stop))
    if not any(isinstance(e, Dim) for e in (extent, first, last)):
        return len(range(*slice(first, last, by).indices(extent)))  # type: ignore[arg-type]
    if by < 0:
        return (extent + (-by - 1)) // -by if first is None and last is None else None
    low, high = _inside(extent, 0 if first is None else first), _inside(extent, extent if last is None else last)
    if low is None or high is None or not at_least_zero(high - low):
        return None
    return high - low if by == 1 else (high - low + (by - 1)) // by


def _inside(extent: Extent, bound: Extent) -> Known:
    """Return a bound of a slice where it is in [0, extent] for certain."""
    if isinstance(bound, int) and bound < 0:
        bound = extent + bound
    return bound if at_least_zero(bound) and at_least_zero(extent - bound) else None


def _indexed(g: TypedOperation, x: TensorType, entries: list[tuple[str, tuple[Known, ...]]]) -> list[Known]:
    if all(kind != "tensor" for kind, _ in entries):
        return [shape[0] for kind, shape in entries if kind == "axis"]
    places = [i for i, (kind, _) in enumerate(entries) if kind != "axis"]
    first = places[0] if places[-1] - places[0] + 1 == len(places) else 0
    met = _met(g, [entries[i][1] for i in places])
    before = [shape[0] for kind, shape in entries[:first] if kind == "axis"]
    return [*before, *met, *(shape[0] for kind, shape in entries[first:] if kind == "axis")]


def _met(g: TypedOperation, shapes: list[tuple[Known, ...]]) -> list[Known]:
    """Return the shape to which index tensors are broadcast."""
    made: list[Known] = []
    for axis in range(-max(map(len, shapes)), 0):
        extents = [s[axis] for s in shapes if len(s) >= -axis]
        numbers = sorted({e for e in extents if isinstance(e, int) and e != 1})
        others = list(dict.fromkeys(e for e in extents if not isinstance(e, int)))
        g.require(len(numbers) < 2, "indices that do not fit each other")
        made.append(numbers[0] if numbers else 1 if not others else others[0] if len(others) == 1 else None)
    return made
