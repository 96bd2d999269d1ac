"""Where things stand: nothing overlaps, edges go down, the page's script places everything as Python does."""

import itertools
import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dy2st.viz import page
from dy2st.viz.layers import LONGEST, arrange
from dy2st.viz.panels import Edge, Node, Panel, count, walk
from dy2st.viz.placing import Placed, place

SCRIPT = Path(page.__file__).with_name("page.js").read_text(encoding="utf-8")


def panel_of(seed: int, depth: int = 2) -> Panel:
    """Return a random panel, with panels inside."""
    rng = random.Random(seed)
    made = Panel(rng.choice(["", "then", "a longer label"]))
    for number in range(rng.randint(1, 14)):
        node = Node("n" * rng.randint(1, 20), ["line"] * rng.randint(0, 2))
        if depth and rng.random() < 0.25:
            node.panels = [panel_of(rng.random(), depth - 1) for _ in range(rng.randint(1, 2))]
            node.folded = rng.random() < 0.3
        made.nodes.append(node)
        for start in rng.sample(range(number), min(number, rng.randint(0, 3))):
            made.edges.append(Edge(start, number, rng.choice([0.3, 0.5, 0.7]), rng.random()))
    arrange(made)
    return made


def boxes(placed: Placed, x: float = 0.0, y: float = 0.0) -> list[tuple[Any, float, float, float, float]]:
    return [(n, x + p.x, y + p.y, x + p.x + p.width, y + p.y + p.height)
            for n, p in zip(placed.panel.nodes, placed.nodes)]  # fmt: skip


def check(placed: Placed) -> None:
    """Hold a placed panel and all inside to what a picture must be."""
    found = boxes(placed)
    for i, (_, left, top, right, bottom) in enumerate(found):
        assert 0 <= left < right <= placed.width
        assert 0 <= top < bottom <= placed.height
        for _, left2, top2, right2, bottom2 in found[i + 1 :]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
    for edge, stops in zip(placed.panel.edges, placed.paths):
        assert all(a[1] <= b[1] for a, b in itertools.pairwise(stops))
        for number, (_, left, top, right, bottom) in enumerate(found):
            if number not in (edge.start, edge.end):
                assert not any(left < x < right and top < y < bottom for x, y in stops)
    for at, inner in zip(placed.nodes, placed.inner):
        for i, one in enumerate(inner):
            assert 0 < one.x
            assert one.x + one.width < at.width
            assert 0 < one.y
            assert one.y + one.height < at.height
            assert all(one.x + one.width <= other.x for other in inner[i + 1 :])
            check(one)


@pytest.mark.parametrize("seed", range(25))
def test_nothing_overlaps(seed: int) -> None:
    check(place(panel_of(seed)))


def test_an_empty_panel_has_a_size() -> None:
    empty = Panel("nothing")
    arrange(empty)
    placed = place(empty)
    assert placed.width > 0
    assert placed.height > 0


def test_rows_of_a_chain_and_a_source() -> None:
    """0 -> 1 -> 2, and 3 -> 2: a source stands just above its use."""
    panel = Panel("", [Node(str(i)) for i in range(4)], [Edge(0, 1), Edge(1, 2), Edge(3, 2)])
    arrange(panel)
    assert [sorted(row) for row in panel.rows] == [[0], [1, 3], [2]]


def test_edges_cross_as_little_as_they_can() -> None:
    panel = Panel("", [Node(str(i)) for i in range(4)], [Edge(0, 3), Edge(1, 2)])
    arrange(panel)
    upper, lower = panel.rows
    assert [{0: 3, 1: 2}[n] for n in upper] == lower


def test_an_edge_over_many_rows_becomes_a_reference() -> None:
    nodes = [Node(str(i)) for i in range(LONGEST + 5)]
    edges = [Edge(i, i + 1) for i in range(len(nodes) - 1)]
    panel = Panel("", nodes, [*edges, Edge(0, len(nodes) - 1)])
    arrange(panel)
    assert [n.title for n in panel.nodes if n.kind == "reference"] == ["↑ 0"]
    check(place(panel))


def test_folding_makes_a_box_small() -> None:
    outer = Panel("", [Node("loop", panels=[panel_of(1)])])
    arrange(outer)
    open_height = place(outer).height
    outer.nodes[0].folded = True
    assert place(outer).height < open_height / 2


def flat(placed: Placed) -> dict[str, Any]:
    return {
        "at": placed.panel.number, "x": placed.x, "y": placed.y, "width": placed.width, "height": placed.height,
        "nodes": [vars(n) for n in placed.nodes], "paths": [[list(stop) for stop in stops] for stops in placed.paths],
        "inner": [[flat(one) for one in inner] for inner in placed.inner],
    }  # fmt: skip


def near(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(near, a, b))
    return abs(a - b) < 1e-6


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: the page's script cannot be run")
def test_the_script_of_the_page_places_the_same() -> None:
    panels = [panel_of(seed) for seed in range(12)]
    count(panels)
    run = "const m = JSON.parse(require('fs').readFileSync(0, 'utf8'));" \
          "console.log(JSON.stringify(m.shown.map(at => placePanel(m.panels, at))));"  # fmt: skip
    done = subprocess.run(["node", "-e", f"{SCRIPT}\n{run}"], input=json.dumps(page.model_of(panels)), text=True,
                          capture_output=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for panel, found in zip(panels, json.loads(done.stdout)):
        assert near(flat(place(panel)), found)


def test_numbers_go_through_all_panels_in_order() -> None:
    panels = [panel_of(3), panel_of(4)]
    count(panels)
    assert [p.number for p in walk(panels)] == list(range(len(list(walk(panels)))))
    assert [n.number for p in walk(panels) for n in p.nodes] == list(range(sum(len(p.nodes) for p in walk(panels))))
