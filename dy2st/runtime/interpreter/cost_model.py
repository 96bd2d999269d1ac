"""About how long the interpreter takes for a run, as far as a Program and its inputs tell before it.

It has to be the same on every machine, because it says which run is the first native one (tiering.py): it is
counted, not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op
from dy2st.ops.linalg.matmul import MatMul, MatMulAdd
from dy2st.ops.linalg.quantized import QuantizedMatMul
from dy2st.ops.nn.conv import Conv, ConvInputGrad, ConvWeightGrad
from dy2st.ops.shape.shape import Broadcast
from dy2st.runtime.interpreter.trip_count import KnownNumbers
from dy2st.shapes import Dim, Shape, product, substituted

_FEW = 2**18
_OF_FEW, _OF_MANY = 0.4, 1.0
"""Nanoseconds of an element of `_FEW` at most, which stay in the cache, and of others."""
_STEP = 1000
"""What an operation costs beside its elements."""
_NANOSECONDS_OF_PRODUCT = 0.005
"""What one of the `multiplications` of a product costs more than in native code."""
_NANOSECONDS_OF_CONVOLUTION = 1.5
"""What one of the `multiplications` of a convolution costs; NumPy copies windows for it."""


def seconds(program: Program, inputs: Sequence[Any]) -> float:
    """Return about how long a run takes; infinite where it is known only at run time how many iterations a loop may
    run.

    Branches count once each. Elements count where extents of inputs tell how many there are.
    """
    symbols = bindings(program, inputs)
    if symbols is None:
        return math.inf if any(operation.op.is_loop for operation in program.walk()) else 0.0
    return _Run(KnownNumbers(program, inputs, symbols)).nanoseconds(program.block) * 1e-9


class _Run:
    """What is known of a run before it."""

    def __init__(self, numbers: KnownNumbers):
        self._numbers = numbers
        self._counts: dict[Shape, int] = {}
        self._sizes: dict[Value, int] = {}
        """How many elements there are, at most, of a tensor of which the shape does not tell."""

    def nanoseconds(self, block: Block) -> float:
        return sum(map(self._of_operation, block.operations))

    def _of_operation(self, operation: Operation) -> float:
        op = operation.op
        if operation.blocks:
            return _STEP + self._of_blocks(operation)
        total = math.inf if op.is_call else float(_STEP)
        if isinstance(op, (Conv, ConvInputGrad, ConvWeightGrad)):
            total += multiplications(operation, self._numbers.symbols) * _NANOSECONDS_OF_CONVOLUTION
        if isinstance(op, (MatMul, MatMulAdd, QuantizedMatMul)):
            total += math.sqrt(math.prod(map(self._size, _matrices(operation)))) * _NANOSECONDS_OF_PRODUCT
        most = max(map(self._size, operation.operands), default=0)
        for value in operation.results:
            if isinstance(value.type, TensorType):
                self._sizes[value] = self._elements(value.type.shape) or most
                total += 0 if gives_view(operation) else self._sizes[value] * _nanoseconds(op, self._sizes[value])
        return total

    def _of_blocks(self, operation: Operation) -> float:
        if operation.op.is_loop:
            iterations, carried = self._numbers.iterations(operation), operation.attributes["carried"]
            (body,), enter = operation.blocks, operation.operands[1:]
            inside = body.arguments[len(body.arguments) - len(enter) :]
            self._enter(inside, enter)
            self._numbers.note(inside[carried:], enter[carried:])
            self._enter(operation.results, enter[:carried])
            return iterations * (_STEP + self.nanoseconds(body)) if iterations else 0.0
        for block in operation.blocks:
            if len(block.arguments) == len(operation.operands) - 1:
                self._enter(block.arguments, operation.operands[1:])
        return sum(map(self.nanoseconds, operation.blocks))

    def _enter(self, values: Sequence[Value], operands: Sequence[Value]) -> None:
        """Note the sizes of values that are what operands are, and their extents, at the beginning at least."""
        symbols = self._numbers.symbols
        for value, operand in zip(values, operands, strict=True):
            if not isinstance(value.type, TensorType) or not isinstance(operand.type, TensorType):
                continue
            self._sizes[value] = self._size(operand)
            for extent, given in zip(value.type.shape, operand.type.shape, strict=False):
                if isinstance(extent, Dim) and extent.is_symbol and str(extent) not in symbols:
                    known = self._numbers.extent(given)
                    if known is not None:
                        symbols[str(extent)] = known

    def _size(self, value: Value) -> int:
        if not isinstance(value.type, TensorType):
            return 0
        return self._elements(value.type.shape) or self._sizes.get(value, 0)

    def _elements(self, shape: Shape) -> int:
        found = self._counts.get(shape, 0)
        if not found:
            extents = [self._numbers.extent(extent) for extent in shape]
            found = self._counts[shape] = math.prod(e or 0 for e in extents)
        return found


def _nanoseconds(op: OpDef, count: int) -> float:
    if op.nanoseconds is not None:
        return op.nanoseconds
    return _OF_FEW if count <= _FEW else _OF_MANY


def gives_view(operation: Operation) -> bool:
    """Return whether an operation gives a view of its first operand, as plans run it."""
    op = operation.op
    return isinstance(op, Broadcast) or (isinstance(op, Op) and op.makes_view(**operation.attributes))


def _matrices(operation: Operation) -> list[Value]:
    return [*operation.operands[:2], operation.results[0]]


def multiplications(operation: Operation, known: Mapping[str, int]) -> float:
    """Return about how many multiplications a product takes: of m x k by k x n, the root of mk * kn * mn is mkn."""
    return math.sqrt(math.prod(elements(tensor_type(v).shape, known) for v in _matrices(operation)))


def elements(shape: Shape, known: Mapping[str, int]) -> int:
    """Return how many elements a shape has; 0 where it is known only at run time."""
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
