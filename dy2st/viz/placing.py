"""Where everything stands, given rows: sizes bottom-up, then x by sweeps, then y row by row.

`page.js` does the same when a box is folded or unfolded; a test holds both to the same numbers. Each row is placed by
least squares: as near as may be to the means of the neighbours, in order, with a gap between (isotonic regression by
pooling neighbours that would overlap).
"""

from __future__ import annotations

from itertools import pairwise

from dy2st.records import field, record
from dy2st.viz.layers import segments
from dy2st.viz.panels import Node, Panel

GAP = 16.0
ROW_GAP = 26.0
MARGIN = 14.0
LABEL = 20.0
POINT = 8.0
SWEEPS = 10


@record
class Place:
    """The top left corner of a box within the panel around it, and its size."""

    x: float
    y: float
    width: float
    height: float


@record
class Placed:
    """A panel's size and what stands in it; `x`, `y` are its corner within the node around it."""

    panel: Panel
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    nodes: list[Place] = field(default_factory=list[Place])
    paths: list[list[tuple[float, float]]] = field(default_factory=list[list[tuple[float, float]]])
    inner: list[list[Placed]] = field(default_factory=list[list["Placed"]])


def place(panel: Panel) -> Placed:
    """Place a panel and all that is in it."""
    inner: list[list[Placed]] = []
    sizes: list[tuple[float, float]] = []
    for node in panel.nodes:
        below = [] if node.folded else [place(p) for p in node.panels]
        inner.append(below)
        sizes.append(_size(node, below))
    sizes += [(POINT, 0.0)] * panel.points
    centres = _centres(panel, sizes)
    left = min((c - w / 2 for c, (w, _) in zip(centres, sizes, strict=True)), default=0.0)
    centres = [c - left + MARGIN for c in centres]
    right = max((c + w / 2 for c, (w, _) in zip(centres, sizes, strict=True)), default=MARGIN)
    tops, bottoms, end = _rows(panel, sizes, centres)
    width = max(right + MARGIN, len(panel.label) * 7.0 + 2 * MARGIN)
    made = Placed(panel, width, end + MARGIN, inner=inner)
    row_of = {n: r for r, row in enumerate(panel.rows) for n in row}
    for number in range(len(panel.nodes)):
        w, h = sizes[number]
        made.nodes.append(Place(centres[number] - w / 2, tops[row_of[number]], w, h))
    made.paths = _paths(panel, made.nodes, centres, row_of, tops, bottoms)
    return made


def _size(node: Node, below: list[Placed]) -> tuple[float, float]:
    """Return the size of a node, and place its panels side by side."""
    if not below:
        return node.width, node.height
    x = MARGIN
    for one in below:
        one.x, one.y = x, node.height
        x += one.width + MARGIN
    return max(node.width, x), node.height + max(one.height for one in below) + MARGIN


def _centres(panel: Panel, sizes: list[tuple[float, float]]) -> list[float]:
    above: list[list[tuple[int, float]]] = [[] for _ in sizes]
    below: list[list[tuple[int, float]]] = [[] for _ in sizes]
    for start, end, start_at, end_at in segments(panel.edges):
        shift = (start_at - 0.5) * sizes[start][0] - (end_at - 0.5) * sizes[end][0]
        above[end].append((start, shift))
        below[start].append((end, -shift))
    centres = [0.0] * len(sizes)
    for row in panel.rows:
        for number, x in zip(row, _apart([0.0] * len(row), row, sizes, len(panel.nodes)), strict=True):
            centres[number] = x
    for sweep in range(SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        for row in panel.rows if sweep % 2 == 0 else reversed(panel.rows):
            wanted = [_mean(neighbours[n], centres, centres[n]) for n in row]
            for number, x in zip(row, _apart(wanted, row, sizes, len(panel.nodes)), strict=True):
                centres[number] = x
    return centres


def _mean(neighbours: list[tuple[int, float]], centres: list[float], alone: float) -> float:
    if not neighbours:
        return alone
    return sum(centres[n] + shift for n, shift in neighbours) / len(neighbours)


def _apart(wanted: list[float], row: list[int], sizes: list[tuple[float, float]], nodes: int) -> list[float]:
    """Return centres in the order of the row, apart from each other, as near as may be to those wanted."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (sizes[left][0] + sizes[right][0]) / 2 + GAP)
    pools: list[list[float]] = []
    for want, offset, number in zip(wanted, offsets, row, strict=True):
        weight = 1.0 if number < nodes else 4.0
        pools.append([(want - offset) * weight, weight, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, weight, members = pools.pop()
            pools[-1] = [pools[-1][0] + total, pools[-1][1] + weight, pools[-1][2] + members]
    means = [total / weight for total, weight, members in pools for _ in range(int(members))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _rows(
    panel: Panel, sizes: list[tuple[float, float]], centres: list[float]
) -> tuple[list[float], list[float], float]:
    """Return top and bottom of each row, and where the last one ends; rows that edges cross widely stand apart."""
    row_of = {n: r for r, row in enumerate(panel.rows) for n in row}
    widest = [0.0] * (len(panel.rows) + 1)
    for start, end, _, _ in segments(panel.edges):
        widest[row_of[end]] = max(widest[row_of[end]], abs(centres[start] - centres[end]))
    y = MARGIN + (LABEL if panel.label else 0.0)
    tops: list[float] = []
    bottoms: list[float] = []
    for at, row in enumerate(panel.rows):
        if at:
            y += ROW_GAP + min(60.0, 0.1 * widest[at])
        tops.append(y)
        y += max(sizes[n][1] for n in row)
        bottoms.append(y)
    return tops, bottoms, y


def _paths(
    panel: Panel,
    nodes: list[Place],
    centres: list[float],
    row_of: dict[int, int],
    tops: list[float],
    bottoms: list[float],
) -> list[list[tuple[float, float]]]:
    """Return the stops of each edge: leave a node, pass rows straight, enter a node."""
    found: list[list[tuple[float, float]]] = []
    for edge in panel.edges:
        start, end = nodes[edge.start], nodes[edge.end]
        x = start.x + edge.start_at * start.width
        stops = [(x, start.y + start.height), (x, bottoms[row_of[edge.start]])]
        for point in edge.route:
            stops += [(centres[point], tops[row_of[point]]), (centres[point], bottoms[row_of[point]])]
        found.append([*stops, (end.x + edge.end_at * end.width, end.y)])
    return found
