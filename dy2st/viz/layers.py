"""From edges to rows: which node stands in which row, and in which order, so that edges go down and cross little.

The steps are those of layered drawing (Sugiyama, Tagawa, Toda 1981): rows by longest path, points where an edge passes
a row, then sweeps that order each row by the mean place of its neighbours.
"""

from __future__ import annotations

from dy2st.viz.panels import Edge, Node, Panel

LONGEST = 24
"""An edge over more rows is drawn as a reference beside its end."""
_SWEEPS = 6


def arrange(panel: Panel) -> None:
    """Give a panel its rows; edges that would pass too many rows become references."""
    rows = _rows_of(panel)
    _shorten(panel, rows)
    _add_points(panel, rows)
    height = max(rows, default=-1) + 1
    panel.rows = [[] for _ in range(height)]
    for number, row in enumerate(rows):
        panel.rows[row].append(number)
    _order(panel)


def _rows_of(panel: Panel) -> list[int]:
    """Return the row of each node: below all that it uses; what uses nothing stands just above its first use."""
    above: list[list[int]] = [[] for _ in panel.nodes]
    below: list[list[int]] = [[] for _ in panel.nodes]
    for edge in panel.edges:
        above[edge.end].append(edge.start)
        below[edge.start].append(edge.end)
    rows = [0] * len(panel.nodes)
    for number in _sorted(above, below):
        rows[number] = max((rows[n] + 1 for n in above[number]), default=0)
    for number in range(len(rows)):
        if not above[number] and below[number]:
            rows[number] = min(rows[n] for n in below[number]) - 1
    return rows


def _sorted(above: list[list[int]], below: list[list[int]]) -> list[int]:
    """Return the nodes so that each comes after all above it."""
    waiting = [len(a) for a in above]
    ready = [n for n, w in enumerate(waiting) if not w]
    for number in ready:
        for following in below[number]:
            waiting[following] -= 1
            if not waiting[following]:
                ready.append(following)
    return ready


def _shorten(panel: Panel, rows: list[int]) -> None:
    """Replace edges over too many rows by a small node beside the end that names the start."""
    made: dict[tuple[int, int], int] = {}
    for edge in panel.edges:
        if rows[edge.end] - rows[edge.start] <= LONGEST:
            continue
        row = rows[edge.end] - 1
        key = edge.start, row
        if key not in made:
            start = panel.nodes[edge.start]
            made[key] = len(panel.nodes)
            panel.nodes.append(Node(f"↑ {start.title}", start.lines[:1], "reference", edge.tip))
            rows.append(row)
        edge.start, edge.start_at = made[key], 0.5


def _add_points(panel: Panel, rows: list[int]) -> None:
    """Put a point wherever an edge passes a row; edges from one place share their points."""
    chains: dict[tuple[int, float], list[int]] = {}
    first = len(panel.nodes)
    for edge in sorted(panel.edges, key=lambda e: rows[e.end]):
        chain = chains.setdefault((edge.start, edge.start_at), [])
        needed = rows[edge.end] - rows[edge.start] - 1
        while len(chain) < needed:
            chain.append(len(rows))
            rows.append(rows[edge.start] + len(chain))
        edge.route = chain[:needed]
    panel.points = len(rows) - first


def _order(panel: Panel) -> None:
    total = len(panel.nodes) + panel.points
    above: list[list[tuple[int, float]]] = [[] for _ in range(total)]
    below: list[list[tuple[int, float]]] = [[] for _ in range(total)]
    for start, end, start_at, end_at in segments(panel.edges):
        above[end].append((start, start_at))
        below[start].append((end, end_at))
    place = [0.0] * total
    _note(panel.rows, place)
    best, fewest = [list(row) for row in panel.rows], _crossings(panel, place)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in panel.rows if down else reversed(panel.rows):
            key = {n: _mean(neighbours[n], place, place[n]) for n in row}
            row.sort(key=key.__getitem__)
            for at, number in enumerate(row):
                place[number] = float(at)
        crossings = _crossings(panel, place)
        if crossings < fewest:
            best, fewest = [list(row) for row in panel.rows], crossings
    panel.rows = best


def _note(rows: list[list[int]], place: list[float]) -> None:
    for row in rows:
        for at, number in enumerate(row):
            place[number] = float(at)


def _mean(neighbours: list[tuple[int, float]], place: list[float], alone: float) -> float:
    if not neighbours:
        return alone
    return sum(place[n] + 0.8 * (at - 0.5) for n, at in neighbours) / len(neighbours)


def segments(edges: list[Edge]) -> list[tuple[int, int, float, float]]:
    """Return the pieces of edges from row to row: start, end, and where on each they are."""
    found: dict[tuple[int, int, float, float], None] = {}
    for edge in edges:
        stops = [edge.start, *edge.route, edge.end]
        for i in range(len(stops) - 1):
            start_at = edge.start_at if i == 0 else 0.5
            end_at = edge.end_at if i == len(stops) - 2 else 0.5
            found[stops[i], stops[i + 1], start_at, end_at] = None
    return list(found)


def _crossings(panel: Panel, place: list[float]) -> int:
    """Return how many pairs of pieces between two rows cross."""
    row_of = {n: r for r, row in enumerate(panel.rows) for n in row}
    between: dict[int, list[tuple[float, float]]] = {}
    for start, end, start_at, end_at in segments(panel.edges):
        pair = place[start] + 0.8 * (start_at - 0.5), place[end] + 0.8 * (end_at - 0.5)
        between.setdefault(row_of[start], []).append(pair)
    return sum(_inversions([end for _, end in sorted(pairs)]) for pairs in between.values())


def _inversions(values: list[float]) -> int:
    """Return how many pairs stand in the wrong order, by merging halves."""
    if len(values) < 2:
        return 0
    middle = len(values) // 2
    left, right = values[:middle], values[middle:]
    found = _inversions(left) + _inversions(right)
    left.sort()
    right.sort()
    at = 0
    for value in right:
        while at < len(left) and left[at] <= value:
            at += 1
        found += len(left) - at
    return found
