"""What a picture is made of: panels that hold nodes and edges, nodes that hold panels.

Sizes are in pixels. A node of control flow holds one panel a sub-block and can be folded, which hides them.
"""

from __future__ import annotations

from collections.abc import Iterator

from dy2st.records import field, record

LETTER = 6.9
SMALL = 5.9
"""Widths that are reserved for a letter of the title and of the lines below it."""


@record(eq=False)
class Node:
    """A box with a title, lines of small text, and what is shown when the pointer rests on it."""

    title: str
    lines: list[str] = field(default_factory=list[str])
    kind: str = "op"
    tip: str = ""
    panels: list[Panel] = field(default_factory=list["Panel"])
    folded: bool = False
    number: int = -1

    @property
    def width(self) -> float:
        """The width of the box itself, without panels."""
        longest = max((len(line) * SMALL for line in self.lines), default=0.0)
        return round(max(len(self.title) * LETTER + (22 if self.panels else 0), longest) + 20)

    @property
    def height(self) -> float:
        """The height of the box itself, without panels."""
        return 24 + 14 * len(self.lines)


@record(eq=False)
class Edge:
    """A value that goes from one node of a panel to another; fractions say where it leaves and enters."""

    start: int
    end: int
    start_at: float = 0.5
    end_at: float = 0.5
    tip: str = ""
    route: list[int] = field(default_factory=list[int])
    """The points between: numbers past those of the nodes."""


@record(eq=False)
class Panel:
    """A block: nodes in rows, top to bottom, and the edges between them."""

    label: str = ""
    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    rows: list[list[int]] = field(default_factory=list[list[int]])
    """Numbers of nodes (and of points between) from left to right; `layers.arrange` makes them."""
    points: int = 0
    number: int = -1


def walk(panels: list[Panel]) -> Iterator[Panel]:
    """Yield panels, those inside after the panel that holds them."""
    for panel in panels:
        yield panel
        for node in panel.nodes:
            yield from walk(node.panels)


def count(panels: list[Panel]) -> None:
    """Number all panels and nodes of a picture."""
    nodes = 0
    for at, panel in enumerate(walk(panels)):
        panel.number = at
        for node in panel.nodes:
            node.number = nodes
            nodes += 1
