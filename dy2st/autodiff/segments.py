"""Loops that keep little for the way back: cut into segments, each a function whose gradient runs it again.

Before                                            After
    %y = while_loop(%p, %x) {checkpoint="sqrt"} {     %y, %m = while_loop(%p, %x, 1) {
        (%x1) -> ...                                      (%x1, %k) -> %q, %x2 = call(%k, %x1) {function="segment_1"}
        return %q, %x2                                    return %q, %x2, %k + 1
    }                                                 }
                                                      func segment_1(%k, %x) { at most %k turns of the old loop }

Reverse mode then keeps what enters each segment, and what it needs of the iterations of one segment at a time: `call`
computes forward values again (`calls.py`). With "sqrt" the segments have 1, 2, 3, ... turns, so t iterations make about
sqrt(2 t) segments and the longest has as many iterations, without t being known before. A number is the length of every
segment. Each iteration runs twice. All of it is ordinary operations, so it is differentiated again like anything else.

Griewank and Walther, "Evaluating Derivatives" (2008), chapter 12, has the theory, and schedules that keep less and run
turns more often.
"""

from __future__ import annotations

from collections.abc import Sequence

from dy2st.autodiff.control import define, new_result, put_before
from dy2st.ir.builder import Builder
from dy2st.ir.checkpoint import KEEP_ALL, SQRT
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import BOOL, INT, ScalarType, Type
from dy2st.ops.control.control_flow import outward, visible_symbols
from dy2st.passes.core.rewrite import renamed_type
from dy2st.passes.remove_prints import runs_twice_unseen
from dy2st.shapes import Extent


def cut(b: Builder, operation: Operation) -> int:
    """Cut a loop into segments in place if it asks for it; return how many results it got behind those that it had.

    A loop whose iterations call Python functions is left as it is: those run once. `b` knows the functions of the
    Program.
    """
    policy = operation.attributes.get("checkpoint", KEEP_ALL)
    functions = b.functions
    if policy == KEEP_ALL or functions is None or not runs_twice_unseen(operation.blocks[0], functions):
        return 0
    name = next(made for i in range(len(functions) + 1) if (made := f"segment_{i}") not in functions)
    first = put_before(operation, "scalar_constant", [], {"value": 1 if policy == SQRT else policy})
    counted = operation.op.is_counted
    outer = _CutCounted(b, operation, name) if counted else _CutWhile(b, operation, name)
    functions[name] = outer.segment()
    extra = outer.iteration(first, 1 if policy == SQRT else 0)
    operation.op, operation.blocks[0] = lookup("while_loop"), outer.b.block
    operation.attributes = {"carried": outer.carried + extra}
    for _ in range(extra):
        new_result(operation, INT)
    return extra


class _Cut:
    """What both kinds of loops have in common: the outer loop's body `b` is being built."""

    def __init__(self, names: Builder, operation: Operation, name: str):
        self.operation, self.name = operation, name
        self.carried: int = operation.attributes["carried"]
        self.body = operation.blocks[0]
        self.given = operation.operands[1:]
        self.b = self._builder(names)

    def _builder(self, like: Builder) -> Builder:
        made = Builder(names=like.names)
        made.location = self.operation.location
        return made

    def enter(self, b: Builder, arguments: Sequence[Value]) -> list[Value]:
        """Make arguments like those of the old body, under new names for the extents that change from iteration to
        iteration.
        """
        outside = visible_symbols([v.type for v in self.given])
        inside = visible_symbols([a.type for a in arguments])
        fresh: dict[str, Extent] = {name: b.names.symbol() for name in sorted(inside - outside)}
        return [b.argument(renamed_type(a.type, fresh), a.name) for a in arguments]

    def call(self, operands: Sequence[Value], results: Sequence[Type]) -> list[Value]:
        """Emit the call of a segment."""
        seen = visible_symbols([v.type for v in operands])
        types = tuple(outward(t, seen) for t in results)
        return self.b.operation("call", operands, {"function": self.name, "types": types}).results

    def finish(self, taken: list[Value], moving: list[Value], first: list[Value], results: list[Value]) -> int:
        """Set what the outer loop carries: the values of the old one, then numbers of its own that start as `first`."""
        n = self.carried
        self.b.block.arguments[:] = [*taken[:n], *moving, *taken[n:]]
        self.b.block.results = results
        self.operation.operands[1 + n : 1 + n] = first
        return len(moving)


