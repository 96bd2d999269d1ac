"""Repeat a number where it is read, and not an array of one number: a loop nest then has it in a register.

Before                                              After
    %c = constant() {value=float32[64, 8](0.9, ...)}    %n = constant() {value=float32[](0.9)}
                                                        %c = broadcast(%n) {shape=(64, 8)}
    %m = mul(%moment, %c)                               %m = mul(%moment, %c)

Folding makes such arrays, one for each shape, of the numbers in an optimizer's update.

1. All elements have the same bits, and there are more than a few: those are in registers as they are.
2. Elementwise operations read it; what else reads it would need all of it in memory, where it stands already.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ops.core.constant import Constant
from dy2st.passes.core.base import Pass, each_block

_FEW = 16


class BroadcastConstants(Pass):
    """Let elementwise operations read a repeated number instead of an array that has one number only."""

    name = "broadcast_constants"

    def apply(self, program: Program) -> bool:
        return each_block(program, _spread)


def _spread(block: Block) -> bool:
    even = {v for o in block.operations if _is_even(o) for v in o.results}
    readers = {o for o in block.operations if o.op.elementwise and even.intersection(o.operands)}
    if not readers:
        return False
    spread: dict[Value, Value] = {}
    operations, block.operations = block.operations, []
    b = Builder(block)
    for operation in operations:
        if operation in readers:  # 2
            b.location = operation.location
            for value in operation.operands:
                if value in even and value not in spread:
                    spread[value] = _repeated(b, cast("Operation", value.operation))
            operation.operands = [spread.get(v, v) for v in operation.operands]
        b.adopt(operation)
    return True


def _is_even(operation: Operation) -> bool:
    """1."""
    if not isinstance(operation.op, Constant):
        return False
    content: np.ndarray[Any, Any] = operation.attributes["value"]
    return content.size > _FEW and content.tobytes() == content.flat[0].tobytes() * content.size


def _repeated(b: Builder, constant: Operation) -> Value:
    """Emit the number of a constant, repeated."""
    content: np.ndarray[Any, Any] = constant.attributes["value"]
    number = b.emit("constant", [], {"value": np.array(content.flat[0])})
    return b.emit("broadcast", [number], {"shape": content.shape})
