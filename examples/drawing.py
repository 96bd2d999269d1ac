"""Draw curves of positive numbers over a logarithmic axis, as an SVG file: nothing beyond Python is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#1f6fb2", "#c2571a", "#2e8b57", "#8a4fa3")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 70, 40, 20, 50


def log_plot(path: Path, title: str, curves: Mapping[str, Sequence[float]], across: str = "step") -> None:
    """Write an SVG file with a line for each curve: its values upwards (logarithmic), their numbers to the right.

    Raises ValueError where no curve has a point, or a value is not positive and finite.
    """
    values = [v for curve in curves.values() for v in curve]
    if not values:
        raise ValueError("there is nothing to draw: no curve has a point")
    if not all(v > 0 and math.isfinite(v) for v in values):
        raise ValueError("a logarithmic axis has positive finite values only")
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high, last = max(high, low + 1), max(1, max(map(len, curves.values())) - 1)

    def place(i: int, value: float) -> tuple[float, float]:
        right = LEFT + i / last * (WIDTH - LEFT - RIGHT)
        return right, TOP + (high - math.log10(value)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>']
    for power in range(low, high + 1):
        _, y = place(0, 10.0**power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for tenth in (0, 5, 10):
        x, _ = place(tenth * last // 10, 10.0**low)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tenth * last // 10}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" text-anchor="end">{escape(across)}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        colour, y = COLOURS[number % len(COLOURS)], TOP + 16 * (number + 1)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(i, v) for i, v in enumerate(curve)))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end" fill="{colour}">{escape(name)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    body = "\n".join(parts)
    path.write_text(f'{head} font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
