"""Copies of Programs and blocks; closed blocks make a copy simple: nothing refers outside."""

from __future__ import annotations

from collections.abc import Callable

from dy2st.ir.program import Block, Operation, Program, Value


def clone_program(program: Program) -> Program:
    """Return a Program of its own with the same functions."""
    copy = Program({name: clone_block(block) for name, block in program.functions.items()}, program.entry)
    copy.renewed, copy.kept = program.renewed, program.kept
    return copy


def clone_block(block: Block, mapping: dict[Value, Value] | None = None) -> Block:
    """Return a copy of a closed block; `mapping` receives old value -> new value."""
    mapping = {} if mapping is None else mapping
    copy = Block()
    for argument in block.arguments:
        mapping[argument] = copy.add_argument(argument.type, argument.name)
    for operation in block.operations:
        copy.operations.append(clone_operation(operation, copy, mapping))
    copy.results = [mapping[v] for v in block.results]
    return copy


def clone_operation(
    operation: Operation,
    into: Block,
    mapping: dict[Value, Value],
    of_block: Callable[[Block], Block] = clone_block,
) -> Operation:
    """Return a copy of an operation whose operands are mapped, its blocks copied by `of_block`.

    Its results enter the mapping.
    """
    copy = Operation(
        operation.op,
        [mapping[v] for v in operation.operands],
        dict(operation.attributes),
        [of_block(b) for b in operation.blocks],
        operation.location,
    )
    for result in operation.results:
        made = Value(result.type, into, copy, result.name)
        copy.results.append(made)
        mapping[result] = made
    return copy
