"""Forward mode: push tangents, or more coefficients of Taylor series, through the operations of a block, first to last.

What depends on t is x0 + x1 t + x2 t**2 + ...; the primal values are the first coefficients, the others stand beside
them, also in branches and loops, which are rebuilt with them in turn, so that no tape is needed. Tangents are the
coefficients of order 1; coefficient k of f(x + v t) is the k-th derivative of f along v, divided by k!.

What an op does to coefficients says `series.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autodiff.activity import active_carried, active_results
from dy2st.autodiff.cotangents import conform
from dy2st.autodiff.refusal import no_rule
from dy2st.autodiff.series import Coefficients, KnownSeries, op_series
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import is_differentiable, tangent_type
from dy2st.passes.remove_prints import silence

Given = tuple[tuple[int, tuple[int, ...]], ...]
"""Which arguments (or results) have coefficients, and of which orders."""
Mapping = dict[Value, Value]


class JetBuilder:
    """Emits into `b` what coefficients up to `order` become.

    With a `mapping` (old value -> new value, the arguments already in it) the operations are copied into `b`; without
    one, `b` appends to the block itself, and the primal values are there already.
    """

    def __init__(self, b: Builder, order: int, mapping: Mapping | None):
        self.b, self.order, self.mapping = b, order, mapping
        self.series: dict[Value, Coefficients] = {}

    def run(self, block: Block) -> None:
        """Push through a block; the coefficients of its values enter `series`."""
        for operation in block.operations:
            active = {v for v in operation.operands if v in self.series}
            if active and any(active_results(operation, active)):
                self._push(operation)
            elif self.mapping is not None:
                self._copy(operation)

    def coefficients(self, value: Value) -> Coefficients:
        """Return coefficients 1 to `order` of a value of the block."""
        return self.series.get(value) or [None] * self.order

    def mapped(self, value: Value) -> Value:
        """Return the primal value as `b` has it."""
        return value if self.mapping is None else self.mapping[value]

    def enter(self, arguments: Sequence[Value], masks: Sequence[Sequence[int]]) -> None:
        """Make the arguments of a rebuilt block: the primals, then the coefficients that its mask names."""
        assert self.mapping is not None
        for a in arguments:
            self.mapping[a] = self.b.argument(a.type, a.name)
        for a, mask in zip(arguments, masks, strict=True):
            if mask:
                found: Coefficients = [None] * self.order
                for k in mask:
                    found[k - 1] = self.b.argument(tangent_type(a.type))
                self.series[a] = found

    def dense(self, value: Value, orders: Sequence[int]) -> list[Value]:
        """Return coefficients of these orders, zeros where one is None."""
        found = self.coefficients(value)
        made: list[Value] = []
        for k in orders:
            one = found[k - 1]
            made.append(self.b.zeros_like(self.mapped(value)) if one is None else self.b.use(one))
        return made

    # ---- operations ------------------------------------------------------------------------------------------------
    def _push(self, operation: Operation) -> None:
        before, self.b.location = self.b.location, operation.location
        if operation.op.is_branch:
            self._push_cond(operation)
        elif operation.op.is_loop:
            self._push_loop(operation)
        elif operation.op.is_call:
            self._push_call(operation)
        elif operation.blocks:
            raise no_rule(operation)
        else:
            if self.mapping is not None:
                self._copy(operation)
            operands = [KnownSeries(self.mapped(v), self.coefficients(v)) for v in operation.operands]
            outs = [self.mapped(v) for v in operation.results]
            found = op_series(self.b, operation, operands, outs, self.order)
            for result, coefficients in zip(operation.results, found, strict=True):
                if any(c is not None for c in coefficients):
                    self.series[result] = coefficients
        self.b.location = before

    def _copy(self, operation: Operation) -> None:
        assert self.mapping is not None
        operands = [self.mapping[v] for v in operation.operands]
        blocks = [clone_block(inner) for inner in operation.blocks]
        made = self.b.operation(operation.op, operands, dict(operation.attributes), blocks, operation.location)
        for old, new in zip(operation.results, made.results, strict=True):
            new.name = old.name
            self.b.retype(new, old.type)
            self.mapping[old] = new

    def _push_cond(self, operation: Operation) -> None:
        operands = operation.operands[1:]
        masks = [_mask(self.coefficients(v)) for v in operands]
        sides: list[JetBuilder] = []
        for block in operation.blocks:
            side = self._inside()
            side.enter(block.arguments, masks)
            side.run(block)
            sides.append(side)
        pairs = list(zip(operation.blocks, sides, strict=True))
        live: list[tuple[int, list[int]]] = []
        for i, result in enumerate(operation.results):
            has = [_mask(side.coefficients(block.results[i])) for block, side in pairs]
            orders = sorted({k for mask in has for k in mask})
            if orders and is_differentiable(result.type):
                live.append((i, orders))
        for block, side in pairs:
            side.b.block.results = [side.mapped(v) for v in block.results]
            for i, orders in live:
                side.b.block.results += side.dense(block.results[i], orders)
        given = [self.mapped(v) for v in operation.operands]
        given += [c for v in operands for c in self.coefficients(v) if c is not None]
        made = self.b.operation("cond", given, {}, [side.b.block for side in sides], operation.location)
        self._leave(operation, made, live)

    def _push_loop(self, operation: Operation) -> None:
        carried: int = operation.attributes["carried"]
        counted, body, every = operation.op.is_counted, operation.blocks[0], self._every()
        on = active_carried(operation, {v for v in operation.operands if v in self.series})
        side = self._inside()
        assert side.mapping is not None
        taken = body.arguments
        if counted:
            side.mapping[taken[0]] = side.b.argument(taken[0].type)
            taken = taken[1:]
        fixed = operation.operands[1 + carried :]
        side.enter(taken[:carried], [every if one else () for one in on])
        side.enter(taken[carried:], [_mask(self.coefficients(v)) for v in fixed])
        side.run(body)
        live = [i for i, one in enumerate(on) if one]
        leaving = body.results if counted else body.results[1:]
        side.b.block.results = [side.mapped(v) for v in body.results]
        for i in live:
            side.b.block.results += side.dense(leaving[i], every)
        primals = [self.mapped(v) for v in operation.operands]
        starts = [c for i in live for c in self.dense(operation.operands[1 + i], every)]
        given = [*primals[: 1 + carried], *starts, *primals[1 + carried :]]
        given += [c for v in fixed for c in self.coefficients(v) if c is not None]
        attributes = {**operation.attributes, "carried": carried + len(starts)}
        made = self.b.operation(operation.op, given, attributes, [side.b.block], operation.location)
        self._leave(operation, made, [(i, every) for i in live])

    def _push_call(self, operation: Operation) -> None:
        masks = [_mask(self.coefficients(v)) for v in operation.operands]
        function = self._pushed_function(operation.attributes["function"], masks)
        live = [(i, self._every()) for i, v in enumerate(operation.results) if is_differentiable(v.type)]
        types: list[Any] = [v.type for v in operation.results]
        types += [tangent_type(types[i]) for i, orders in live for _ in orders]
        given = [self.mapped(v) for v in operation.operands]
        given += [c for v in operation.operands for c in self.coefficients(v) if c is not None]
        attributes = {"function": function, "types": tuple(types)}
        made = self.b.operation("call", given, attributes, (), operation.location)
        self._leave(operation, made, live)

    def _pushed_function(self, name: str, masks: Sequence[Sequence[int]]) -> str:
        """Return the name of the function that computes what `name` does and all coefficients of its results."""
        functions = functions_of(self.b, name)
        shown = "_".join("".join(str(int(k in mask)) for k in self._every()) for mask in masks)
        made = f"{name}__jet_{shown}"
        if made not in functions:
            source, side = functions[name], self._inside()
            functions[made] = side.b.block  # before it is built: it may call itself
            side.enter(source.arguments, masks)
            side.run(source)
            side.b.block.results = [side.mapped(v) for v in source.results]
            for v in source.results:
                if is_differentiable(v.type):
                    side.b.block.results += side.dense(v, self._every())
        return made

    def _every(self) -> tuple[int, ...]:
        return tuple(range(1, self.order + 1))

    def _inside(self) -> JetBuilder:
        """Return what pushes through a block of its own, in the name of the same source line."""
        inner = Builder(Block(), None, names=self.b.names)
        inner.location, inner.functions = self.b.location, self.b.functions
        return JetBuilder(inner, self.order, {})

    def _leave(self, operation: Operation, made: Operation, live: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Map the results of a rebuilt operation: primals first, then the coefficients of the `live` ones."""
        count = len(operation.results)
        if self.mapping is not None:
            for old, new in zip(operation.results, made.results[:count], strict=True):
                self.b.retype(new, old.type)
                self.mapping[old] = new
        else:
            silence_again(self.b, made)
        rest = iter(made.results[count:])
        for i, orders in live:
            result = operation.results[i]
            found: Coefficients = [None] * self.order
            for k in orders:
                found[k - 1] = conform(self.b, next(rest), self.mapped(result), fresh=True)
            self.series[result] = found


def found_in(pusher: JetBuilder, results: Sequence[Value]) -> Given:
    """Say which results have coefficients that are not zero."""
    masks = [(i, _mask(pusher.coefficients(v))) for i, v in enumerate(results) if is_differentiable(v.type)]
    return tuple((i, mask) for i, mask in masks if mask)


def _mask(coefficients: Coefficients) -> tuple[int, ...]:
    return tuple(k for k, c in enumerate(coefficients, 1) if c is not None)


def functions_of(b: Builder, name: str) -> dict[str, Block]:
    """Return the functions of the Program that calls `name`."""
    if b.functions is None:
        raise AutodiffError(f"the call of function {name!r} is differentiated without the Program that it belongs to")
    return b.functions


def silence_again(b: Builder, made: Operation) -> None:
    """Remove the prints of an operation that runs beside the one that it was made of, which has printed."""
    again = Block()
    again.operations.append(made)
    silence(again, b.functions if b.functions is not None else {})
