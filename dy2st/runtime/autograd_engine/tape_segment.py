"""Nodes of the tape that follow each other on the way back, and the key by which an earlier such piece is found again.

Two segments of one key have the same ops, attributes, dtypes, shapes, edges and cotangents to begin with, so one
Program pulls back through either (`tape_program.py`). It serves all segments of one pattern: those whose extents are
equal, or 1, in the same places (`Extents`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st.ir.types import TensorType, Type
from dy2st.runtime.eager.tape.node import Edge, Node, ProgramCall
from dy2st.runtime.eager.tape.op_derivative import Ghost, is_templated
from dy2st.shapes import Dim, Extent, symbol

MOST_NODES = 256
"""Of a longer tape, as of a loop of hundreds of iterations, the Program would take too long to make."""
_NUMBERS = (bool, int, float)


class Segment:
    """The nodes from the newest with a cotangent on, up to the first that only the walk itself can step over."""

    __slots__ = ("entering", "key", "leaves", "nodes", "numbers", "order", "too_long")

    def __init__(self, pending: dict[Node, list[Any]], ones: Collection[int], stops: Callable[[Node], bool]):
        self.numbers: dict[Node, int] = {}
        """All nodes that were met, also those behind the segment, in the order in which they were."""
        self.leaves: dict[int, Any] = {}
        self.nodes: list[Node] = []
        self.order: list[int] = []
        """The numbers of the nodes, newest first."""
        self.entering: list[tuple[int, int, Any]] = []
        """Cotangents that are there: of which node, which of its results, and the array; None for ones."""
        heap = sorted((-node.number, node) for node in pending)
        key: list[Any] = []
        for _, node in heap:
            number = self.numbers[node] = len(self.numbers)
            for i, ct in enumerate(pending[node]):
                if ct is not None:
                    told = id(ct) in ones
                    self.entering.append((number, i, None if told else ct))
                    key += (number, i, getattr(ct, "dtype", None), getattr(ct, "shape", None), told)
        while heap and len(self.nodes) < MOST_NODES:
            node = heap[0][1]
            if stops(node) or not _describe(node, key):
                break
            heapq.heappop(heap)
            self.nodes.append(node)
            self.order.append(self.numbers[node])
            self._edges(node, heap, key)
        self.too_long = bool(heap) and len(self.nodes) == MOST_NODES
        self.key = tuple(key)

    def _edges(self, node: Node, heap: list[tuple[int, Node]], key: list[Any]) -> None:
        numbers = self.numbers
        key.append(numbers[node])
        for edge in node.edges:
            if edge is None:
                key.append(None)
            elif edge.__class__ is tuple:
                target = edge[0]
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(numbers)
                    heapq.heappush(heap, (-target.number, target))
                key += (number, edge[1])
            else:
                key.append(-1 - self.leaves.setdefault(id(edge), (len(self.leaves), edge))[0])

    def place(self, edge: Edge) -> Any:
        """Return where an edge leads as numbers, alike for all segments of a key."""
        return (self.numbers[edge[0]], edge[1]) if isinstance(edge, tuple) else -1 - self.leaves[id(edge)][0]


def _describe(node: Node, key: list[Any]) -> bool:
    """Add to a key what a node is; return False for one that only the walk itself can step over."""
    source = node.source
    if node.hooks or node.overwritten or _is_changed(node):
        return False
    if source.__class__ is tuple:
        op, attributes, arrays = source
        key += (op, tuple(attributes.items()))
        values: Sequence[Any] = arrays
    elif source.__class__ is ProgramCall:
        if source.xp is not np:
            return False
        key.append(source.pullback.number)
        for x, edge in zip(source.raw, node.edges, strict=True):
            if edge is not None and x.__class__ is ndarray:
                key += (x.dtype, x.shape)
        values = source.residuals
    else:
        return False
    of_op = source.__class__ is tuple
    for x in values:
        kind = x.__class__
        if kind is ndarray or kind is Ghost:
            key += (x.dtype, x.shape)
        elif kind in _NUMBERS or (not of_op and kind in (list, tuple)):
            key.append(kind)
        else:
            return False
    for x in node.results if of_op else node.results[: len(node.results) - len(values)]:
        if x is None:
            key.append(None)
        elif x.__class__ is ndarray or x.__class__ is Ghost:
            key += (x.dtype, x.shape)
        elif of_op:
            return False
    return True


def _is_changed(node: Node) -> bool:
    """Return whether an operand was written in place since it was used: the walk finds out whether that matters."""
    versions = node.versions
    if versions is not None:
        for _, version, number in versions:
            if version.number != number:
                return True
    for i, t in enumerate(node.operands):
        version = getattr(t, "_version", None)
        if version is not None and version.spoiled and not any(i == at for at, _, _ in versions or ()):
            return True
    return False


class Extents:
    """The extents of a segment as symbols: equal ones alike, those that one of its Programs fixes as they are."""

    def __init__(self, segment: Segment):
        self.known: dict[int, Extent] = {1: 1}
        self.values: list[int] = []
        """What the symbols n0, n1, ... are."""
        for node in segment.nodes:
            if isinstance(node.source, ProgramCall):
                block = node.source.pullback.backward.optimised.block
                for t in (v.type for v in (*block.arguments, *block.results)):
                    self._fix(t)
        self.key = self._key(segment)

    def _fix(self, t: Type) -> None:
        for extent in t.shape if isinstance(t, TensorType) else ():
            if isinstance(extent, int):
                self.known.setdefault(extent, extent)

    def of(self, extent: int) -> Extent:
        """Return an extent as all segments of the pattern have it."""
        found = self.known.get(extent)
        if found is None:
            found = self.known[extent] = symbol(f"n{len(self.values)}")
            self.values.append(extent)
        return found

    def shape(self, shape: tuple[int, ...]) -> tuple[Extent, ...]:
        """Return a shape likewise."""
        return tuple(map(self.of, shape))

    def _key(self, segment: Segment) -> tuple[Any, ...]:
        """Return the key of the pattern: that of the segment with these extents in it."""
        key: list[Any] = []
        at: list[Any] = list(segment.key)
        for i, one in enumerate(at):
            before: Any = at[i - 1] if i else None
            if isinstance(one, tuple) and isinstance(before, np.dtype):
                key.append(tuple(map(_name, self.shape(one))))
            elif isinstance(one, tuple) and is_templated(before):
                key.append(tuple(e if e == -1 else _name(self.of(e)) for e in dict(one)["shape"]))
            else:
                key.append(one)
        return tuple(key)


def _name(extent: Extent) -> Any:
    return str(extent) if isinstance(extent, Dim) else extent
