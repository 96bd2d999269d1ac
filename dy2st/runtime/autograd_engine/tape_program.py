"""The Program that pulls cotangents back through a whole segment of the tape.

The ops of the segment are applied once more, to arguments of the types that the pattern of the segment says, and pulled
back newest first by the rules that derive whole Programs; the backward Programs of recorded calls are put in place.
What the way back uses of a node is an argument: an operand or a result, what a recorded call keeps, an extent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st import dtypes
from dy2st.autodiff.activity import active_values
from dy2st.autodiff.cotangents import accumulate, conform, may_miss
from dy2st.autodiff.residuals import BackwardBuilder
from dy2st.autodiff.reverse import Frontier
from dy2st.errors import Dy2stError
from dy2st.ir.builder import Builder, Names
from dy2st.ir.clone import clone_block, clone_operation
from dy2st.ir.program import Block, Program, Value
from dy2st.ir.types import ScalarType, TensorType, Type, is_differentiable, is_optional, tangent_type
from dy2st.ops.control.control_flow import visible_symbols
from dy2st.ops.shape.shape import DimOf
from dy2st.passes.core.rewrite import Renaming
from dy2st.records import record
from dy2st.runtime.autograd_engine.tape_segment import Extents, Segment
from dy2st.runtime.eager.tape.node import Node, ProgramCall
from dy2st.runtime.eager.tape.op_derivative import Ghost, is_templated, settle
from dy2st.runtime.executor.executable import Compiled
from dy2st.shapes import Dim, Extent, symbol

Place = tuple[str, int, int]
"""What an argument is: ("operand", "result", "raw" operand or "residual", of which node of the segment, which), ("ct",
which of those that enter, 0), or ("extent", which symbol, 0)."""


class NotComposable(Exception):
    """A segment is left to the walk."""


@record(frozen=True)
class TapeProgram:
    """`compiled` takes what `takes` names, and gives the cotangents of the places `gives`, some of them optional."""

    compiled: Compiled
    takes: tuple[Place, ...]
    alike: tuple[tuple[Place, Place], ...]
    """Places that have to have the same array."""
    gives: tuple[tuple[Any, bool], ...]
    pulled: tuple[int, ...]
    """The nodes to which a cotangent came."""


def tape_program(segment: Segment, extents: Extents) -> TapeProgram:
    """Return the Program of a segment; NotComposable where there is none."""
    try:
        return _Composition(segment, extents).program()
    except (Dy2stError, ValueError, TypeError, IndexError) as error:
        raise NotComposable(str(error)) from error


def held(segment: Segment, place: Place) -> Any:
    """Return what stands at a place of a node: an array, a number, a list, or a ghost."""
    kind, at, i = place
    node = segment.nodes[at]
    if kind == "operand":
        return node.source[2][i]
    if kind == "raw":
        return node.source.raw[i]
    return node.results[i] if kind == "result" else node.source.residuals[i]


class _Composition:
    def __init__(self, segment: Segment, extents: Extents):
        self.segment, self.extents = segment, extents
        self.known = len(extents.values)
        self.forward = Builder(names=Names(len(extents.values)))
        self.results: dict[tuple[int, int], Value] = {}
        """The results of the nodes, by the node's number and their own."""
        self.operands: list[list[Value | None]] = [[] for _ in segment.nodes]
        self.roots: dict[Value, Any] = {}
        """What cotangents are asked of, and where these go."""
        self.from_outside: dict[Any, Value] = {}
        self.places: dict[Value, list[Place]] = {}
        """Where the values of the forward block stand."""
        self.spans = [(0, 0)] * len(segment.nodes)
        """The operations of each node."""

    def program(self) -> TapeProgram:
        for at in reversed(range(len(self.segment.nodes))):
            node, before = self.segment.nodes[at], len(self.forward.block.operations)
            if isinstance(node.source, ProgramCall):
                self._call(at, node, node.source)
            else:
                self._op(at, node)
            self.spans[at] = before, len(self.forward.block.operations)
        back = self.back = BackwardBuilder(self.forward, None, {})
        self.heres: dict[Value, Place] = {}
        self._extents()
        for value, places in self.places.items():
            here = back.argument(value.type)
            back.rename(value, here)
            self.heres[here] = places[0]
        active = active_values(self.forward.block, [v for v in self._arguments() if is_differentiable(v.type)])
        frontier = Frontier(back, active, frozenset(self.roots))
        self._enter(frontier)
        pulled = [at for at in range(len(self.segment.nodes)) if self._pull(frontier, at)]
        frontier.close_all()
        return self._close(frontier, pulled)

    def _arguments(self) -> list[Value]:
        """Return the values that a gradient may flow to, but for results of ops."""
        calls = [v for (number, _), v in self.results.items() if v.operation is None]
        return [*self.roots, *calls]

    # ---- forward ---------------------------------------------------------------------------------------------------
    def _type(self, array: Any) -> TensorType:
        return TensorType(dtypes.dtype(array.dtype), self.extents.shape(array.shape))

    def _operand(self, at: int, i: int, edge: Any, array: Any) -> Value:
        """Return operand i of a node as a value of the forward block."""
        number = isinstance(array, (bool, int, float))
        where = None if edge is None else self.segment.place(edge)
        key = (where, at, i) if number else (where, id(array))
        value = self.results.get(where) if isinstance(where, tuple) else None
        value = value or self.from_outside.get(key)
        if value is None:
            if isinstance(where, tuple) and where[0] in self.segment.order:
                raise NotComposable("a gradient goes to a result that is no tensor")
            kind = ScalarType(type(array).__name__) if number else self._type(array)
            value = self.from_outside[key] = self.forward.argument(kind)
            if where is not None:
                self.roots[value] = where
        elif value.type != self._type(array):
            raise NotComposable("an operand is not of the type of the result that it was")
        return value

    def _op(self, at: int, node: Node) -> None:
        op, attributes, arrays = node.source
        operands = [self._operand(at, i, e, x) for i, (e, x) in enumerate(zip(node.edges, arrays, strict=True))]
        self.operands[at] = [*operands]
        for i, value in enumerate(operands):
            self._stands(value, ("operand", at, i))
        outs = list(node.results)
        if outs[0] is None:  # of an op element by element
            shape = np.broadcast_shapes(*(x.shape for x in arrays if hasattr(x, "shape")))
            outs = [Ghost(shape, next(x.dtype for x in arrays if hasattr(x, "dtype")))]
        targets: list[Value] = []
        if is_templated(op):
            target = self.extents.shape(outs[0].shape)
            targets = [self.forward.argument(ScalarType("int", e)) for e in target if isinstance(e, Dim)]
            attributes = {**attributes, "shape": tuple(None if isinstance(e, Dim) else e for e in target)}
            operands = operands[:1]
        made = self.forward.apply(op, [*operands, *targets], attributes)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        for i, (value, out) in enumerate(zip(made, outs, strict=True)):
            kind = self._type(out)
            if not isinstance(value.type, TensorType) or value.type.dtype is not kind.dtype:
                raise NotComposable(f"{op.name} gives another dtype now")
            self.forward.retype(value, kind)
            self.results[self.segment.order[at], i] = value
            self._stands(value, ("result", at, i))

    def _call(self, at: int, node: Node, call: ProgramCall) -> None:
        number = self.segment.order[at]
        self.operands[at] = [
            None if edge is None or not isinstance(x, ndarray) else self._operand(at, i, edge, x)
            for i, (edge, x) in enumerate(zip(node.edges, call.raw, strict=True))
        ]
        for i, out in enumerate(node.results):
            if isinstance(out, ndarray):
                value = self.results[number, i] = self.forward.argument(self._type(out))
                self._stands(value, ("result", at, i))

    def _stands(self, value: Value, place: Place) -> None:
        if not isinstance(held(self.segment, place), Ghost) and held(self.segment, place) is not None:
            self.places.setdefault(value, []).append(place)

    # ---- backward --------------------------------------------------------------------------------------------------
    def _extents(self) -> None:
        """Let extents come as numbers, so that no operand is kept for its shape alone."""
        numbers: dict[Extent | None, Value] = {}
        for i in range(len(self.extents.values)):
            extent = symbol(f"n{i}")
            here = numbers[extent] = self.back.block.add_argument(ScalarType("int", extent))
            self.back.provide(extent, here)
            self.heres[here] = ("extent", i, 0)
        for operation in self.forward.block.operations:
            of = operation.results[0].type
            if isinstance(operation.op, DimOf) and isinstance(of, ScalarType) and of.extent in numbers:
                self.back.rename(operation.results[0], numbers[of.extent])
        for argument in self.forward.block.arguments:
            if isinstance(argument.type, ScalarType) and argument.type.extent in numbers:
                self.back.rename(argument, numbers[argument.type.extent])

    def _enter(self, frontier: Frontier) -> None:
        for at, (number, i, ct) in enumerate(self.segment.entering):
            if number not in self.segment.order:
                continue
            value = self.results.get((number, i))
            if value is None:
                raise NotComposable("a cotangent is no tensor")
            kind = tangent_type(value.type)
            assert isinstance(kind, TensorType)
            if ct is None:
                one = self.back.emit("constant", [], {"value": np.ones((), kind.dtype.numpy)})
                frontier.add(value, self.back.shaped("full", [one], self.back.shape(kind)) if kind.rank else one)
                continue
            if not isinstance(ct, ndarray) or self._type(ct) != kind:
                raise NotComposable("a cotangent is of another type")
            here = self.back.argument(kind)
            self.heres[here] = ("ct", at, 0)
            frontier.add(value, here)

    def _pull(self, frontier: Frontier, at: int) -> bool:
        """Pull back through one node; return whether it had a cotangent."""
        node, number = self.segment.nodes[at], self.segment.order[at]
        mine = [self.results[number, i] for i in range(len(node.results)) if (number, i) in self.results]
        reached = any(map(frontier.reaches, mine))
        if reached and isinstance(node.source, ProgramCall):
            frontier.close_all()
            cts = {i: frontier.take(v) for (n, i), v in self.results.items() if n == number and v in frontier.cts}
            self._pull_call(frontier, at, node.source, {i: ct for i, ct in cts.items() if ct is not None})
        elif reached:
            for operation in reversed(self.forward.block.operations[slice(*self.spans[at])]):
                frontier.pull(operation)
        return reached

    def _pull_call(self, frontier: Frontier, at: int, call: ProgramCall, cts: dict[int, Value]) -> None:
        """Put the backward Program of a recorded call in place."""
        pullback, number, seeded = call.pullback, self.segment.order[at], tuple(sorted(cts))
        if any(may_miss(ct, self.results[number, i]) for i, ct in cts.items()):
            raise NotComposable("a cotangent of a recorded call may be missing")
        if seeded == pullback.seeded:
            residuals: list[Value | Place] = [("residual", at, j) for j in range(len(call.residuals))]
        else:  # the forward Program runs again, as far as these cotangents ask for it
            pullback = pullback.forward.silent.pullback(call.wrt, seeded)
            made = self._inline(pullback.forward.optimised, [("raw", at, i) for i in range(len(call.raw))])
            residuals = [*made[len(self.segment.nodes[at].results) :]]
        found = self._inline(pullback.backward.optimised, [*residuals, *(cts[i] for i in seeded)])
        for i, ct in zip(pullback.found, found, strict=True):
            value = self.operands[at][i]
            if value is None or not (isinstance(ct.type, TensorType) or is_optional(ct.type)):
                raise NotComposable("a cotangent is no tensor")
            frontier.add(value, ct)

    def _inline(self, program: Program, given: Sequence[Value | Place]) -> list[Value]:
        """Put the operations of a Program in place; return what its results are here."""
        if len(program.functions) > 1:
            raise NotComposable("a recorded call has functions")
        block = clone_block(program.block)
        self._rename(block, given)
        known: dict[Value, Value] = {}
        for argument, one in zip(block.arguments, given, strict=True):
            if isinstance(one, Value):
                known[argument] = conform(self.back, one, argument)
            else:
                known[argument] = here = self.back.argument(argument.type)
                self.heres[here] = one
        for operation in block.operations:
            self.back.adopt(clone_operation(operation, self.back.block, known))
        return [known[v] for v in block.results]

    def _rename(self, block: Block, given: Sequence[Value | Place]) -> None:
        """Write the types in the block of a Program in the symbols of the segment."""
        names: dict[str, Extent] = {}
        for argument, one in zip(block.arguments, given, strict=True):
            of: Any = one.type if isinstance(one, Value) else held(self.segment, one)
            of = self._type(of) if isinstance(of, ndarray) else of
            told = argument.type.shape if isinstance(argument.type, TensorType) else ()
            for mine, extent in zip(told, of.shape if isinstance(of, TensorType) else (), strict=False):
                if isinstance(mine, Dim) and mine.is_symbol and "(" not in str(mine):
                    names.setdefault(str(mine), extent)
        types: list[Type] = [v.type for v in block.arguments]
        types += [v.type for operation in block.walk() for v in operation.results]
        types += [v.type for operation in block.walk() for inner in operation.blocks for v in inner.arguments]
        for name in sorted(visible_symbols(types)):
            if "(" not in name and name not in names:
                names[name] = self.back.names.symbol()
        Renaming(names).block(block)

    # ---- the end ---------------------------------------------------------------------------------------------------
    def _close(self, frontier: Frontier, pulled: Sequence[int]) -> TapeProgram:
        back, sums = self.back, dict[Any, Value]()
        for value, where in self.roots.items():
            ct = frontier.cts.get(value)
            if ct is not None:
                sums[where] = accumulate(back, sums.get(where), ct)
        block = back.block
        if len(self.extents.values) != self.known:
            raise NotComposable("an extent is not told by the pattern")
        block.results = [back.use(ct) for ct in sums.values()]
        used = settle(back, self.heres)
        for residual in back.residuals.values():
            if residual in used:
                raise NotComposable("a value is needed that was not kept")
        kept = [a for a in self.heres if a in used]
        block.arguments[:] = kept
        taken = {self.heres[a] for a in kept}
        alike = [(first, one) for first, *others in self.places.values() if first in taken for one in others]
        if any(held(self.segment, a) is not held(self.segment, b) for a, b in alike):
            raise NotComposable("an operand is not the array that it was as a result")
        gives = tuple((where, is_optional(v.type)) for where, v in zip(sums, block.results, strict=True))
        compiled = Compiled(Program({"main": block}), whole=True)
        return TapeProgram(compiled, tuple(self.heres[a] for a in kept), tuple(alike), gives, tuple(pulled))
