"""The extents of inputs, which are symbols of a trace, and which of them Python needs.

One Program serves every shape. Where Python itself needs a number that extents of inputs tell, the function is traced
again with just these extents fixed (`fix`), and the Program serves the calls that have them:

    np.zeros(x.shape[0] // 2)              floordiv(x_0, 2) was needed: axis 0 of x is fixed
    for i in range(len(x)): d[i] = x[i]    the number of an iteration was: the extent that says how many iterations
    there are math.sqrt(x.shape[0])                  an operation, nothing is fixed
    np.zeros(x.nonzero().shape[0])         the run alone tells it: nothing to fix, the call falls back
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dy2st.errors import Dy2stError, NeedsPythonValue, StructureError, TraceError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.jit.guards.call_signature import FlatCall
from dy2st.kinds import is_sequence, is_slice
from dy2st.ops.shape.shape import DimOf
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_iterable import SymbolicIterable
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text
from dy2st.shapes import Dim, symbol, symbols_in

if TYPE_CHECKING:
    from dy2st.jit.tracing.external_reads import ExternalReads

Place = tuple[int, str]
"""The owner (its id) and the name of a tensor of the state."""


class InputExtents:
    """The extents of the inputs of a trace, each a symbol, and which of them were read."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.places: dict[str, tuple[int | Place, int]] = {}
        """For each symbol: which argument, by number, or which tensor of the state has that extent, at which axis."""
        self.read: set[Dim] = set()

    def symbols(self, name: str, rank: int, place: int | Place) -> list[Dim]:
        """Return the extents of an input, each a symbol of its own."""
        made: list[Dim] = []
        for axis in range(rank):
            text = f"{name}_{axis}"
            while text in self.places:  # an argument `x_1` beside the list `x`
                text += "_"
            self.places[text] = place, axis
            made.append(symbol(text))
        return made

    def note_read(self, extents: Sequence[Any]) -> None:
        """Note extents that the function has read."""
        self.read |= {e.value.type.extent for e in extents if isinstance(e, Scalar)}  # type: ignore[union-attr]

    def behind(self, needed: Sequence[Any]) -> frozenset[str] | None:
        """Return the extents, as symbols, that numbers are made of alone; None where that is not known.

        There are none where something else is part of the numbers: then no extent tells them.
        """
        found: set[str] = set()
        seen: set[Value] = set()
        waiting, known = list(_values(needed)), True
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            extent = value.type.extent if isinstance(value.type, ScalarType) else None
            operation = value.operation
            if extent is not None and (symbols := symbols_in(extent)) <= self.places.keys():
                found |= symbols
            elif operation is not None and isinstance(operation.op, DimOf):
                more = self._behind_shape(operation.operands[0])
                found, known = found | more, known and bool(more)
            elif operation is not None and not operation.blocks:
                waiting += operation.operands
            elif operation is None and (more := self._outside(value)):
                waiting += more
            elif operation is None and value.block is self.trace.root.block:
                return frozenset()  # an input itself
            else:
                known = False
        return frozenset(found) if known else None

    def _behind_shape(self, made: Value) -> set[str]:
        """Return the extents that may tell those of a tensor of which the type does not say where they come from."""
        found: set[str] = set()
        waiting, seen = [made], {made}
        while waiting:
            value = waiting.pop()
            for x in self._outside(value) if value.operation is None else value.operation.operands:
                symbols = _symbols(x)
                found |= symbols & self.places.keys()
                if x not in seen and not symbols <= self.places.keys():
                    seen.add(x)
                    waiting.append(x)
        return found - _symbols(made)

    def _outside(self, value: Value) -> Sequence[Value]:
        """Return what an argument of a block stands for: a value around it, or the number of an iteration."""
        if value in self.trace.iterations:
            return list(_values([self.trace.iterations[value]]))
        builder: Builder | None = self.trace.builder
        while builder is not None:
            if value.block is builder.block:
                return [outer for outer, inner in builder.captures.items() if inner is value]
            builder = builder.parent
        return []


def _symbols(value: Value) -> set[str]:
    """Return the symbols of a tensor's extents, or of the extent that a number is."""
    kind = value.type
    extents = kind.shape if isinstance(kind, TensorType) else [getattr(kind, "extent", None) or 0]
    return {name for e in extents for name in symbols_in(e)}


def _values(things: Iterable[Any]) -> Iterable[Value]:
    """Give the values of the numbers that things are, or hold."""
    for x in things:
        if isinstance(x, Value):
            yield x
        elif isinstance(x, Scalar):
            yield x.item().value
        elif isinstance(x, Text):
            yield from x.operands
        elif isinstance(x, SymbolicIterable):
            yield from _values([x.length])
        elif is_slice(x):
            yield from _values([x.start, x.stop, x.step])
        elif is_sequence(x):
            yield from _values(x)


def fix(error: Exception, trace: ExternalReads, made: FlatCall, state: set[Place], *, exactly: bool) -> bool:
    """Fix the extents without which a trace has failed, of arguments in `made`, else in `state`; return whether any
    were.

    They are those that the error names; where it names none and they are not asked for `exactly`, all that were read.
    """
    symbols = _named(error) if exactly else _read(error, trace)
    places = [trace.extents.places[name] for name in sorted(symbols)]
    declared = [(place, axis) for place, axis in places if isinstance(place, int)]
    outside = {place for place, _ in places if not isinstance(place, int)}
    if made.fixed is not None:
        made.fixed.update(declared)
    elif declared and exactly:
        _refuse_declared(error, made, declared)
        return False
    state.update(outside)
    return bool(outside or (declared and made.fixed is not None))


def _named(error: BaseException | None) -> frozenset[str]:
    """Return the extents that an error names, or one that led to it."""
    while error is not None:
        if isinstance(error, NeedsPythonValue) and error.extents is not None:
            return error.extents
        error = error.__cause__ or error.__context__
    return frozenset()


def _read(error: Exception, trace: ExternalReads) -> set[str]:
    """Return the extents that a trace has read, where the error may come of it that they are symbols."""
    ours = isinstance(error, Dy2stError)
    if isinstance(error, NeedsPythonValue) and error.extents is not None:
        return set()  # no extent tells it
    if isinstance(error, RecursionError) or (ours and not isinstance(error, (NeedsPythonValue, StructureError))):
        return set()
    if trace.blamed and not ours:
        return set(trace.blamed)
    return {name for e in trace.extents.read for name in symbols_in(e) if name in trace.extents.places}


def _refuse_declared(error: Exception, made: FlatCall, places: Sequence[tuple[int, int]]) -> None:
    """Raise the error for extents that a declaration leaves open and Python needs."""
    place, axis = places[0]
    if not isinstance(error, TraceError):
        return
    raise TraceError(
        f"axis {axis} of `{made.names[place]}` is declared as any extent, and Python needs the number: {error.reason}",
        file=error.file,
        line=error.line,
    ) from error
