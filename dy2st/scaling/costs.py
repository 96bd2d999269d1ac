"""What the operations of a Program cost: arithmetic, and bytes of results and of weights, for given extents.

matmul(%x: float32[N, 1176], %w: float32[1176, 10])     2 * N * 1176 * 10 flops, 4 * N * 10 bytes of results
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from dy2st.ir.opdef import entering
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.records import record
from dy2st.shapes import Extent, substituted, symbols_in


@record(frozen=True)
class Cost:
    """Of one operation; `weights` are the bytes of the state that it is the first to read."""

    name: str
    flops: int
    results: int
    """Bytes of the results, which training keeps for the derivative; none where the op makes only a view."""
    weights: int
    columns: int
    """Of a product with weights: into how many parts tensor parallelism can cut it at most; else 0."""
    alive: int
    """Bytes of what is made before its end and read after it, without weights: what a pipeline cut here sends."""


def costs_of(program: Program, inputs: int, extents: Mapping[str, int]) -> list[Cost]:
    """Return the cost of each operation, in order; the arguments behind the inputs are weights.

    `extents` are the symbols' values; ValueError names one that is missing. What is in loops and branches counts once.
    """
    return list(_Reading(extents).block(program.block, frozenset(program.block.arguments[inputs:])))


class _Reading:
    def __init__(self, extents: Mapping[str, int]):
        self._extents = extents
        self._read: set[Value] = set()

    def block(self, block: Block, weights: frozenset[Value]) -> Iterator[Cost]:
        last = {value: i for i, operation in enumerate(block.operations) for value in operation.operands}
        last.update(dict.fromkeys(block.results, len(block.operations)))
        alive: dict[Value, int] = {}
        for i, operation in enumerate(block.operations):
            if not operation.op.is_view:
                alive.update((v, self.bytes(v)) for v in operation.results)
            alive = {v: size for v, size in alive.items() if last.get(v, -1) > i}
            if operation.blocks:
                for inner in operation.blocks:
                    pairs = zip(reversed(inner.arguments), reversed(operation.operands), strict=False)
                    yield from self.block(inner, frozenset(a for a, operand in pairs if operand in weights))
                continue
            yield self._cost(operation, weights, sum(alive.values()))

    def _cost(self, operation: Operation, weights: frozenset[Value], alive: int) -> Cost:
        own = [v for v in operation.operands if v in weights and v not in self._read]
        self._read.update(own)
        results = 0 if operation.op.is_view else sum(map(self.bytes, operation.results))
        flops = _FLOPS.get(operation.op.name, _elements)(self, operation)
        has_matrix = operation.op.is_contraction and any(v in weights for v in operation.operands)
        columns = self.shape(operation.results[0])[_COLUMNS.get(operation.op.name, -1)] if has_matrix else 0
        return Cost(operation.op.name, flops, results, sum(map(self.bytes, own)), columns, alive)

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the extents of a tensor; () of anything else."""
        t = value.type
        return tuple(number_of(n, self._extents) for n in t.shape) if isinstance(t, TensorType) else ()

    def bytes(self, value: Value) -> int:
        """Return how many bytes a tensor has; 0 of anything else."""
        t = value.type
        return math.prod(self.shape(value)) * t.dtype.itemsize if isinstance(t, TensorType) else 0


def number_of(extent: Extent, extents: Mapping[str, int]) -> int:
    """Return what an extent is where its symbols have values; ValueError names those that have none."""
    found = substituted(extent, extents)
    if isinstance(found, int):
        return found
    missing = ", ".join(sorted(symbols_in(found)))
    raise ValueError(f"the extent {missing} is not known: say what it is to be, as --extent NAME=NUMBER")


_FLOPS: dict[str, Callable[[_Reading, Operation], int]] = {}
_flops = entering(_FLOPS)
_COLUMNS = {"conv": 1}
"""The axis of the result that the weights' columns make, where it is not the last one."""


@_flops("matmul")
def _matmul(reading: _Reading, operation: Operation) -> int:
    x = reading.shape(operation.operands[0])
    return 2 * math.prod(reading.shape(operation.results[0])) * x[-2 if operation.attributes["transpose_x"] else -1]


@_flops("conv")
def _conv(reading: _Reading, operation: Operation) -> int:
    return 2 * math.prod(reading.shape(operation.results[0])) * math.prod(reading.shape(operation.operands[1])[1:])


@_flops("attention")
def _attention(reading: _Reading, operation: Operation) -> int:
    q, k, v = map(reading.shape, operation.operands[:3])
    return 2 * math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


def _elements(reading: _Reading, operation: Operation) -> int:
    return 0 if operation.op.is_view else sum(math.prod(reading.shape(v)) for v in operation.results)


def symbols_of(values: Sequence[Value]) -> list[str]:
    """Return the symbols in the shapes of tensors, in order."""
    shapes = [v.type.shape for v in values if isinstance(v.type, TensorType)]
    return list(dict.fromkeys(name for shape in shapes for extent in shape for name in sorted(symbols_in(extent))))
