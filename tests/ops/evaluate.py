"""Run a block operation by operation, and push tangents through one: the least that rules need to be tested."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.dtypes import of_array
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Value
from dy2st.ir.types import ListType, ScalarType, TensorType, Type, is_differentiable
from dy2st.ops.core.rounded import meaning
from dy2st.shapes import symbol


def run(block: Block, arguments: list[Any], xp: Any = np) -> list[Any]:
    """Return the results of `block`, computed by the ops' `eval`."""
    known: dict[Value, Any] = dict(zip(block.arguments, arguments, strict=True))
    with np.errstate(all="ignore"):
        for operation in block.operations:
            results = meaning(operation, xp)(*(known[v] for v in operation.operands))
            known.update(zip(operation.results, as_list(results, operation.results), strict=True))
    return [known[v] for v in block.results]


def as_list(results: Any, like: list[Value]) -> list[Any]:
    """Return an op's results, or what a rule says of them, as a list."""
    return [results] if len(like) == 1 and not isinstance(results, list) else list(results)


def type_of(value: Any, symbolic: bool = False, known: slice = slice(0)) -> Type:
    """Return the type of an array, number or list.

    `symbolic` names equal extents (but 1) by equal symbols, except for those of the axes `known`.
    """
    if isinstance(value, np.ndarray):
        kept = range(value.ndim)[known]
        extents = enumerate(value.shape)
        shape = tuple(symbol(f"E{e}") if symbolic and e != 1 and i not in kept else e for i, e in extents)
        return TensorType(of_array(value), shape)
    if isinstance(value, list):
        return ListType(type_of(value[0], True))
    return ScalarType(type(value).__name__, value if type(value) is int and not symbolic else None)


def emit(b: Builder, op: OpDef, operands: list[Value], attributes: dict[str, Any]) -> list[Value]:
    """Emit an op and return its results as a list."""
    return b.operation(op, operands, attributes).results


def tangent_block(block: Block) -> Block:
    """Return the block (arguments, tangents of the differentiable ones) -> tangents of the differentiable results."""
    b = Builder()
    primal = {v: b.argument(v.type) for v in block.arguments}
    tangent: dict[Value, Value | None] = {}
    for v in block.arguments:
        tangent[v] = b.argument(v.type) if is_differentiable(v.type) else None
    for operation in block.operations:
        operands = [primal[v] for v in operation.operands]
        outs = emit(b, operation.op, operands, operation.attributes)
        primal.update(zip(operation.results, outs, strict=True))
        tangents = [tangent.get(v) for v in operation.operands]
        moved: list[Value | None] = [None] * len(outs)
        if operation.op.differentiable and any(t is not None for t in tangents):
            moved = as_list(operation.op.jvp(b, operands, tangents, outs, **operation.attributes), outs)
        tangent.update(zip(operation.results, moved, strict=True))
    for v in block.results:
        if is_differentiable(v.type):
            found = tangent.get(v)
            b.block.results.append(b.zeros_like(primal[v]) if found is None else found)
    return b.block
