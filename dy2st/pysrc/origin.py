"""Where generated nodes come from: every node gets the place of a node that the user wrote.

Compiled code then names the user's file, line and columns by itself, and tracebacks need no mapping.
"""

from __future__ import annotations

import ast
from typing import Any

from dy2st.records import record


@record(frozen=True)
class SourceSpan:
    """A span of the user's text."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


def place(node: Any) -> SourceSpan:
    """Return the span of a node."""
    if isinstance(node, SourceSpan):
        return node
    return SourceSpan(
        node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    )


def header(node: Any) -> SourceSpan:
    """Return the span that stands for a compound statement: its test, or `for x in xs` without the body."""
    kind = type(node).__name__
    if kind in ("If", "While"):
        return place(node.test)
    if kind == "For":
        return SourceSpan(node.lineno, node.col_offset, node.iter.end_lineno, node.iter.end_col_offset)
    if kind == "Match":
        return place(node.subject)
    if kind == "With":
        manager = node.items[0].context_expr
        return SourceSpan(node.lineno, node.col_offset, manager.end_lineno, manager.end_col_offset)
    return place(node)


def put(node: ast.AST, origin: Any) -> None:
    """Give one node, not its children, the place of `origin`."""
    if not node._attributes:
        return
    node.__dict__.update(place(origin).__dict__)
