"""Compute what depends on constants alone, by `eval`, which is the meaning.

Before                                  After
    %a = scalar_constant {value=2}          %c = scalar_constant {value=6}
    %b = scalar_constant {value=3}          return %c
    %c = scalar_mul(%a, %b)
    return %c

1. An operation on constants with tensors and numbers as results becomes constants, when these are small and `eval` does
   not raise. Random ops and effects stay. Zeros and ones need no more than the shape, so what they are like may go.
2. An `assert` of a constant that is true goes.
3. A small constant that is an operand of a branch, or an invariant of a loop, is made inside the block instead, so that
   the block can be folded too.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.rounded import evaluate
from dy2st.passes.core.base import Pass
from dy2st.passes.core.rewrite import Replacements
from dy2st.shapes import product

_LARGEST = 4096
_LARGEST_COPIED = 16
_BITS = 512
_GROWS = ("scalar_pow", "scalar_lshift")


class FoldConstants(Pass):
    """Compute operations on constants while compiling."""

    name = "constant_fold"

    def apply(self, program: Program) -> bool:
        changed = False
        for function in program.functions.values():
            changed |= _Fold(function).block(function)
        return changed


class _Fold:
    def __init__(self, function: Block):
        self.function = function
        self.replacements = Replacements(function)

    def block(self, block: Block) -> bool:
        changed = False
        kept: list[Operation] = []
        for operation in block.operations:
            folded = self.folded(operation)
            changed |= folded is not None
            kept += [operation] if folded is None else folded
            changed |= _sink_constants(operation)
            for inner in operation.blocks:
                changed |= self.block(inner)
        block.operations[:] = kept
        return changed

    def folded(self, operation: Operation) -> list[Operation] | None:
        """Return constants for the results of an operation; None when it stays."""
        if not _may_fold(operation):
            return None
        values = self.evaluate(operation)
        if values is None:
            return None
        made = [_constant_operation(v, c, operation) for v, c in zip(operation.results, values, strict=True)]
        for value, one in zip(operation.results, made, strict=True):
            one.results, value.operation = [value], one
        return made

    def evaluate(self, operation: Operation) -> list[Any] | None:
        operands: list[Any] = [constant_of(v) for v in operation.operands]
        if operation.op.splat is not None:
            operands = [np.empty(tensor_type(v).shape, tensor_type(v).dtype.numpy) for v in operation.results]  # type: ignore[arg-type]
        try:
            with np.errstate(all="ignore"):
                made = evaluate(operation.op, np, operands, operation.attributes)
        except Exception:
            return None  # the run raises it, at the user's line, if it gets here
        results = operation.results
        several = cast("Any", made if len(results) != 1 or isinstance(made, tuple) else (made,))
        values = [_content(m, v) for m, v in zip(several, results, strict=True)]
        return values if all(self.fits(c, v) for c, v in zip(values, results, strict=True)) else None

    def fits(self, content: Any, value: Value) -> bool:
        """Return whether a constant may be what a value is; extents that are known now are written everywhere."""
        scalar = isinstance(value.type, ScalarType)
        if scalar and not isinstance(content, (bool, int, float)):
            return False
        if isinstance(content, int) and content.bit_length() > _BITS:
            return False
        if not scalar and cast("Any", content).size > _LARGEST:
            return False
        found = lookup("scalar_constant" if scalar else "constant").infer(value=content)
        if isinstance(found, tuple) or not self.replacements.unify(value.type, found):
            return False
        value.type = found
        return True


def _may_fold(operation: Operation) -> bool:
    op = operation.op
    if op.effect or op.blocks or op.is_constant or op.is_call or op.random:
        return False
    if op.splat is None and any(constant_of(v) is None for v in operation.operands):
        return False
    if op.name in _GROWS and not _is_modest(operation):
        return False
    return all(_is_small(v) for v in operation.results)


def _is_modest(operation: Operation) -> bool:
    """Return whether a power or shift of constants is a number of ordinary size."""
    return all(isinstance(c, float) or abs(c) <= 64 for c in map(constant_of, operation.operands))  # type: ignore[arg-type]


def _is_small(value: Value) -> bool:
    if isinstance(value.type, ScalarType):
        return True
    if not isinstance(value.type, TensorType):
        return False
    shape = value.type.shape  # of [0, n] the size is known, the shape is not
    return all(isinstance(extent, int) for extent in shape) and cast("int", product(shape)) <= _LARGEST


def constant_of(value: Value) -> Any:
    """Return the number or array that a value is known to be, else None."""
    operation = value.operation
    return operation.attributes["value"] if operation is not None and operation.op.is_constant else None


def _content(made: Any, value: Value) -> Any:
    """Return what a constant holds: a small array of its own, or a Python number."""
    return np.array(made) if isinstance(value.type, TensorType) else made


def _constant_operation(value: Value, content: Any, like: Operation) -> Operation:
    name = "constant" if isinstance(value.type, TensorType) else "scalar_constant"
    return Operation(lookup(name), [], {"value": content}, [], like.location)


def _sink_constants(operation: Operation) -> bool:
    """3."""
    if not operation.blocks or operation.op.is_try:
        return False
    iteration = int(operation.op.is_counted)
    changed = False
    for i in reversed(range(1 + operation.attributes.get("carried", 0), len(operation.operands))):
        content = constant_of(operation.operands[i])
        if content is None or (isinstance(content, np.ndarray) and content.size > _LARGEST_COPIED):
            continue
        source = operation.operands[i]
        del operation.operands[i]
        for block in operation.blocks:
            _make_inside(block, block.arguments.pop(i - 1 + iteration), source)
        changed = True
    return changed


def _make_inside(block: Block, argument: Value, source: Value) -> None:
    """Turn an argument of a block into a constant at its start."""
    operation = source.operation
    if operation is None:
        return
    copy = Operation(operation.op, [], dict(operation.attributes), [], operation.location)
    argument.operation, argument.type = copy, source.type
    copy.results = [argument]
    block.operations.insert(0, copy)
