"""Finds which nodes of a graph are equal as far as anybody can tell who follows what they read, cycles included.

All nodes of a kind are taken as equal first. A class whose nodes read different classes is taken apart: its largest
part keeps the class, the others become classes of their own, and who reads those is looked at again. A node so changes
its class at most log2(n) times (Hopcroft, "An n log n algorithm for minimizing states in a finite automaton", 1971).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence


class Nodes:
    """The nodes of a graph, by number: their kinds, and which nodes each one reads."""

    def __init__(self) -> None:
        self.kinds: list[Hashable] = []
        self.reads: list[Sequence[int]] = []
        self.unordered: set[int] = set()
        """Nodes that may read in any order."""

    def add(self, kind: Hashable, reads: Sequence[int] = (), unordered: bool = False) -> int:
        """Add a node; return its number."""
        self.kinds.append(kind)
        self.reads.append(reads)
        if unordered:
            self.unordered.add(len(self.kinds) - 1)
        return len(self.kinds) - 1


def classes(nodes: Nodes) -> list[int]:
    """Return for each node the first one that is equal to it."""
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(kind, len(numbers)) for kind in nodes.kinds]
    members: list[set[int]] = [set() for _ in numbers]
    readers: list[list[int]] = [[] for _ in of]
    for node, reads in enumerate(nodes.reads):
        members[of[node]].add(node)
        for read in reads:
            readers[read].append(node)
    again = set(range(len(of)))
    while again:
        moved = _taken_apart(again, nodes, of, members)
        again = {reader for node in moved for reader in readers[node]}
    first: dict[int, int] = {}
    return [first.setdefault(number, node) for node, number in enumerate(of)]


def _taken_apart(again: set[int], nodes: Nodes, of: list[int], members: list[set[int]]) -> list[int]:
    """Take classes apart by what those of their nodes read that are to be looked at; return which nodes moved.

    What is not looked at reads what it read before, the same as each other, and nothing that is looked at still does.
    """
    parts: defaultdict[int, defaultdict[tuple[int, ...], list[int]]] = defaultdict(lambda: defaultdict(list))
    for node in again:
        if len(members[of[node]]) > 1:
            read = [of[n] for n in nodes.reads[node]]
            parts[of[node]][tuple(sorted(read) if node in nodes.unordered else read)].append(node)
    moved: list[int] = []
    for number, found in parts.items():
        small = sorted(found.values(), key=len)
        others = len(members[number]) - sum(map(len, small))
        if others < len(small[-1]):  # the largest part keeps the class
            largest = small.pop()
            small += [[*members[number].difference(largest, *small)]] if others else []
        for part in small:
            members[number].difference_update(part)
            for node in part:
                of[node] = len(members)
            members.append(set(part))
            moved += part
    return moved
