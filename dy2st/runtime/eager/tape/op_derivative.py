"""What every derivative of one eager op starts from: the op on placeholders, and a builder beside it.

The pull-back (`op_vjp.py`) and the tangents or Taylor coefficients (`op_taylor.py`) of an
op are small Programs, each derived once per kind of call. A kind is the op, its attributes, the dtypes and the pattern
of the shapes: which extents are equal, which are 1. A Program takes what it uses of a node: operands, results, extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.ir.builder import Builder, Names
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type
from dy2st.ops.core.base import Op
from dy2st.runtime.executor.executable import Compiled
from dy2st.shapes import Dim, Extent, symbol

TEMPLATED = frozenset(("reshape", "broadcast", "sum_to"))
"""Ops of which the pull-back needs the shape that they had, not the one that they gave: one serves every target."""

Place = tuple[str, int, int]
"""A part of a node: ("operand" or "result", which, 0), or ("extent" or "result extent", of which, axis)."""


class OpDerivation:
    """One op applied to arguments of a shape pattern, and the builder of what is derived from that."""

    def __init__(self, op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...]):
        b = Builder(names=Names(sum(len(one[1]) for one in pattern if isinstance(one, tuple))))
        self.block = b.block
        self.arguments = [b.argument(_type_of(one)) for one in pattern]
        unknown = attributes["shape"].count(None) if op.name in TEMPLATED else 0
        targets = [b.argument(INT) for _ in range(unknown - len(self.arguments) + 1)]
        out = b.apply(op, [*self.arguments, *targets], attributes)
        self.outs: list[Value] = list(out) if isinstance(out, list) else [out]
        self.builder = BackwardBuilder(b, None, {})
        self._places: dict[Value, Place] = {}
        for kind, values in (("operand", self.arguments), ("result", self.outs)):
            for i, value in enumerate(values):
                here = self.builder.argument(value.type)
                self.builder.rename(value, here)
                self._places[here] = (kind, i, 0)
        self._take_extents()

    def _take_extents(self) -> None:
        """Let extents come as numbers, so that no operand is kept for its shape alone."""
        self.builder._extents.clear()
        numbers: dict[Extent, Value] = {}
        for i, argument in enumerate(self.arguments):
            for axis, extent in enumerate(argument.type.shape if isinstance(argument.type, TensorType) else ()):
                if isinstance(extent, Dim) and extent not in numbers:
                    numbers[extent] = self._provide(extent, ("extent", i, axis))
        for operation in self.block.operations:
            of = operation.results[0].type
            extent = of.extent if operation.name == "dim" and isinstance(of, ScalarType) else None
            if extent is not None and extent in numbers:
                self.builder.rename(operation.results[0], numbers[extent])

    def take_result_extents(self) -> None:
        """Let the extents of results that only the run tells come as numbers too."""
        seen = {e for a in self.arguments if isinstance(a.type, TensorType) for e in a.type.shape}
        for i, out in enumerate(self.outs):
            for axis, extent in enumerate(out.type.shape if isinstance(out.type, TensorType) else ()):
                if isinstance(extent, Dim) and extent.is_symbol and extent not in seen:
                    seen.add(extent)
                    self._provide(extent, ("result extent", i, axis))

    def _provide(self, extent: Dim, place: Place) -> Value:
        here = self.builder.block.add_argument(ScalarType("int", extent))
        self.builder.provide(extent, here)
        self._places[here] = place
        return here

    def close(self, entering: Sequence[Value]) -> tuple[Compiled, tuple[Place, ...]]:
        """Return the Program of what was built, and the parts of a node that it takes before what is `entering`."""
        self._fill_by_extents()
        block = self.builder.block
        used = _drop_dead(block)
        kept = [a for a in self._places if a in used]
        block.arguments[:] = [*kept, *entering]
        return Compiled(Program({"main": block})), tuple(self._places[a] for a in kept)

    def _fill_by_extents(self) -> None:
        """Make zeros (and ones) like an operand or result of its extents: the tape need not have its elements."""
        b, block, filled = self.builder, self.builder.block, dict[Value, Value]()
        operations, block.operations = block.operations, []
        for operation in operations:
            operation.operands = [filled.get(v, v) for v in operation.operands]
            number = _FILLED_WITH.get(operation.op.name)
            like = operation.operands[0] if number is not None else None
            if like is None or like not in self._places or not isinstance(like.type, TensorType):
                b.adopt(operation)
                continue
            element = b.emit("constant", [], {"value": np.full((), number, like.type.dtype.numpy)})  # here, not shared
            made = b.shaped("full", [element], b.shape(like))
            filled[operation.results[0]] = made
        block.results = [filled.get(v, v) for v in block.results]


def attribute_key(attributes: dict[str, Any]) -> Any:
    """Return the attributes of an op as a key of a cache."""
    return tuple(sorted(attributes.items()))


def shape_pattern(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return dtypes and shapes with equal extents named alike: (3, 1, 5), (5,) -> (n0, 1, n1), (n1,)."""
    names: dict[int, int] = {1: -1}
    return tuple(
        type(x) if isinstance(x, (bool, int, float))
        else (x.dtype, tuple(names.setdefault(e, len(names) - 1) for e in x.shape))
        for x in operands
    )  # fmt: skip


_FILLED_WITH = {"zeros_like": 0, "ones_like": 1}


def _drop_dead(block: Block) -> set[Value]:
    """Drop operations whose results nobody uses; return the values that are used."""
    used, kept = set(block.results), []
    for operation in reversed(block.operations):
        op = operation.op
        raises = op.can_raise([v.type for v in operation.operands], operation.attributes)
        if op.effect or raises or not used.isdisjoint(operation.results):
            used.update(operation.operands)
            kept.append(operation)
    block.operations[:] = reversed(kept)
    return used


def _type_of(one: Any) -> Type:
    """Return the type that an entry of a shape pattern stands for."""
    if isinstance(one, type):
        return {bool: ScalarType("bool"), int: INT, float: ScalarType("float")}[one]
    dtype, extents = one
    return TensorType(dtypes.dtype(dtype), tuple(1 if e < 0 else symbol(f"n{e}") for e in extents))
