"""The derivatives of one eager op: its VJP, and its tangents or more Taylor coefficients, as small Programs.

Each is derived once per kind of call, by the rules that derive whole Programs (dy2st/autodiff). A kind is the op, its
attributes, the dtypes and the pattern of the shapes (which extents are equal, which are 1), and what is asked for. A
Program takes what it uses of a node (operands, results, extents), then the cotangents or coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.autodiff.forward import Given, JetBuilder, found_in
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import pull_back
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder, Names
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import INT, ScalarType, TensorType, Type
from dy2st.ops.core.base import Op
from dy2st.ops.shape.shape import Broadcast, DimOf, Reshape, SumTo
from dy2st.records import record
from dy2st.runtime.executor.executable import Compiled
from dy2st.shapes import Dim, Extent, symbol

Place = tuple[str, int, int]
"""A part of a node: ("operand" or "result", which, 0), or ("extent" or "result extent", of which, axis)."""
SMALL = 256  # elements


class Ghost:
    """What the VJP of a linear op needs of an operand: its shape and dtype, not its elements."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape = shape
        self.dtype = dtype


def ghost(x: Any) -> Any:
    """Return shape and dtype of an array; numbers and lists as they are.

    A small array that owns its memory stays as well: to let go of it is not worth the time.
    """
    if x.__class__ is np.ndarray and x.size <= SMALL and x.base.__class__ is not np.ndarray:
        return x
    return Ghost(x.shape, x.dtype) if hasattr(x, "shape") else x


def ghosts(values: list[Any]) -> list[Any]:
    """Return the ghosts of values: the list itself where all stay."""
    for x in values:
        if x.__class__ is not np.ndarray or x.size > SMALL or x.base.__class__ is np.ndarray:
            return list(map(ghost, values))
    return values


@record(frozen=True)
class OpDerivative:
    """`compiled` takes the arguments that `uses` names, then what is pulled or pushed; gives what `found` names."""

    compiled: Compiled
    uses: tuple[Place, ...]
    found: Any
    """The numbers of operands that have a cotangent, or the results that have coefficients, and of which orders."""


_CACHE: dict[Any, OpDerivative] = {}


def op_pullback(
    op: Op, attributes: dict[str, Any], operands: Sequence[Any], wanted: tuple[int, ...], seeded: tuple[int, ...]
) -> OpDerivative:
    """Return the VJP for a call on these operands (arrays, ghosts, numbers), from the results `seeded`."""
    if is_templated(op):
        attributes = {"shape": tuple(-1 if e == -1 else None for e in attributes["shape"])}
    return _derived(_pulled, op, attributes, operands, wanted, seeded)


def op_jet(op: Op, attributes: dict[str, Any], operands: Sequence[Any], given: Given, order: int) -> OpDerivative:
    """Return what computes the coefficients up to `order` of a call, of whose operands those in `given` are there."""
    return _derived(_pushed, op, attributes, operands, given, order)


def _derived(
    derive: Callable[..., OpDerivative], op: Op, attributes: dict[str, Any], operands: Sequence[Any], *asked: Any
) -> OpDerivative:
    pattern = shape_pattern(operands)
    key = (op.name, tuple(sorted(attributes.items())), pattern, asked)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = derive(OpDerivation(op, attributes, pattern), *asked)
    return found


def _pulled(call: OpDerivation, wanted: tuple[int, ...], seeded: tuple[int, ...]) -> OpDerivative:
    back, arguments, outs = call.builder, call.arguments, call.outs
    cts = [back.argument(outs[i].type) for i in seeded]
    given = dict(zip([outs[i] for i in seeded], cts, strict=True))
    pulled = pull_back(back, call.block, [arguments[i] for i in wanted], given)
    found = tuple(i for i in wanted if arguments[i] in pulled)
    return call.close(cts, lambda: [pulled[arguments[i]] for i in found], found)


