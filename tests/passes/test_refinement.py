"""Which nodes of a graph are equal."""

import random
from collections.abc import Iterator

import pytest

from dy2st.passes.loops.congruence import Nodes, classes


def in_rounds(nodes: Nodes) -> list[int]:
    """Take classes apart, all nodes each time, until nothing changes."""
    kinds: list[object] = list(nodes.kinds)
    found = [kinds.index(kind) for kind in kinds]
    while True:
        read = [[found[n] for n in reads] for reads in nodes.reads]
        read = [sorted(reads) if i in nodes.unordered else reads for i, reads in enumerate(read)]
        keys = list(zip(found, read, strict=True))
        finer = [keys.index(key) for key in keys]
        if finer == found:
            return found
        found = finer


@pytest.mark.parametrize("seed", range(200))
def test_any_graph_is_taken_apart_as_in_rounds(seed: int) -> None:
    chosen, nodes = random.Random(seed), Nodes()
    count = chosen.randint(1, 40)
    for _ in range(count):
        kind = chosen.randint(0, 3)  # as many reads as the kind says, in any order for one of them
        nodes.add(kind, [chosen.randrange(count) for _ in range(kind)], kind == 2)
    assert classes(nodes) == in_rounds(nodes)


def test_a_ring_is_one_node() -> None:
    nodes = Nodes()
    for i in range(10):
        nodes.add("turn", [(i + 1) % 10])
    assert classes(nodes) == [0] * 10


def test_order_counts_unless_a_node_says_it_does_not() -> None:
    nodes = Nodes()
    a, b = nodes.add("a"), nodes.add("b")
    for unordered in (False, True):
        nodes.add(("op", unordered), [a, b], unordered)
        nodes.add(("op", unordered), [b, a], unordered)
    assert classes(nodes) == [0, 1, 2, 3, 4, 4]


def test_no_node_is_no_class() -> None:
    assert classes(Nodes()) == []


class Counted(list[int]):
    """What a node reads, and how often all nodes were asked."""

    asked = 0

    def __iter__(self) -> Iterator[int]:
        Counted.asked += 1
        return super().__iter__()


def test_a_delay_line_is_looked_at_a_few_times_a_node() -> None:
    count, nodes = 1_000, Nodes()
    nodes.add("new")
    for i in range(count):
        nodes.add("line", Counted([i]))
    Counted.asked = 0
    assert classes(nodes) == list(range(count + 1))
    assert Counted.asked <= 4 * count  # in rounds it is 500,000
