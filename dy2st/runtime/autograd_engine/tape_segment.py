"""Nodes of the tape that follow each other on the way back, and the key by which an earlier such piece is found again.

Two segments of one key have the same ops, attributes, dtypes, shapes, edges and cotangents to begin with, so one
Program pulls back through either (`tape_program.py`). It serves all segments of one pattern: those whose extents are
equal, or 1, in the same places (`Extents`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st.ir.opdef import OpDef
from dy2st.ir.types import TensorType
from dy2st.runtime.eager.tape.node import Edge, Node, ProgramCall
from dy2st.runtime.eager.tape.op_derivative import Ghost, is_templated
from dy2st.shapes import Extent, symbol

MOST, FEW = 2048, 512
"""About how many operations the Program of a segment may have, and one that is a piece of a loop: others would take too
long to make."""
_SMALL, _PARTS = 4096, 8
"""Elements of a tensor of which any part may be read in a Program; the parts of a larger one that are large."""
_OF_AN_OP = 4
"""About how many operations pull back through an op."""
_NUMBERS = frozenset((bool, int, float))
_PLAIN = _NUMBERS | {ndarray, Ghost}
"""What operands and results of a segment are: arrays or what stands for one, or numbers."""


class Segment:
    """The nodes from the newest with a cotangent on, up to the first that only the walk itself can step over.

    These are the `special` ones and those that `stop` and older ones are, too.
    """

    __slots__ = ("count", "entering", "key", "leaves", "nodes", "numbers", "order", "starts", "too_long")

    def __init__(
        self, pending: dict[Node, list[Any]], ones: Collection[int], special: Collection[Node], stop: int, most: int
    ):
        self.numbers: dict[Node, int] = {}
        """All nodes that were met, also those behind the segment, in the order in which they were."""
        self.leaves: dict[int, Any] = {}
        """The leaves that were met, by identity."""
        self.nodes: list[Node] = []
        self.order: list[int] = []
        """The numbers of the nodes, newest first."""
        self.entering: list[tuple[int, int, Any]] = []
        """Cotangents that are there: of which node, which of its results, and the array; None for ones."""
        heap = [(-node.number, node) for node in pending]
        if len(heap) > 1:
            heap.sort()
        self.starts: list[int] = []
        """Where the nodes begin in the key."""
        self.count = 0
        """About how many operations the Program would have."""
        key: list[Any] = []
        for _, node in heap:
            number = self.numbers[node] = len(self.numbers)
            for i, ct in enumerate(pending[node]):
                if ct is not None:
                    told = id(ct) in ones
                    self.entering.append((number, i, None if told else ct))
                    key += (number, i, getattr(ct, "dtype", None), getattr(ct, "shape", None), told)
        while heap and self.count <= most:
            node = heap[0][1]
            if node.number <= stop or node in special or not self._add(node, heap, key):
                break
        self.too_long = self.count > most
        if self.too_long and most == FEW:
            self._end_with_iteration(key)
        if len(self.numbers) > len(self.nodes):
            self._behind(key)
        self.key = tuple(key)

    def _end_with_iteration(self, key: list[Any]) -> None:
        """Keep whole iterations of the loop that a tape is of: the next piece of it will be of the same key."""
        kinds = [key[start + 1] for start in self.starts]
        count = len(kinds)
        for period in range(1, count // 2 + 1):
            if kinds[count - period :] == kinds[count - 2 * period : count - period]:
                break
        else:
            return
        first = count - 2 * period
        while first and kinds[first - 1] == kinds[first - 1 + period]:
            first -= 1
        kept = first + (count - first) // period * period
        if kept < count:
            del key[self.starts[kept] :], self.nodes[kept:], self.order[kept:]
        self.too_long = False

    def _behind(self, key: list[Any]) -> None:
        """Take into the key what came from nodes behind the segment: no node of it tells dtypes and shapes of those."""
        taken, told = set(self.nodes), set[Edge]()
        for node in self.nodes:
            arrays = node.source[2] if node.source.__class__ is tuple else node.source.raw
            for edge, x in zip(node.edges, arrays, strict=True):
                if edge.__class__ is tuple and edge[0] not in taken and edge not in told:
                    told.add(edge)
                    key += (self.numbers[edge[0]], edge[1], getattr(x, "dtype", None), getattr(x, "shape", None))

    def _add(self, node: Node, heap: list[tuple[int, Node]], key: list[Any]) -> bool:
        """Take the newest node, and what it is into the key; return False for one that only the walk can step over."""
        source, length = node.source, len(key)
        if node.hooks or node.overwritten or ((node.operands or node.versions is not None) and _is_changed(node)):
            return False
        key.append(self.numbers[node])
        if source.__class__ is tuple:
            op, attributes, arrays = source
            key.append(op)
            key.append(tuple(attributes.items()) if attributes else ())
            count = _OF_AN_OP
            described = _PLAIN.issuperset(map(type, arrays))
            if not op.elementwise:
                described = described and _describe(node.results, key) and not _reads_little(op, node)
        elif source.__class__ is ProgramCall and source.xp is np and not source.packed:
            arrays, results = source.raw, node.results
            extents = [(arrays if of_raw else results)[i].shape[axis] for of_raw, i, axis in source.pullback.extents]
            key.append(source.pullback.number)
            key.append(tuple(extents))
            arrays, described, count = (), True, source.pullback.count
        else:
            described, arrays, count = False, (), 0
        if not described:
            del key[length:]
            return False
        heapq.heappop(heap)
        self.nodes.append(node)
        self.order.append(self.numbers[node])
        self.starts.append(length)
        self.count += count
        self._edges(node.edges, arrays, heap, key)
        return True

    def _edges(
        self, edges: Sequence[Edge], arrays: Sequence[Any], heap: list[tuple[int, Node]], key: list[Any]
    ) -> None:
        """Take where the edges of a node lead into the key, and what operands from outside are."""
        numbers, leaves = self.numbers, self.leaves
        for i, edge in enumerate(edges):
            if edge.__class__ is tuple:
                target, index = edge
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(numbers)
                    heapq.heappush(heap, (-target.number, target))
                key.append(number)
                key.append(index)  # which says dtype and shape, too: that node does, or `_behind`
                continue
            if edge is None:
                key.append(None)
            else:
                leaf = leaves.get(id(edge))
                if leaf is None:
                    leaf = leaves[id(edge)] = (len(leaves), edge)
                key.append(-1 - leaf[0])
            if arrays:
                x = arrays[i]
                if x.__class__ in _NUMBERS:
                    key.append(x.__class__)
                else:
                    key.append(x.dtype)
                    key.append(x.shape)

    def place(self, edge: Edge) -> Any:
        """Return where an edge leads as numbers, alike for all segments of a key."""
        return (self.numbers[edge[0]], edge[1]) if isinstance(edge, tuple) else -1 - self.leaves[id(edge)][0]


def _describe(results: Sequence[Any], key: list[Any]) -> bool:
    """Take the dtypes and shapes of results into a key; return whether they are plain."""
    for x in results:
        if x.__class__ not in _PLAIN:
            return False
        key.append(x.dtype)
        key.append(x.shape)
    return True


def _reads_little(op: OpDef, node: Node) -> bool:
    """Return whether a node reads a small part of a large tensor.

    The walk adds its cotangent in place (`Walk.add_part`); in a Program each of many would be a whole tensor.
    """
    if not hasattr(op, "adds"):
        return False
    whole = math.prod(node.source[2][0].shape)
    return whole > _SMALL and math.prod(node.results[0].shape) * _PARTS < whole


def _is_changed(node: Node) -> bool:
    """Return whether an operand was written in place since it was used: the walk finds out whether that matters."""
    versions = node.versions
    if versions is not None:
        for _, version, number in versions:
            if version.number != number:
                return True
    for i, t in enumerate(node.operands):
        version = getattr(t, "storage_version", None)
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
            if not isinstance(node.source, ProgramCall):
                continue
            program = node.source.pullback.backward.program
            for t in (*program.argument_types, *program.result_types):
                for extent in t.shape if isinstance(t, TensorType) else ():
                    if isinstance(extent, int):
                        self.known.setdefault(extent, extent)
        self.key = (self._key(segment.key), *map(self._told, segment.nodes))

    def _told(self, node: Node) -> tuple[Any, ...]:
        """Return the shapes of a node that the key of a segment leaves out, because the rest of it tells them."""
        of = node.source
        arrays = (*(of.raw if isinstance(of, ProgramCall) else of[2]), *node.results)
        return tuple(tuple(map(str, self.shape(x.shape))) for x in arrays if isinstance(x, (ndarray, Ghost)))

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

    def _key(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key of a segment with these extents in it."""
        made: list[Any] = []
        before: Any = None
        for one in key:
            if not isinstance(one, tuple):
                made.append(one)
            elif not isinstance(before, OpDef):
                made.append(tuple(map(str, self.shape(one))))
            elif is_templated(before):
                made.append(tuple(str(self.of(e)) if e != -1 else e for e in dict(one)["shape"]))
            else:
                made.append(one)
            before = one
        return tuple(made)
