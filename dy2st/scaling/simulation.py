"""A training step on many ranks: time, memory and traffic of a rank, for four ways to spread it.

    data        each rank has the whole model and a batch of its own; gradients are summed while backward runs
    sharded     the same, with gradients and the optimizer's state divided: reduce-scatter, then all-gather of weights
    tensor      products with weights are cut by columns, then by rows: results are summed after every second product
    pipeline    each rank has some operations in a row, and the batch goes through in micro-batches

A collective over n ranks is a ring: an all-reduce of b bytes sends 2 b (n - 1) / n in 2 (n - 1) messages. The
backward of a product costs two products, so a step is a third forward and two thirds backward.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

from dy2st.records import record
from dy2st.scaling.costs import Cost

ADAM = 2
"""Numbers that the optimizer keeps for each weight."""


@record(frozen=True)
class Link:
    """What connects two ranks: seconds of a message, and bytes a second."""

    latency: float
    bandwidth: float

    def ring(self, size: float, ranks: int, rounds: int) -> float:
        """Return the seconds of rounds of a ring: one is a reduce-scatter or an all-gather, two are an all-reduce."""
        return rounds * (ranks - 1) * (self.latency + size / ranks / self.bandwidth)


@record(frozen=True)
class Workload:
    """A step of one rank: its operations, and the seconds that the step takes alone."""

    costs: Sequence[Cost]
    seconds: float
    micro_batches: int = 8

    @property
    def weights(self) -> int:
        """Bytes of the weights."""
        return sum(c.weights for c in self.costs)

    @property
    def kept(self) -> int:
        """Bytes that forward leaves for backward."""
        return sum(c.results for c in self.costs)


@record(frozen=True)
class Outlook:
    """A step on so many ranks. `samples` are batches of one rank, each step, that all ranks have done together."""

    ranks: int
    seconds: float
    memory: float
    """Bytes of the rank that has most."""
    traffic: float
    """Bytes that a rank sends."""
    samples: float
    efficiency: float
    """Samples a second and rank, beside those of one rank."""


def outlook(strategy: str, work: Workload, link: Link, ranks: int) -> Outlook | None:
    """Return what to expect; None where the strategy cannot use so many ranks."""
    if strategy not in STRATEGIES:
        raise ValueError(f"{strategy!r} is none of {', '.join(STRATEGIES)}")
    found = STRATEGIES[strategy](work, link, ranks)
    if found is None:
        return None
    seconds, memory, traffic, samples = found
    return Outlook(ranks, seconds, memory, traffic, samples, samples / ranks * work.seconds / seconds)


_Found = tuple[float, float, float, float]


def _data(work: Workload, link: Link, n: int) -> _Found:
    seconds = work.seconds / 3 + max(work.seconds * 2 / 3, link.ring(work.weights, n, 2))
    return seconds, (2 + ADAM) * work.weights + work.kept, 2 * work.weights * (n - 1) / n, n


def _sharded(work: Workload, link: Link, n: int) -> _Found:
    one = link.ring(work.weights, n, 1)  # gathered before forward, scattered under backward
    seconds = max(work.seconds / 3, one) + max(work.seconds * 2 / 3, one)
    memory = work.weights + (1 + ADAM) * work.weights / n + work.kept
    return seconds, memory, 2 * work.weights * (n - 1) / n, n


def _tensor(work: Workload, link: Link, n: int) -> _Found | None:
    products = [c for c in work.costs if c.columns]
    if n > min((c.columns for c in products), default=1):
        return None
    summed = [c.results for c in products[1::2]]
    total = sum(c.flops for c in work.costs) or 1
    share = sum(c.flops for c in products) / total
    both = 2 * sum(link.ring(size, n, 2) for size in summed)  # backward sums as much again; nothing runs meanwhile
    whole = sum(c.results for c in work.costs if not c.columns)
    memory = (2 + ADAM) * work.weights / n + whole + (work.kept - whole) / n
    seconds = work.seconds * (share / n + 1 - share) + both
    return seconds, memory, 4 * sum(summed) * (n - 1) / n, 1


def _pipeline(work: Workload, link: Link, n: int) -> _Found | None:
    stages = cut(work.costs, n)
    if stages is None:
        return None
    total = sum(c.flops for c in work.costs) or 1
    m = work.micro_batches
    slowest = max(sum(c.flops for c in stage) for stage in stages) / total * work.seconds
    sent = [stage[-1].alive for stage in stages[:-1]]
    turn = slowest / m + 2 * max((link.latency + size / m / link.bandwidth for size in sent), default=0.0)
    memory = max((2 + ADAM) * sum(c.weights for c in s) + sum(c.results for c in s) for s in stages)
    return (m + n - 1) * turn, memory, 2 * max(sent, default=0), 1


def cut(costs: Sequence[Cost], stages: int) -> list[Sequence[Cost]] | None:
    """Cut operations in order into stages whose slowest is as fast as can be; None where there are too few."""
    if stages > len(costs):
        return None
    ends = list(accumulate(c.flops for c in costs))
    low, high = max((c.flops for c in costs), default=0), ends[-1] if ends else 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(_cuts(ends, middle)) <= stages else (middle + 1, high)
    places = _cuts(ends, low)
    for i in range(len(costs) - 1, 0, -1):  # stages that the bound leaves over take what costs nothing
        if len(places) < stages and i not in places:
            places.append(i)
    places = sorted(places)
    return [costs[a:b] for a, b in zip(places, [*places[1:], len(costs)], strict=True)]


def _cuts(ends: Sequence[int], most: int) -> list[int]:
    """Return where stages begin, each taking as much as the bound allows."""
    places, done = [0], 0
    while done + most < ends[-1]:
        place = bisect_left(ends, done + most + 1)
        done = ends[place - 1]
        places.append(place)
    return places


STRATEGIES: dict[str, Callable[[Workload, Link, int], _Found | None]] = {
    "data": _data, "sharded": _sharded, "tensor": _tensor, "pipeline": _pipeline,
}  # fmt: skip
