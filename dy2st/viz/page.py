"""A picture as one HTML file that needs nothing else: the drawing, its model as JSON, and the script of `page.js`."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from dy2st.viz import svg
from dy2st.viz.panels import Panel, walk


def to_html(panels: list[Panel], title: str) -> str:
    """Return the page: pan, zoom, fold, hover and search work without a network."""
    model = json.dumps(model_of(panels), separators=(",", ":")).replace("<", "\\u003c")
    folded = [node for panel in walk(panels) for node in panel.nodes if node.folded]
    for node in folded:
        node.folded = False  # the page holds every box and hides the folded ones itself
    drawing, _, _ = svg.body(panels)
    for node in folded:
        node.folded = True
    parts = {
        "title": escape(title), "style": svg.STYLE, "drawing": drawing, "model": model, "script": _file("page.js"),
    }  # fmt: skip
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], _file("page.html"))


def model_of(panels: list[Panel]) -> dict[str, Any]:
    """Return what the script needs to place everything again; panels and nodes go by number."""
    return {
        "shown": [panel.number for panel in panels],
        "panels": [
            {
                "label": panel.label,
                "first": panel.nodes[0].number if panel.nodes else 0,
                "points": panel.points,
                "rows": panel.rows,
                "edges": [[e.start, e.end, e.start_at, e.end_at, e.route] for e in panel.edges],
                "nodes": [
                    {"w": n.width, "h": n.height, "folded": n.folded, "inner": [p.number for p in n.panels]}
                    for n in panel.nodes
                ],
            }
            for panel in walk(panels)
        ],
    }


@cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