def _pushed(call: OpDerivation, given: Given, order: int) -> OpDerivative:
    call.take_result_extents()
    pusher = JetBuilder(call.builder, order, None)
    entering: list[Value] = []
    for i, orders in given:
        entering += [call.builder.argument(call.arguments[i].type) for _ in orders]
        here = dict(zip(orders, entering[-len(orders) :], strict=True))
        pusher.series[call.arguments[i]] = [here.get(k) for k in range(1, order + 1)]
    pusher.run(call.block)
    found = found_in(pusher, call.outs)
    return call.close(entering, lambda: [c for i, k in found for c in pusher.dense(call.outs[i], k)], found)


def is_templated(op: OpDef) -> bool:
    """Return whether a VJP needs the shape that an op had, not the one that it gave: one serves every target."""
    return isinstance(op, (Reshape, Broadcast, SumTo))


class OpDerivation:
    """One op applied to arguments of a shape pattern, and the builder of what is derived from that."""

    def __init__(self, op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...]):
        self.name = op.name
        b = Builder(names=Names(sum(len(one[1]) for one in pattern if isinstance(one, tuple))))
        self.block = b.block
        self.arguments = [b.argument(kind) for kind in argument_types(pattern)]
        unknown = attributes["shape"].count(None) if is_templated(op) else 0
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
            extent = of.extent if isinstance(operation.op, DimOf) and isinstance(of, ScalarType) else None
            if extent is not None and extent in numbers:
                self.builder.rename(operation.results[0], numbers[extent])

    def take_result_extents(self) -> None:
        """Let the extents of results known only at run time come as numbers too."""
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

    def close(self, entering: Sequence[Value], results: Callable[[], Sequence[Value]], found: Any) -> OpDerivative:
        """Return the Program of what was built, which takes parts of a node before what is `entering`."""
        block = self.builder.block
        if self.builder.residuals:
            raise AutodiffError(f"the derivative of '{self.name}' needs a value that was not kept")
        block.results = [self.builder.use(v) for v in results()]
        used = settle(self.builder, self._places)
        kept = [a for a in self._places if a in used]
        block.arguments[:] = [*kept, *entering]
        return OpDerivative(Compiled(Program({"main": block})), tuple(self._places[a] for a in kept), found)


def settle(b: Builder, held: Container[Value]) -> set[Value]:
    """Drop what nobody uses of a block that is done; return the values that are used.

    Zeros (and ones) like one of `held` are made of its extents: the tape need not have its elements.
    """
    block, filled = b.block, dict[Value, Value]()
    operations, block.operations = block.operations, []
    for operation in operations:
        operation.operands = [filled.get(v, v) for v in operation.operands]
        number = operation.op.splat
        like = operation.operands[0] if number is not None else None
        if like is None or like not in held or not isinstance(like.type, TensorType):
            b.adopt(operation)
            continue
        element = b.emit("constant", [], {"value": np.full((), number, like.type.dtype.numpy)})  # here, not shared
        made = b.shaped("full", [element], b.shape(like))
        filled[operation.results[0]] = made
    block.results = [filled.get(v, v) for v in block.results]
    return _drop_dead(block)


def shape_pattern(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return dtypes and shapes with equal extents named alike: (3, 1, 5), (5,) -> (n0, 1, n1), (n1,)."""
    names: dict[int, int] = {1: -1}
    return tuple(
        type(x) if isinstance(x, (bool, int, float))
        else (x.dtype, tuple(names.setdefault(e, len(names) - 1) for e in x.shape))
        for x in operands
    )  # fmt: skip


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


def argument_types(pattern: tuple[Any, ...]) -> list[Type]:
    """Return the types that a shape pattern stands for."""
    return list(map(_type_of, pattern))


def _type_of(one: Any) -> Type:
    """Return the type that an entry of a shape pattern stands for."""
    if isinstance(one, type):
        return {bool: ScalarType("bool"), int: INT, float: ScalarType("float")}[one]
    dtype, extents = one
    return TensorType(dtypes.dtype(dtype), tuple(1 if e < 0 else symbol(f"n{e}") for e in extents))
