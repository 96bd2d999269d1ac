"""Which elements index expressions of known ints and slices name: a span along each axis, whatever the extents are.

A bound is a number from the front of an axis or from its end, and the bounds of slices are cut off at both. So some are
in order whatever the extent is: `x[:-1]` and `x[-1]` name all of `x`, and so do `x[0]` and `x[1:]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.records import record
from dy2st.shapes import Shape


@record(frozen=True)
class Bound:
    """So many elements behind the front of an axis, or in front of its end."""

    count: int
    from_end: bool = False

    def is_at_most(self, other: Bound) -> bool:
        """Return whether a bound is not behind another one, whatever the extent is.

        >>> Bound(2).is_at_most(Bound(3)), Bound(1, from_end=True).is_at_most(Bound(0, from_end=True))
        (True, True)
        >>> Bound(2).is_at_most(Bound(1, from_end=True))
        False
        """
        if self == FRONT or other == END:
            return True
        if self.from_end != other.from_end:
            return False
        return self.count >= other.count if self.from_end else self.count <= other.count


FRONT, END = Bound(0), Bound(0, from_end=True)


@record(frozen=True)
class Span:
    """The elements of an axis from one bound on, in front of another."""

    first: Bound = FRONT
    last: Bound = END

    @property
    def is_whole(self) -> bool:
        """Whether it is all of an axis."""
        return self.first == FRONT and self.last == END

    def holds(self, other: Span) -> bool:
        """Return whether all elements of another span are in this one, whatever the extent is."""
        return self.first.is_at_most(other.first) and other.last.is_at_most(self.last)


Region = tuple[Span, ...]


def region_of(shape: Shape, spec: Sequence[tuple[Any, ...]]) -> Region | None:
    """Return the span of each axis that `x[spec]` names; None where the spec does not tell, or leaves elements out.

    >>> region_of((4, 8), (("slice", 1, None, None), ("int", -1)))[1].first
    Bound(count=7, from_end=False)
    """
    spans: list[Span] = []
    for part in spec:
        if part[0] == "new":
            continue
        if part[0] not in ("int", "slice") or "?" in part or part[3:] not in ((), (None,), (1,)):
            return None
        spans.append(_of_int(part[1]) if part[0] == "int" else _of_slice(part[1], part[2]))
    spans += [Span()] * (len(shape) - len(spans))
    return tuple(_known(s, e) if isinstance(e, int) else s for s, e in zip(spans, shape, strict=True))


def _of_int(at: int) -> Span:
    return Span(Bound(at), Bound(at + 1)) if at >= 0 else Span(Bound(-at, True), Bound(-at - 1, True))


def _of_slice(start: int | None, stop: int | None) -> Span:
    return Span(FRONT if start is None else _bound(start), END if stop is None else _bound(stop))


def _bound(at: int) -> Bound:
    return Bound(at) if at >= 0 else Bound(-at, from_end=True)


def _known(span: Span, extent: int) -> Span:
    """Return a span of an axis whose extent is known by numbers from its front, all of it as such."""

    def front(bound: Bound) -> Bound:
        return Bound(max(extent - bound.count, 0) if bound.from_end else min(bound.count, extent))

    first, last = front(span.first), front(span.last)
    return Span(first, END if last.count == extent else last)


def holds(large: Region, small: Region) -> bool:
    """Return whether all elements of a region are in another one."""
    return all(a.holds(b) for a, b in zip(large, small, strict=True))


def cover(regions: Sequence[Region]) -> bool:
    """Return whether every element of a tensor is in one of some regions, that differ along one axis.

    >>> left, right, all_of_it = Span(FRONT, Bound(3)), Span(Bound(3), END), Span()
    >>> cover([(all_of_it, right), (all_of_it, left)]), cover([(left, right), (right, left)])
    (True, False)
    """
    rank = len(regions[0]) if regions else 0
    return any(
        _fill([r[axis] for r in regions if all(s.is_whole for s in (*r[:axis], *r[axis + 1 :]))])
        for axis in range(rank)
    )


def _fill(spans: Sequence[Span]) -> bool:
    """Return whether spans fill an axis: in order of their beginning, each begins no later than those before have
    come.
    """
    so_far = FRONT
    for span in sorted(spans, key=lambda s: (s.first.from_end, -s.first.count if s.first.from_end else s.first.count)):
        if span.first.is_at_most(so_far) and not span.last.is_at_most(so_far):
            so_far = span.last
    return so_far == END
