"""Draw curves as an SVG file, over a logarithmic or a plain axis: nothing beyond Python is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#1f6fb2", "#c2571a", "#2e8b57", "#8a4fa3")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 70, 40, 20, 50

Curves = Mapping[str, Sequence[float]]


def log_plot(path: Path, title: str, curves: Curves, across: str = "step") -> None:
    """Write an SVG file with a line for each curve: its values upwards (logarithmic), their numbers to the right.

    Raises ValueError where no curve has a point, or a value is not positive and finite.
    """
    values = all_values(curves)
    if not all(v > 0 and math.isfinite(v) for v in values):
        raise ValueError("a logarithmic axis has positive finite values only")
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    marks = {float(power): f"1e{power}" for power in range(low, high + 1)}
    _write(path, title, curves, across, marks, math.log10)


def plot(path: Path, title: str, curves: Curves, across: str = "step") -> None:
    """Write an SVG file as `log_plot` does, over a plain axis.

    Raises ValueError where no curve has a point, or a value is not finite.
    """
    values = all_values(curves)
    if not all(map(math.isfinite, values)):
        raise ValueError("an axis has finite values only")
    low, high = min(values), max(values)
    high = high if high > low else low + 1
    marks = {low + (high - low) * fifth / 5: f"{low + (high - low) * fifth / 5:.3g}" for fifth in range(6)}
    _write(path, title, curves, across, marks, float)


def all_values(curves: Curves) -> list[float]:
    """Return the values of all curves; ValueError where there are none."""
    values = [v for curve in curves.values() for v in curve]
    if not values:
        raise ValueError("there is nothing to draw: no curve has a point")
    return values


def _write(
    path: Path, title: str, curves: Curves, across: str, marks: Mapping[float, str], height: Callable[[float], float]
) -> None:
    """Write the file; `marks` are the lines of the grid at heights from the lowest to the highest, and their texts."""
    low, high, last = min(marks), max(marks), max(1, max(map(len, curves.values())) - 1)

    def upwards(at: float) -> float:
        return TOP + (high - at) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def rightwards(i: int) -> float:
        return LEFT + i / last * (WIDTH - LEFT - RIGHT)

    parts = [f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>']
    for at, text in marks.items():
        y = upwards(at)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    for tenth in (0, 5, 10):
        number = tenth * last // 10
        parts.append(
            f'<text x="{rightwards(number):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number}</text>'
        )
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" text-anchor="end">{escape(across)}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        colour, y = COLOURS[number % len(COLOURS)], TOP + 16 * (number + 1)
        points = " ".join(f"{rightwards(i):.1f},{upwards(height(v)):.1f}" for i, v in enumerate(curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end" fill="{colour}">{escape(name)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    body = "\n".join(parts)
    path.write_text(f'{head} font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
