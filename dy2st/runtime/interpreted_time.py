"""About how long the interpreter takes for a run, as far as a Program and its inputs tell before it.

It has to be the same on every machine, because it says which run is the first native one (automatic.py): it is
counted, not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Block, Operation, Program, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.shapes import Dim, Shape, product, substituted

_NANOSECONDS = {
    "erf": 90, "erfinv": 80, "gelu": 85, "lgamma": 140, "digamma": 95, "polygamma": 200, "softplus": 15,
    "random_normal": 35, "random_exponential": 20, "random_uniform": 7, "random_bernoulli": 8, "topk": 60, "sort": 6,
    "max_pool": 10, "avg_pool": 10,
}  # fmt: skip
"""What an element of the result costs where that is more than one nanosecond."""
_CONVOLUTIONS = ("conv", "conv_input_grad", "conv_weight_grad")
_NANOSECONDS_OF_CONVOLUTION = 1.5
"""What one of the `multiplications` of a convolution costs; NumPy copies windows for it."""


def steps(program: Program) -> float:
    """Return about how many operations a run takes; infinite where only the run tells."""
    return _steps(program.block)


def _steps(block: Block) -> float:
    total = 0.0
    for operation in block.operations:
        turns = 1.0
        if operation.op.name == "counted_while":
            count = operation.operands[0].operation
            known = count is not None and count.op.name == "scalar_constant"
            turns = float(count.attributes["value"]) if known and count is not None else math.inf
        elif operation.op.name in ("while_loop", "call"):
            turns = math.inf
        inner = sum(map(_steps, operation.blocks)) if operation.blocks else 0.0
        total += 1 + (turns * max(inner, 1.0) if operation.blocks or turns > 1 else 0.0)
    return total


def seconds_of_elements(program: Program, inputs: Sequence[Any]) -> float:
    """Return about how long the elements of all results of the entry function take; branches count once each."""
    known = bindings(program, inputs) or {}
    counts: dict[Shape, int] = {}
    nanoseconds = 0.0
    for operation in program.block.walk():
        if operation.op.name in _CONVOLUTIONS:
            nanoseconds += multiplications(operation, known) * _NANOSECONDS_OF_CONVOLUTION
        for value in operation.results:
            if isinstance(value.type, TensorType):
                shape = value.type.shape
                if shape not in counts:
                    counts[shape] = elements(shape, known)
                nanoseconds += counts[shape] * _NANOSECONDS.get(operation.op.name, 1)
    return nanoseconds * 1e-9


def multiplications(operation: Operation, known: Mapping[str, int]) -> float:
    """Return about how many multiplications a product takes: of m x k by k x n, the root of mk * kn * mn is mkn."""
    values = (*operation.operands[:2], operation.results[0])
    return math.sqrt(math.prod(elements(tensor_type(v).shape, known) for v in values))


def elements(shape: Shape, known: Mapping[str, int]) -> int:
    """Return how many elements a shape has; 0 where only the run tells."""
    count = product(tuple(substituted(extent, known) for extent in shape))
    return count if isinstance(count, int) else 0


def bindings(program: Program, inputs: Sequence[Any]) -> dict[str, int] | None:
    """Return what the symbols are in these inputs; None where they are not what the argument types say."""
    found: dict[str, int] = {}
    for t, value in zip(program.argument_types, inputs, strict=True):
        if isinstance(t, ScalarType) and t.extent is not None:
            wanted, given = (t.extent,), (value,)
        elif isinstance(t, TensorType):
            wanted, given = t.shape, np.shape(value)
        else:
            continue
        if len(given) != len(wanted):
            return None
        for declared, extent in zip(wanted, given, strict=True):
            if isinstance(declared, Dim) and declared.is_symbol:
                if found.setdefault(str(declared), extent) != extent:
                    return None
            elif isinstance(declared, int) and declared != extent:
                return None
    return found
