"""A bar for each row: our time over the best peer's, on a logarithmic axis; left of 1 we are faster."""

import math
from collections.abc import Iterable

LABELS, PLOT, MARGIN = 190, 520, 110
BAR, TOP = 20, 34
LEAST, MOST = 1 / 32, 32
GOOD, BAD, LINES = "#2a7f62", "#b4552d", "#8a8a8a"


def svg(ratios: Iterable[tuple[str, str, float, float]]) -> str:
    """Draw (name, best peer, ratio, goal) as SVG."""
    rows = list(ratios)
    width, height = LABELS + PLOT + MARGIN, TOP + BAR * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_axis(height),
        *(part for at, row in enumerate(rows) for part in _bar(TOP + BAR * at, *row)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(ratio: float) -> float:
    """Return where a ratio stands."""
    inside = min(max(ratio, LEAST), MOST)
    return LABELS + PLOT * math.log(inside / LEAST) / math.log(MOST / LEAST)


def _axis(height: int) -> list[str]:
    lines = []
    for power in range(-5, 6):
        x = _x(2.0**power)
        text = f"{2**power}" if power >= 0 else f"1/{2**-power}"
        stroke = "black" if power == 0 else "#dddddd"
        lines.append(f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{height - 8}" stroke="{stroke}"/>')
        lines.append(f'<text x="{x:.1f}" y="18" text-anchor="middle" fill="{LINES}">{text}</text>')
    return lines


def _bar(y: int, name: str, peer: str, ratio: float, goal: float) -> list[str]:
    start, end = sorted((_x(1.0), _x(ratio)))
    colour = GOOD if ratio <= goal else BAD
    at = f"{_x(goal):.1f}"
    return [
        f'<text x="{LABELS - 8}" y="{y + 13}" text-anchor="end">{name}</text>',
        f'<rect x="{start:.1f}" y="{y + 2}" width="{max(end - start, 1):.1f}" height="{BAR - 6}" fill="{colour}"/>',
        f'<line x1="{at}" y1="{y}" x2="{at}" y2="{y + BAR - 2}" stroke="{LINES}" stroke-dasharray="2"/>',
        f'<text x="{LABELS + PLOT + 6}" y="{y + 13}" fill="{LINES}">{ratio:.2g} {peer}</text>',
    ]
