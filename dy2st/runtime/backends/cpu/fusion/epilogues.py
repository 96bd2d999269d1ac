"""Loop nests that run on parts of a product or convolution while these are in cache.

    %z = matmul(%x, %w)                    %y = relu of %z + %b, in the memory of %z, as parts of %z are finished
    %y = relu(%z + %b)          becomes

1. The nest is elementwise: a row of it is one of the product, and operands vary along whole rows or not at all. Those
   of a convolution are the places of a channel. No other operand is as large as the product: parts of one that comes
   from memory are read more slowly than all of it.
2. The product runs where its nest does, so nobody between them reads it, or would see that it does not raise.
3. What is known to be small stays in cache anyhow.
4. Next values of parameters are made by the last nests, which write them into the memory of the values before
   (buffer_donation.py): a third less time than a product's parts, into new memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, Value, tensor_type
from dy2st.ops.indexing.class_indices import KeepAt
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.linalg.quantized import QuantizedMatMul
from dy2st.ops.nn.conv import Conv
from dy2st.records import record
from dy2st.runtime.backends.cpu.fusion.index_maps import FusedGroup, even
from dy2st.runtime.backends.cpu.fusion.observable_effects import can_raise, is_observed
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import in_register, is_small

_SMALL = 1 << 14
"""So many elements are in cache when the product is done."""
_LEAST_ROW = 16
"""Shorter rows are not worth a function that runs row by row."""


@record(eq=False)
class Epilogue:
    """A product, and what is done with it."""

    product: Operation
    group: FusedGroup
    results: list[Value]

    @property
    def made(self) -> Value:
        """The result of the product."""
        return self.product.results[0]

    @property
    def operands(self) -> list[Value]:
        """What both read."""
        return list(dict.fromkeys(v for v in (*self.product.operands, *self.group.operands) if v is not self.made))


def with_epilogues(
    steps: Sequence[Operation | FusedGroup],
    results: Sequence[Value],
    apart: Collection[Operation],
    last: Collection[Value],
) -> list[Operation | FusedGroup | Epilogue]:
    """Return the steps of a block with nests put to the products that they read.

    Products `apart` stay by themselves, and so do nests that make one of the values `last`.
    """
    readers: dict[Value, list[int]] = {}
    for at, step in enumerate(steps):
        for value in step.operands:
            readers.setdefault(value, []).append(at)
    found: list[Operation | FusedGroup | Epilogue] = list(steps)
    makers = {v: at for at, step in enumerate(steps) if isinstance(step, Operation) for v in step.results}
    moved: set[int] = set()
    for at, step in enumerate(steps):
        if not isinstance(step, FusedGroup) or not _is_elementwise(step) or any(v in last for v in step.results):  # 4
            continue
        for value in reversed(step.operands):
            place = makers.get(value, at)
            product = steps[place]
            if (
                place in moved or not isinstance(product, Operation) or product in apart
                or not _follows(step, product) or not _may_wait(product, place, at, steps, readers)
            ):  # fmt: skip
                continue
            step.outer = _outer(product.op) % len(step.space)
            others = readers[value] != [at] or value in results
            found[at] = Epilogue(product, step, [*step.results, *([value] if others else [])])
            moved.add(place)
            break
    return [step for at, step in enumerate(found) if at not in moved]


def _is_elementwise(group: FusedGroup) -> bool:
    return group.outer is None and not any(map(_is_apart, group.members)) and bool(group.results)


def _outer(op: OpDef) -> int:
    """Return the axis that parts of a product begin with."""
    return 2 if isinstance(op, Conv) else -1


def _is_apart(operation: Operation) -> bool:
    op = operation.op
    return bool(op.monoid) or op.random_elementwise or op.is_gather or isinstance(op, KeepAt)


def _follows(group: FusedGroup, product: Operation) -> bool:
    """Return whether a nest can run on parts of a product. 1, 3."""
    if not isinstance(product.op, (MatMul, Conv, QuantizedMatMul)):
        return False
    (value,), t = product.results, tensor_type(product.results[0])
    outer, rank = _outer(product.op) % t.rank, t.rank
    native = ("float32",) if isinstance(product.op, QuantizedMatMul) else ("float32", "float64")
    if t.dtype.name not in native or t.shape != group.space or rank <= outer:
        return False
    if any(in_register(v.type) or is_small(v.type) for v in (*product.operands, value)):
        return False
    row = [e for e in t.shape[outer:] if isinstance(e, int)]
    known = [e for e in t.shape if isinstance(e, int)]
    if len(row) == rank - outer and math.prod(row) < _LEAST_ROW:
        return False
    if len(known) == rank and math.prod(known) <= _SMALL:
        return False
    whole = tuple(range(rank))
    if group.maps[value] != whole or any(group.maps[v] != whole for v in group.results):
        return False
    if any(group.maps.get(v) == whole for v in group.operands if v is not value):
        return False
    return all(even(m, outer, t.shape) for m in group.maps.values())


def _may_wait(
    product: Operation, place: int, at: int, steps: Sequence[Operation | FusedGroup], readers: dict[Value, list[int]]
) -> bool:
    """2."""
    if readers[product.results[0]][0] != at:
        return False
    between = [s for s in steps[place + 1 : at] if isinstance(s, Operation)]
    return not can_raise(product) or not any(is_observed(s) for s in between)
