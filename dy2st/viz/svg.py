"""A picture as SVG: placed panels as rectangles, text and curves. The HTML page adds its script to this drawing."""

from __future__ import annotations

import re
from html import escape

from dy2st.viz.panels import Node, Panel
from dy2st.viz.placing import GAP, LABEL, MARGIN, Placed, place

STYLE = """
.picture { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Arial, sans-serif; }
.picture text { fill: #1b2430; } .picture .small { font-size: 10px; fill: #566273; }
.picture .title { font-weight: 600; } .picture .label { font-size: 11px; fill: #566273; font-weight: 600; }
.picture .box { fill: #fff; stroke: #9aa7b8; } .picture .panel { fill: #fff; stroke: #d5dce6; }
.picture .outer { fill: #f7f9fc; stroke: #e3e8ef; }
.picture .edge { fill: none; stroke: #8492a6; stroke-width: 1.3; }
.picture .tip { fill: #8492a6; }
.picture .argument > .box { fill: #e8f1ff; stroke: #6f9ee8; } .picture .state > .box { fill: #e6f6ec; stroke: #62b784; }
.picture .result > .box { fill: #f1eafd; stroke: #a284dc; } .picture .product > .box { fill: #fff3e2; stroke: #e0a14e; }
.picture .flow > .box { fill: #eef1f6; stroke: #71809a; stroke-width: 1.4; }
.picture .effect > .box { fill: #fdebec; stroke: #dd7d84; }
.picture .reference > .box { stroke-dasharray: 3 3; } .picture .layer > .box { fill: #f4f6fa; }
"""


def to_text(panels: list[Panel]) -> str:
    """Return a whole SVG document of panels, one below the other."""
    drawn, width, height = body(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
        f'height="{_n(height)}" class="picture"><style>{STYLE}</style>{drawn}</svg>\n'
    )


def body(panels: list[Panel]) -> tuple[str, float, float]:
    """Return the inside of the SVG, and its size."""
    parts = [_MARKER]
    y, width = 0.0, 0.0
    for panel in panels:
        placed = place(panel)
        placed.y = y
        y += placed.height + GAP
        width = max(width, placed.width)
        parts.append(_panel(placed, "outer"))
    return "".join(parts), width, max(y - GAP, 2 * MARGIN)


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6.5" markerHeight="6.5" orient="auto">'
    '<path class="tip" d="M0 1L8 4L0 7z"/></marker></defs>'
)


def _panel(placed: Placed, kind: str = "panel") -> str:
    panel = placed.panel
    parts = [
        f'<g class="holder" id="p{panel.number}" transform="translate({_n(placed.x)} {_n(placed.y)})">'
        f'<rect class="{kind}" width="{_n(placed.width)}" height="{_n(placed.height)}" rx="6"/>'
    ]
    if panel.label:
        parts.append(f'<text class="label" x="{_n(MARGIN)}" y="{_n(LABEL - 4)}">{escape(panel.label)}</text>')
    for edge, stops in zip(panel.edges, placed.paths, strict=True):
        title = f"<title>{_text(edge.tip)}</title>" if edge.tip else ""
        parts.append(f'<path class="edge" marker-end="url(#tip)" d="{path_of(stops)}">{title}</path>')
    for node, at, inner in zip(panel.nodes, placed.nodes, placed.inner, strict=True):
        parts.append(_node(node, at.x, at.y, at.width, at.height, inner))
    parts.append("</g>")
    return "".join(parts)


def _node(node: Node, x: float, y: float, width: float, height: float, inner: list[Placed]) -> str:
    title = f"<title>{_text(node.tip)}</title>" if node.tip else ""
    folds = " folds" if node.panels else ""
    parts = [
        f'<g class="node {node.kind}{folds}" id="n{node.number}" transform="translate({_n(x)} {_n(y)})">{title}'
        f'<rect class="box" width="{_n(width)}" height="{_n(height)}" rx="{_radius(node)}"/>'
    ]
    middle = node.width / 2 if node.panels else width / 2
    parts.append(f'<text class="title" x="{_n(middle)}" y="16" text-anchor="middle">{_text(node.title)}</text>')
    for i, line in enumerate(node.lines):
        parts.append(
            f'<text class="small" x="{_n(middle)}" y="{30 + 14 * i}" text-anchor="middle">{_text(line)}</text>'
        )
    parts += [_panel(one) for one in inner]
    parts.append("</g>")
    return "".join(parts)


def _radius(node: Node) -> int:
    return 11 if node.kind in ("argument", "state", "result", "reference") else 4


def path_of(stops: list[tuple[float, float]]) -> str:
    """Return the path through stops: straight within a row, a curve from row to row."""
    (x, y), *rest = stops
    parts = [f"M{_n(x)} {_n(y)}"]
    for at, (to_x, to_y) in enumerate(rest):
        if at % 2 == 0:
            parts.append(f"L{_n(to_x)} {_n(to_y)}")
        else:
            middle = (y + to_y) / 2
            parts.append(f"C{_n(x)} {_n(middle)} {_n(to_x)} {_n(middle)} {_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
    return "".join(parts)


_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def _text(text: str) -> str:
    """Return text as XML has it; characters that XML cannot hold become U+FFFD."""
    kept = "".join(c if c in "\n\t" or (c >= " " and not _NO_XML.match(c)) else "\ufffd" for c in text)
    return escape(kept)


def _n(number: float) -> str:
    """Return a number with one digit after the point at most."""
    return f"{number:.1f}".removesuffix(".0")
