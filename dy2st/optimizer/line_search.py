"""A step length that satisfies the strong Wolfe conditions.

J. Nocedal and S. Wright, "Numerical Optimization" (2006), algorithms 3.5 (bracketing) and 3.6 (zoom) with the cubic
interpolation of equation (3.59).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dy2st.records import record


@record(frozen=True)
class Point:
    """A step length, the value there, the gradient (a vector) and the slope along the direction."""

    step: float
    value: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, step: float, decrease: float = 1e-4, curvature: float = 0.9,
    shortest: float = 1e-9, evaluations: int = 25,
) -> tuple[Point, int]:  # fmt: skip
    """Return a point along the line, and how often the line was evaluated.

    `start` is the point at step 0. The point has f <= f(0) + decrease * step * slope(0) and |slope| <= curvature *
    |slope(0)|, unless the evaluations run out or the bracket is shorter than `shortest`: then it is the lowest found.
    """
    previous, point = start, evaluate(step)
    count = 1
    while count < evaluations:
        if point.value > start.value + decrease * point.step * start.slope or (
            count > 1 and point.value >= previous.value
        ):
            return _zoom(evaluate, start, previous, point, decrease, curvature, shortest, evaluations, count)
        if abs(point.slope) <= -curvature * start.slope:
            return point, count
        if point.slope >= 0:
            return _zoom(evaluate, start, point, previous, decrease, curvature, shortest, evaluations, count)
        low, high = point.step + 0.01 * (point.step - previous.step), point.step * 10
        previous, point = point, evaluate(_cubic(previous, point, low, high))
        count += 1
    return min(start, point, key=lambda p: p.value), count


def _zoom(
    evaluate: Callable[[float], Point], start: Point, low: Point, high: Point, decrease: float, curvature: float,
    shortest: float, evaluations: int, count: int,
) -> tuple[Point, int]:  # fmt: skip
    """Narrow a bracket of which `low` is the better end."""
    stalled = False
    while count < evaluations and abs(high.step - low.step) * abs(start.slope) >= shortest:
        least, most = sorted((low.step, high.step))
        step = _cubic(low, high, least, most)
        margin = 0.1 * (most - least)
        if min(most - step, step - least) < margin:  # close to an end: once may be right, twice is stalling
            outside = stalled or step >= most or step <= least
            step = (most - margin if abs(step - most) < abs(step - least) else least + margin) if outside else step
            stalled = not outside
        else:
            stalled = False
        point = evaluate(step)
        count += 1
        if point.value > start.value + decrease * step * start.slope or point.value >= low.value:
            high = point
            continue
        if abs(point.slope) <= -curvature * start.slope:
            return point, count
        if point.slope * (high.step - low.step) >= 0:
            high = low
        low = point
    return low, count


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """Return where the cubic through two points with their slopes is least between bounds; the middle if nowhere."""
    first, second = (a, b) if a.step <= b.step else (b, a)
    width = first.step - second.step
    if width == 0 or not all(map(math.isfinite, (a.value, b.value, a.slope, b.slope))):
        return (low + high) / 2
    bend = first.slope + second.slope - 3 * (first.value - second.value) / width
    square = bend * bend - first.slope * second.slope
    if square < 0:
        return (low + high) / 2
    root = math.sqrt(square)
    least = second.step - (second.step - first.step) * (second.slope + root - bend) / (
        second.slope - first.slope + 2 * root
    )
    return min(max(least, low), high)
