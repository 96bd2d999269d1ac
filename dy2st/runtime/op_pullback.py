"""The pull-back of one eager op, derived once per kind of call and then run as a small Program.

A kind is the op, its attributes, the dtypes and the pattern of the shapes (which extents are equal, which are 1), which
operands want a cotangent and which results have one. The Program takes what it uses of: operands, results, extents,
cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import pull_back
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder, Names
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type
from dy2st.ops.base import Op
from dy2st.runtime.compiled import Compiled
from dy2st.shapes import Dim, Extent, symbol

SMALL = 256  # elements
TEMPLATED = frozenset(("reshape", "broadcast", "sum_to"))
"""Ops of which the pull-back needs the shape that they had, not the one that they gave: one serves every target."""


class Ghost:
    """What the pull-back of a linear op needs of an operand: its shape and dtype, not its elements."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape = shape
        self.dtype = dtype


def ghost(x: Any) -> Any:
    """Return shape and dtype of an array; numbers and lists as they are.

    A small array that owns its memory stays as well: to let go of it is not worth the time.
    """
    if x.__class__ is np.ndarray and x.size <= SMALL and x.base is None:
        return x
    return Ghost(x.shape, x.dtype) if hasattr(x, "shape") else x


@dataclass(frozen=True)
class OpPullback:
    """`compiled` takes the arguments that `uses` names, then the cotangents; gives those of operands `found`."""

    compiled: Compiled
    uses: tuple[tuple[str, int, int], ...]
    """("operand", i, 0), ("result", i, 0) or ("extent", operand, axis)."""
    found: tuple[int, ...]


_CACHE: dict[Any, OpPullback] = {}


def op_pullback(
    op: Op,
    attributes: dict[str, Any],
    operands: Sequence[Any],
    results: Sequence[Any],
    wanted: tuple[int, ...],
    seeded: tuple[int, ...],
) -> OpPullback:
    """Return the pull-back for a call on these operands (arrays, ghosts, numbers)."""
    pattern = shape_pattern(operands)
    if op.name in TEMPLATED:
        attributes = {"shape": tuple(-1 if e == -1 else None for e in attributes["shape"])}
    key = (op.name, attribute_key(attributes), pattern, wanted, seeded)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _derive(op, attributes, operands, results, pattern, wanted, seeded)
    return found


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


def fresh_builder(pattern: tuple[Any, ...]) -> Builder:
    """Return a builder whose fresh symbols are none of those of a pattern."""
    return Builder(names=Names(sum(len(one[1]) for one in pattern if isinstance(one, tuple))))


def _derive(
    op: Op,
    attributes: dict[str, Any],
    operands: Sequence[Any],
    results: Sequence[Any],
    pattern: tuple[Any, ...],
    wanted: tuple[int, ...],
    seeded: tuple[int, ...],
) -> OpPullback:
    b = fresh_builder(pattern)
    arguments = [b.argument(operand_type(one)) for one in pattern]
    unknown = attributes["shape"].count(None) if op.name in TEMPLATED else 0
    targets = [b.argument(INT) for _ in range(unknown - len(arguments) + 1)]
    out = b.apply(op, [*arguments, *targets], attributes)
    outs: list[Value] = list(out) if isinstance(out, list) else [out]
    back = BackwardBuilder(b, None, {})
    places: dict[Value, tuple[str, int, int]] = {}
    for kind, values in (("operand", arguments), ("result", outs)):
        for i, value in enumerate(values):
            here = back.argument(value.type)
            back.rename(value, here)
            places[here] = (kind, i, 0)
    take_extents(back, arguments, b.block.operations, places)
    cts = [back.argument(outs[i].type) for i in seeded]
    given = dict(zip([outs[i] for i in seeded], cts, strict=True))
    pulled = pull_back(back, b.block, [arguments[i] for i in wanted], given)
    found = tuple(i for i in wanted if arguments[i] in pulled)
    if back.residuals:
        raise AutodiffError(f"the derivative of '{op.name}' needs a value that was not kept")
    back.block.results = [back.use(pulled[arguments[i]]) for i in found]
    used = drop_dead(back.block)
    kept = [a for a in places if a in used]
    back.block.arguments[:] = [*kept, *cts]
    return OpPullback(Compiled(Program({"main": back.block})), tuple(places[a] for a in kept), found)


def drop_dead(block: Block) -> set[Value]:
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


def take_extents(
    back: BackwardBuilder,
    arguments: Sequence[Value],
    forward: Sequence[Operation],
    places: dict[Value, tuple[str, int, int]],
) -> None:
    """Let extents come as numbers, so that no operand is kept for its shape alone."""
    back._extents.clear()
    numbers: dict[Extent, Value] = {}
    for i, argument in enumerate(arguments):
        if isinstance(argument.type, TensorType):
            for axis, extent in enumerate(argument.type.shape):
                if isinstance(extent, Dim) and extent not in numbers:
                    here = numbers[extent] = back.block.add_argument(ScalarType("int", extent))
                    back.provide(extent, here)
                    places[here] = ("extent", i, axis)
    for operation in forward:
        of = operation.results[0].type
        extent = of.extent if operation.name == "dim" and isinstance(of, ScalarType) else None
        if extent is not None and extent in numbers:
            back.rename(operation.results[0], numbers[extent])


def operand_type(one: Any) -> Type:
    """Return the type that an entry of a shape pattern stands for."""
    if isinstance(one, type):
        return {bool: ScalarType("bool"), int: INT, float: ScalarType("float")}[one]
    dtype, extents = one
    return TensorType(dtypes.dtype(dtype), tuple(1 if e < 0 else symbol(f"n{e}") for e in extents))
