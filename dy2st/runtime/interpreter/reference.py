"""The reference: walk a Program op by op with `op.eval`, on NumPy or CuPy. `planned.py` is the fast form of the same.

At run time a tensor is an array (also in rank 0), a Python number is itself, a list is a Python list that nobody
changes, a variant is the pair (tag, payload).

    cond(pred, *operands)                       the predicate is a Python bool or a tensor of one element
    while_loop(pred, *carried, *invariants)     the body gives (pred, *carried)
    counted_while(n, *carried, *invariants)     the body takes (i, *carried, *invariants) and gives the carried values
    try(*operands)                              the body; on what it catches, the handler(*handed over, *operands)
    call(*operands)                             RecursionError when functions call each other too deeply
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType
from dy2st.kinds import is_tuple
from dy2st.ops.control.try_ import handed_over
from dy2st.ops.core.rounded import meaning
from dy2st.runtime.interpreter.error_locations import located, too_deep
from dy2st.runtime.interpreter.output_ownership import read_only, released


def evaluate(program: Program, inputs: Sequence[Any], xp: Any = np) -> list[Any]:
    """Run a Program on arrays, numbers, lists and variants; return the results of its entry function.

    An error that an op raises keeps its kind and ends at the line of the user's code that the op comes from.
    """
    with np.errstate(all="ignore"):
        results = run_block(program, program.block, list(inputs), xp)
    return [released(value) for value in results]


def run_block(program: Program, block: Block, arguments: Sequence[Any], xp: Any) -> list[Any]:
    """Run one block on the values of its arguments."""
    env: dict[Value, Any] = dict(zip(block.arguments, arguments, strict=True))
    for operation in block.operations:
        operands = [env[v] for v in operation.operands]
        try:
            results = _run(program, operation, operands, xp)
        except Exception as error:
            calling = operation.op.is_call
            raise located(error, operation.location, calling)  # noqa: B904  the same error
        for value, result in zip(operation.results, results, strict=True):
            env[value] = result
    return [env[v] for v in block.results]


def _run(program: Program, operation: Operation, operands: list[Any], xp: Any) -> Sequence[Any]:
    op = operation.op
    if op.is_branch:
        return run_block(program, operation.blocks[0 if operands[0] else 1], operands[1:], xp)
    if op.is_loop:
        return (_for if op.is_counted else _while)(program, operation, operands, xp)
    if op.is_try:
        return _try(program, operation, operands, xp)
    if op.is_call:
        return call(program, operation.attributes["function"], operands, xp)
    results = meaning(operation, xp)(*operands)
    if op.is_constant and isinstance(operation.results[0].type, TensorType):
        return (read_only(results),)
    if len(operation.results) == 1:
        return (_array(single(results), operation.results[0], xp),)
    return [_array(r, v, xp) for r, v in zip(results, operation.results, strict=True)]


def _try(program: Program, operation: Operation, operands: list[Any], xp: Any) -> list[Any]:
    body, handler = operation.blocks
    try:
        return run_block(program, body, operands, xp)
    except Exception as error:
        given = handed_over(error, **operation.attributes, count=len(handler.arguments) - len(operands))
        if given is None:
            raise
        return run_block(program, handler, [*given, *operands], xp)


def _while(program: Program, operation: Operation, operands: list[Any], xp: Any) -> list[Any]:
    n = operation.attributes["carried"]
    pred, carried, invariants = operands[0], operands[1 : n + 1], operands[n + 1 :]
    while pred:
        pred, *carried = run_block(program, operation.blocks[0], [*carried, *invariants], xp)
    return carried


def _for(program: Program, operation: Operation, operands: list[Any], xp: Any) -> list[Any]:
    n = operation.attributes["carried"]
    iterations, carried, invariants = range(operands[0]), operands[1 : n + 1], operands[n + 1 :]
    for i in reversed(iterations) if operation.attributes["reverse"] else iterations:
        carried = run_block(program, operation.blocks[0], [i, *carried, *invariants], xp)
    return carried


def call(program: Program, name: str, operands: list[Any], xp: Any) -> list[Any]:
    """Run a function of the Program."""
    try:
        return run_block(program, program.functions[name], operands, xp)
    except RecursionError as error:
        raise too_deep(error, name) from None


def single(result: Any) -> Any:
    """Return the one result of an op that gives a tuple because it may have several; a variant is a pair."""
    return result[0] if is_tuple(result) and len(result) == 1 else result


def _array(result: Any, value: Value, xp: Any) -> Any:
    """Return a tensor as an array: NumPy turns 0-D results into its scalars."""
    if isinstance(value.type, TensorType) and not isinstance(result, xp.ndarray):
        return xp.asarray(result)
    return result
