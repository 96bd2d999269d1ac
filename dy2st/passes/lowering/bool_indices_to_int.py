"""Make ints of bools that say a place in a list or a tensor, as Python does: `items[flag]` is item 0 or 1.

Before                                              After
    %y: float32[] = list_get(%l, %flag)                 %i: int = scalar_int(%flag)
                                                        %y: float32[] = list_get(%l, %i)

Native code has bools and ints in registers of different widths, and all that reads places reads ints.
"""

from __future__ import annotations

from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import INT, ScalarType
from dy2st.passes.core.base import Pass, each_block


class BoolIndicesToInt(Pass):
    """Give ops that take places ints."""

    name = "bool_indices_to_int"

    def apply(self, program: Program) -> bool:
        return each_block(program, _change)


def _change(block: Block) -> bool:
    made: dict[Value, Operation] = {}
    operations: list[Operation] = []
    for operation in block.operations:
        places = operation.op.places
        for i in range(len(operation.operands))[places]:
            value = operation.operands[i]
            if isinstance(value.type, ScalarType) and value.type.kind == "bool":
                if value not in made:
                    made[value] = _as_int(value, block, operation)
                    operations.append(made[value])
                operation.operands[i] = made[value].results[0]
        operations.append(operation)
    block.operations = operations
    return bool(made)


def _as_int(value: Value, block: Block, near: Operation) -> Operation:
    made = Operation(lookup("scalar_int"), [value], {}, [], near.location)
    made.results.append(Value(INT, block, made))
    return made