class _CutWhile(_Cut):
    """A `while_loop`: a segment ends when its iterations are used up, or the loop does."""

    def segment(self) -> Block:
        """Return the function (limit, carried, invariants) -> (go on, carried)."""
        f = self._builder(self.b)
        limit, taken = f.argument(INT), self.enter(f, self.body.arguments)
        iteration = Builder(self.body, names=f.names)
        iteration.location = f.location
        count, last, most = iteration.argument(INT), iteration.argument(BOOL), iteration.argument(INT)
        n = self.carried
        self.body.arguments[:] = [count, last, *self.body.arguments[:-3], most]
        more, again = iteration.scalar_add(count, 1), _as_bool(iteration, self.body.results[0])
        go = iteration.scalar_and(again, iteration.scalar_lt(more, most))
        self.body.results = [go, more, again, *self.body.results[1:]]
        yes = f.scalar(True)
        operands = [yes, f.scalar(0), yes, *taken, limit]
        f.block.results = f.operation("while_loop", operands, {"carried": n + 2}, [self.body]).results[1:]
        return f.block

    def iteration(self, first: Value, growth: int) -> int:
        """Fill the outer body; return how many numbers it carries."""
        n = self.carried
        taken = self.enter(self.b, self.body.arguments[2:-1])
        limit = self.b.argument(INT)
        again, *leaving = self.call([limit, *taken], [BOOL, *(a.type for a in self.body.arguments[2 : 2 + n])])
        if not isinstance(self.operation.operands[0].type, ScalarType):
            self.operation.operands[0] = put_before(self.operation, "item", self.operation.operands[:1], {})
        results = [again, *leaving, self.b.scalar_add(limit, growth)]
        return self.finish(taken, [limit], [first], results)


class _CutCounted(_Cut):
    """A `counted_while`: a segment has the iterations from number `done` on, as many as it may and as are left."""

    def segment(self) -> Block:
        """Return the function (number of the first iteration, count, carried, invariants) -> carried."""
        f = self._builder(self.b)
        first, count = f.argument(INT), f.argument(INT)
        index, *old = self.body.arguments
        taken = self.enter(f, old)
        start, i = self.body.add_argument(INT), self.body.add_argument(INT, "t")
        self.body.arguments[:] = [i, index, *old, start]
        step = "scalar_sub" if self.operation.attributes["reverse"] else "scalar_add"
        define(self.operation, self.body, index, step, [start, i], {})
        attributes = {"carried": self.carried, "reverse": False}
        f.block.results = f.operation("counted_while", [count, *taken, first], attributes, [self.body]).results
        return f.block

    def iteration(self, first: Value, growth: int) -> int:
        """Fill the outer body; return how many numbers it carries."""
        b, n, reverse = self.b, self.carried, self.operation.attributes["reverse"]
        taken = self.enter(b, self.body.arguments[1:-1])
        limit, done, total = b.argument(INT), b.argument(INT), b.argument(INT)
        count = b.scalar_min(limit, b.scalar_sub(total, done))
        after = b.scalar_add(done, count)
        start = b.scalar_sub(b.scalar_sub(total, 1), done) if reverse else done
        leaving = self.call([start, count, *taken], [a.type for a in self.body.arguments[1 : 1 + n]])
        results = [b.scalar_lt(after, total), *leaving, b.scalar_add(limit, growth), after]
        zero = put_before(self.operation, "scalar_constant", [], {"value": 0})
        iterations = self.operation.operands[0]
        self.operation.operands[0] = put_before(self.operation, "scalar_lt", [zero, iterations], {})
        self.operation.operands.append(iterations)
        return self.finish([*taken, total], [limit, done], [first, zero], results)


def _as_bool(b: Builder, predicate: Value) -> Value:
    """Return a predicate as a Python bool."""
    number = predicate if isinstance(predicate.type, ScalarType) else b.emit("item", [predicate])
    return number if number.type == BOOL else b.scalar_bool(number)
