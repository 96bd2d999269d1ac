"""What code may take for granted of the extents of a Program's inputs, seen the inputs of one call.

A Program that was traced from inputs of unknown extents does not know what `x * w` repeats: `x`, `w` or neither, and a
loop nest cannot be written for that. A call tells: where two extents meet, they are equal, or one of them is 1. Only
symbols that meet another extent somewhere are asked for, so the code serves every shape of the same pattern. Extents
of small tensors that a loop carries are taken as they are: so they stay in registers from iteration to iteration. So
are those of weights whose products are cut into parts (split_weight_extents.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dy2st.ir.program import Block, Operation, Program, Value, tensor_type
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.linalg.expm import MatrixExponential, MatrixExponentialSlope
from dy2st.ops.reduce.loss import SoftmaxCrossEntropy
from dy2st.ops.reduce.normalization import LayerNorm
from dy2st.ops.shape.shape import Broadcast, BroadcastExtent, SumTo
from dy2st.runtime.backends.cpu.fusion.split_weight_extents import cut_widths
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import is_small
from dy2st.shapes import Dim, Extent, Shape, met, symbol

Meeting = tuple[Extent, Extent]
"""Two extents of which one may be 1, or both are equal; the types do not say which."""


def meetings(program: Program) -> list[Meeting]:
    """Return where extents of the entry function meet that are not known to be equal, or which of them is 1."""
    found = (pair for operation in program.block.walk() for pair in _met_in(operation))
    return [(a, b) for a, b in dict.fromkeys(found) if a != b and 1 not in (a, b) and not _numbers(a, b)]


def _numbers(a: Extent, b: Extent) -> bool:
    return isinstance(a, int) and isinstance(b, int)


def _met_in(operation: Operation) -> Iterator[Meeting]:
    op, types = operation.op, [v.type for v in operation.operands]
    if isinstance(op, (Broadcast, SumTo)):
        yield from _trailing(operation.results[0], operation.operands[0])
    elif isinstance(op, BroadcastExtent):
        a, b = (t.extent if isinstance(t, ScalarType) else None for t in types)
        if a is not None and b is not None:
            yield a, b
    elif isinstance(op, LayerNorm):  # operands have the last extents of the first
        for other in operation.operands[1:]:
            yield from _trailing(other, operation.operands[0])
    elif isinstance(op, SoftmaxCrossEntropy):  # the same extents, but along one axis
        yield from _leading(operation.operands)
    elif isinstance(op, (MatrixExponential, MatrixExponentialSlope)):  # written as others where they are square
        *_, rows, columns = _shape(operation.operands[0])
        yield rows, columns


def _trailing(a: Value, b: Value) -> Iterator[Meeting]:
    yield from zip(reversed(_shape(a)), reversed(_shape(b)), strict=False)


def _leading(values: Sequence[Value]) -> Iterator[Meeting]:
    for other in values[1:]:
        yield from zip(_shape(values[0]), _shape(other), strict=False)


def _shape(value: Value) -> Shape:
    return value.type.shape if isinstance(value.type, TensorType) else ()


# ---- what a call tells ---------------------------------------------------------------------------------------------
def assumptions(
    program: Program, bound: Mapping[str, int], first: Mapping[str, int] | None = None
) -> dict[str, Extent]:
    """Return what symbols stand for, for inputs in which they are `bound`; a call of another pattern has others.

    `first` is what symbols were in the first call, None for that one. In it, small tensors that loops carry and weights
    that are cut have the extents that they have; later on, weights that are cut do so where they still have those.
    """
    origins = _Origins(program)
    known: dict[str, Extent] = {}
    for a, b in meetings(program):
        numbers = [1, *(e for e in (a, b) if isinstance(e, int))]
        names = {*origins(a), *origins(b)} & bound.keys()
        equal: dict[int, Extent] = {n: n for n in numbers}
        for name in sorted(names, key=lambda s: ("(" in s, s)):
            _link(symbol(name), equal.setdefault(bound[name], symbol(name)), known)
    small = _small(program, bound) if first is None else []
    looped = _carried(program, origins) if small else set[str]()
    for name in small:
        if name in looped:
            _link(symbol(name), bound[name], known)
    cut = sorted(cut_widths(program, origins) & bound.keys())
    if first is None or all(first.get(name) == bound[name] for name in cut):
        for name in cut:
            _link(symbol(name), bound[name], known)
    return {name: _final(symbol(name), known) for name in known}


def is_asked_for(program: Program) -> bool:
    """Return whether code depends on the extents of inputs."""
    origins = _Origins(program)
    return bool(meetings(program) or _carried(program, origins) or cut_widths(program, origins))


def _carried(program: Program, origins: _Origins) -> set[str]:
    """Return the symbols that the extents of what loops carry may come from: small tensors stay in registers there."""
    loops = [o for o in program.block.walk() if o.op.is_loop]
    extents = {e for loop in loops for v in loop.results for e in _shape(v)}
    return {name for extent in extents for name in origins(extent)}


def _small(program: Program, bound: Mapping[str, int]) -> list[str]:
    """Return the symbols of the arguments that are small tensors in this call."""
    found: dict[str, None] = {}
    for argument in program.block.arguments:
        shape = _shape(argument)
        names = [str(e) for e in shape if isinstance(e, Dim) and str(e) in bound]
        known = tuple(bound.get(str(e), e) if isinstance(e, Dim) else e for e in shape)
        if names and is_small(TensorType(tensor_type(argument).dtype, known)):
            found.update(dict.fromkeys(names))
    return list(found)


def _link(extent: Extent, to: Extent, known: dict[str, Extent]) -> None:
    """Let two extents stand for the same: a number where one is, else that which is not made of others."""
    a, b = sorted((_final(extent, known), _final(to, known)), key=lambda e: (isinstance(e, Dim), "(" in str(e), str(e)))
    if a != b:
        known[str(b)] = a


def _final(extent: Extent, known: Mapping[str, Extent]) -> Extent:
    while isinstance(extent, Dim) and str(extent) in known:
        extent = known[str(extent)]
    return extent


class _Origins:
    """Tells the symbols that an extent may come from: itself, those that met in it, what a loop began with."""

    def __init__(self, program: Program):
        self._aliases = _aliases(program.block)
        self._found: dict[Extent, tuple[str, ...]] = {}

    def __call__(self, extent: Extent) -> tuple[str, ...]:
        found = self._found.get(extent)
        if found is None:
            found = self._found[extent] = tuple(self._symbols(extent))
        return found

    def _symbols(self, extent: Extent) -> Iterator[str]:
        pending, seen = [extent], set[str]()
        while pending:
            one = pending.pop()
            if not isinstance(one, Dim) or not one.is_symbol or (name := str(one)) in seen:
                continue
            seen.add(name)
            yield name
            pending += [e for e in met(one) if e != one]
            if name in self._aliases:
                pending.append(self._aliases[name])


def _aliases(block: Block) -> dict[str, Extent]:
    """Return for the symbols of loops and branches which extents they have at first."""
    found: dict[str, Extent] = {}

    def note(inner: Value, outer: Value) -> None:
        for a, b in zip(_shape(inner), _shape(outer), strict=False):
            if isinstance(a, Dim) and a.is_symbol and a != b:
                found.setdefault(str(a), b)

    for operation in block.walk():
        if operation.op.is_loop:
            given = operation.operands[1:]
            for argument, value in zip(reversed(operation.blocks[0].arguments), reversed(given), strict=False):
                note(argument, value)
            for result, value in zip(operation.results, given, strict=False):
                note(result, value)
        elif operation.op.is_branch:
            for inner in operation.blocks:
                for result, value in zip(operation.results, inner.results, strict=True):
                    note(result, value)
    return found
