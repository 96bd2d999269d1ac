"""`try` without exceptions: what a `raise` skips stands under a `cond`, so that derivatives need no rule for it.

Before                                              After
    %y = try(%x) {                                      %r, %d = cond(%p, %x) {
      body (%x1):                                         then (%x1): return variant_new(%x1) {tag=1}, unset
        cond(%p, %x1) {                                   else (%x1): return unset, mul(%x1, 2)
          then (%x2): raise(%x2) {label=0}              }
          else (%x2): return mul(%x2, 2)                %y = cond(scalar_eq(variant_tag(%r), 0), %r, %d) {
        }                                                 then (%r1, %d1): return neg(variant_get(%d1))
        return neg(%d)                                    else (%r1, %d1): return mul(variant_get(%r1), 100)
      handler (%e, %x1): return mul(%e, 100)            }
    }

What comes to its end or raises (`outcomes.py`) gives a variant of what was handed over: unset where nothing was raised,
else an alternative for each `try` that is open. What it would have given besides are optionals.

1. `raise`: the variant is what it hands over; what follows is dropped.
2. A `cond` gives the outcome of the block that ran.
3. A `try` of kinds is asked first whether its body would raise; then it is a `cond` on the answer. Any other one gives
   the outcome of its body, or that of its handler where its own label was raised.
4. A loop carries the variant; it ends (`while_loop`), or turns without doing anything (`counted_while`).

What follows such an operation, up to the next one, is one `cond`: they stand one behind the other, so that the size is
that of the `try`, however many may raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dy2st.autodiff.cotangents import close_cond
from dy2st.autodiff.outcomes import (
    Behind,
    Mapping,
    TryOutcome,
    handed_over,
    kind_of_raised,
    nothing_raised,
    raised_for,
    taken_over,
    unset,
    wrapped,
)
from dy2st.ir.builder import Builder, Names
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import TensorType, Type, VariantType, is_differentiable

Raised = tuple[Value, Mapping]
"""What an operation handed over, unset where it came to its end, and what it gave then, as optionals."""


def has_attempts(program: Program) -> bool:
    """Return whether there is a `try` in a Program."""
    return any(operation.op.is_try for block in program.functions.values() for operation in block.walk())


def unwound(program: Program, names: Names) -> Program:
    """Return a Program that does the same, and in which a `try` gives nothing but a bool."""
    unwind = _Unwind(names)
    return Program({name: unwind.closed(block) for name, block in program.functions.items()}, program.entry)


def unwind_here(b: Builder, block: Block) -> None:
    """Do so in place for a block that is being built; its values stay what they are.

    `b` is the builder of the Program that the block belongs to.
    """
    unwind = _Unwind(b.names)
    for operation in list(block.operations):
        if not _holds_attempt(operation):
            continue
        here, before = Builder(block, names=b.names), len(block.operations)
        here.functions = b.functions
        unwind.operation(here, operation, {v: v for v in operation.operands})
        *made, last = block.operations[before:]
        del block.operations[before:]
        at = block.operations.index(operation)
        block.operations[at:at] = made
        operation.op, operation.operands = last.op, last.operands
        operation.attributes, operation.blocks = last.attributes, last.blocks


def _holds_attempt(operation: Operation) -> bool:
    """Return whether there is a `try` in an operation through which a derivative may flow."""
    inside = (o for block in operation.blocks for o in block.walk())
    return any(o.op.is_try and any(map(_flows, o.results)) for o in (operation, *inside))


def _flows(value: Value) -> bool:
    return is_differentiable(value.type)


def _is_attempt(operation: Operation) -> bool:
    return operation.op.is_try and operation.attributes["label"] is not None


def _handed(attempt: Operation) -> Sequence[Value]:
    """Return the arguments of a handler that stand for what was handed over."""
    arguments = attempt.blocks[1].arguments
    return arguments[: len(arguments) - len(attempt.operands)]


def _lines(operations: Sequence[Operation], raises: Callable[[Operation], bool]) -> list[list[Operation]]:
    """Cut operations behind each one that may raise; what follows a `raise` is dropped."""
    lines: list[list[Operation]] = [[]]
    for operation in operations:
        lines[-1].append(operation)
        if raises(operation):
            lines.append([])
            if operation.op.is_raise:
                break
    return lines


def _last_uses(lines: Sequence[Sequence[Operation]], results: Sequence[Value]) -> dict[Value, int]:
    """Return in which line each value is used last."""
    uses = {v: i for i, line in enumerate(lines) for operation in line for v in operation.operands}
    return uses | dict.fromkeys(results, len(lines))


class _Unwind:
    def __init__(self, names: Names):
        self.names = names
        self.kind: VariantType | None = None
        """The type of what is handed over to one of the `try` around, or in, what is being copied."""
        self.numbers: dict[Operation, int] = {}
        """The alternatives of that type, by the `try` that they are for."""
        self.open: dict[int, Operation] = {}
        """The `try` that catch each label where the copy has come to."""
        self._escaping: dict[Operation, frozenset[int]] = {}

    # ---- copies ----------------------------------------------------------------------------------------------------
    def closed(self, block: Block) -> Block:
        """Return a copy of a closed block."""
        b = Builder(Block(), None, self.names)
        mapping = {a: b.argument(a.type, a.name) for a in block.arguments}
        for operation in block.operations:
            self.operation(b, operation, mapping)
        b.block.results = [mapping[v] for v in block.results]
        return b.block

    def operation(self, b: Builder, operation: Operation, mapping: Mapping) -> None:
        """Copy an operation that raises no label that is looked for."""
        before, b.location = b.location, operation.location
        if _is_attempt(operation):
            self.define(b, operation, self.attempt(b, operation, mapping), mapping)
        elif operation.op.is_try:
            self.define(b, operation, self.asked(b, operation, mapping), mapping)
        else:
            inside = any(inner.op.is_try for block in operation.blocks for inner in block.walk())
            blocks = [self.closed(block) if inside else clone_block(block) for block in operation.blocks]
            operands = [mapping[v] for v in operation.operands]
            made = b.operation(operation.op, operands, dict(operation.attributes), blocks, operation.location)
            self.define(b, operation, made.results, mapping)
        b.location = before

    def define(self, b: Builder, operation: Operation, results: Sequence[Value], mapping: Mapping) -> None:
        for old, new in zip(operation.results, results, strict=True):
            if new.operation is not None and new.block is b.block:
                new.name = old.name
                b.retype(new, old.type)
            mapping[old] = new

    # ---- what may raise --------------------------------------------------------------------------------------------
    def raises(self, operation: Operation) -> bool:
        """Return whether an operation may raise what one of the open `try` catches."""
        return not self.escaping(operation).isdisjoint(self.open)

    def escaping(self, operation: Operation) -> frozenset[int]:
        """Return the labels of each `raise` in an operation that nothing in it catches."""
        found = self._escaping.get(operation)
        if found is None:
            if operation.op.is_raise:
                found = frozenset([operation.attributes["label"]])
            else:
                inside = [frozenset[int]().union(*map(self.escaping, block.operations)) for block in operation.blocks]
                if _is_attempt(operation):
                    inside[0] -= {operation.attributes["label"]}
                found = frozenset[int]().union(*inside)
            self._escaping[operation] = found
        return found

    def nothing(self, b: Builder) -> Value:
        """Emit that nothing was handed over."""
        assert self.kind is not None
        return handed_over(b, self.kind, 0, [])

    def run(
        self, b: Builder, operations: Sequence[Operation], results: Sequence[Value], mapping: Mapping
    ) -> TryOutcome:
        """Emit operations of which some may raise, one `cond` for each line that ends in one."""
        lines = _lines(operations, self.raises)
        last = _last_uses(lines, results)
        raised: Value | None = None
        optionals: Mapping = {}
        for at, line in enumerate(lines[:-1]):
            if raised is None:
                raised, made = self.line(b, line, mapping)
                optionals.update(made)
                continue
            going, caught = b.child(), b.child()
            behind = Behind(going, mapping, optionals)
            later, made = self.line(going, line, behind)
            kept = [v for operation in line for v in operation.results if last.get(v, 0) > at]
            going.block.results = [going.use(later), *wrapped(going, [made.get(v) or behind[v] for v in kept], kept)]
            caught.block.results = [caught.use(raised), *unset(caught, kept)]
            raised, *found = close_cond(b, nothing_raised(b, raised), going, caught)
            optionals.update(zip(kept, found, strict=True))
        if raised is None:
            for operation in lines[-1]:
                self.operation(b, operation, mapping)
            raised, lines[-1] = self.nothing(b), []
        if len(lines) > 1 and lines[-2][-1].op.is_raise:  # 1.
            optionals.update(zip(results, unset(b, results), strict=True))
        return self.outcome(raised, lines[-1], results, mapping, optionals)

    def outcome(self, raised: Value, tail: Sequence[Operation], results: Sequence[Value], mapping: Mapping,
                optionals: Mapping) -> TryOutcome:  # fmt: skip
        """Return the outcome of operations of which the last ones are not emitted yet."""

        def finish(b: Builder) -> list[Value]:
            behind = Behind(b, mapping, optionals)
            for operation in tail:
                self.operation(b, operation, behind)
            return [b.use(behind[v]) for v in results]

        made = None if tail else {v: optionals[v] if v in optionals else mapping[v] for v in results}
        return TryOutcome(raised, results, finish, made)

    def line(self, b: Builder, operations: Sequence[Operation], mapping: Mapping) -> Raised:
        """Emit operations of which the last one may raise."""
        *plain, last = operations
        for operation in plain:
            self.operation(b, operation, mapping)
        before, b.location = b.location, last.location
        found = self.raising(b, last, mapping)
        b.location = before
        return found

    def raising(self, b: Builder, operation: Operation, mapping: Mapping) -> Raised:
        """Emit an operation that may raise."""
        if operation.op.is_raise:  # 1.
            attempt = self.open[operation.attributes["label"]]
            given = operation.operands[len(operation.operands) - len(_handed(attempt)) :]
            assert self.kind is not None
            return handed_over(b, self.kind, self.numbers[attempt], [mapping[v] for v in given]), {}
        if operation.op.is_loop:
            return self.loop(b, operation, mapping), {}
        operands = [b.use(mapping[v]) for v in operation.operands]
        if _is_attempt(operation):
            raised, *found = self.handled(b, operation, operands)
        else:  # 2. and 3.
            chosen, *operands = operands if operation.op.is_branch else [self.probe(b, operation, mapping), *operands]
            ways = [b.child() for _ in operation.blocks]
            for way, block in zip(ways, operation.blocks, strict=True):
                self.whole(way, block, dict(zip(block.arguments, operands, strict=True)))
            raised, *found = close_cond(b, chosen, *ways)
        return raised, dict(zip(operation.results, found, strict=True))

    def whole(self, way: Builder, block: Block, entered: Mapping) -> None:
        """Emit a block that gives its outcome."""
        outcome = self.run(way, block.operations, block.results, entered)
        way.block.results = [way.use(outcome.raised), *outcome.optionals(way)]

    # ---- a try -----------------------------------------------------------------------------------------------------
    def attempt(self, b: Builder, operation: Operation, mapping: Mapping) -> Sequence[Value]:
        """Emit a `try` out of which nothing is raised for one around it; return its results."""
        outside = self.kind, self.numbers, self.open
        inside = [o for block in operation.blocks for o in block.walk() if _is_attempt(o)]
        self.numbers = {o: i for i, o in enumerate((operation, *inside), start=1)}
        self.kind = kind_of_raised(b, [[v.type for v in _handed(o)] for o in self.numbers])
        self.open = {}
        operands = [b.use(mapping[v]) for v in operation.operands]
        outcome = self.body(b, operation, operands)
        going, caught = b.child(), b.child()
        going.block.results = outcome.finish(going)
        handler = operation.blocks[1]
        given = self.given(caught, operation, operands, outcome)
        for inner in handler.operations:
            self.operation(caught, inner, given)
        caught.block.results = [caught.use(given[v]) for v in handler.results]
        self.kind, self.numbers, self.open = outside
        return close_cond(b, nothing_raised(b, outcome.raised), going, caught)

    def handled(self, b: Builder, operation: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        """3. Emit a `try` in another one; return what it hands over, and optionals of its results."""
        outcome, label = self.body(b, operation, operands), operation.attributes["label"]
        caught, passed = b.child(), b.child()
        self.whole(caught, operation.blocks[1], self.given(caught, operation, operands, outcome))
        alone = all(self.escaping(o) <= {label} for o in operation.blocks[0].operations)
        values = operation.blocks[0].results
        made = wrapped(passed, outcome.finish(passed), values) if alone else outcome.optionals(passed)
        passed.block.results = [passed.use(outcome.raised), *made]
        return close_cond(b, raised_for(b, outcome.raised, self.numbers[operation]), caught, passed)

    def body(self, b: Builder, operation: Operation, operands: Sequence[Value]) -> TryOutcome:
        """Emit the body of a `try`, in which its label is open."""
        (body, _), outside = operation.blocks, self.open
        self.open = {**outside, operation.attributes["label"]: operation}
        outcome = self.run(b, body.operations, body.results, dict(zip(body.arguments, operands, strict=True)))
        self.open = outside
        return outcome

    def given(self, b: Builder, operation: Operation, operands: Sequence[Value], outcome: TryOutcome) -> Mapping:
        """Return the arguments of a handler in the block where it runs."""
        handed, handler = _handed(operation), operation.blocks[1]
        taken = taken_over(b, outcome.raised, self.numbers[operation], handed)
        return dict(zip(handler.arguments, [*taken, *operands], strict=True))

    # ---- a try of kinds --------------------------------------------------------------------------------------------
    def asked(self, b: Builder, operation: Operation, mapping: Mapping) -> Sequence[Value]:
        """3."""
        chosen = self.probe(b, operation, mapping)
        ways: list[Builder] = []
        for block in operation.blocks:
            way = b.child()
            entered = {a: b.use(mapping[v]) for a, v in zip(block.arguments, operation.operands, strict=True)}
            for inner in block.operations:
                self.operation(way, inner, entered)
            way.block.results = [way.use(entered[v]) for v in block.results]
            ways.append(way)
        return close_cond(b, chosen, *ways)

    def probe(self, b: Builder, operation: Operation, mapping: Mapping) -> Value:
        """Emit a `try` that gives whether the body comes to its end."""
        body, handler = b.child(), b.child()
        entered = {a: b.use(mapping[v]) for a, v in zip(operation.blocks[0].arguments, operation.operands, strict=True)}
        for inner in operation.blocks[0].operations:
            if inner.op.is_try:
                self.probe(body, inner, entered)
            else:
                self.operation(body, inner, entered)
        body.block.results, handler.block.results = [body.scalar(True)], [handler.scalar(False)]
        outer = list(body.captures)
        for way in (body, handler):
            way.block.arguments[:] = [way.use(v) for v in outer]
        return b.operation("try", outer, dict(operation.attributes), [body.block, handler.block]).results[0]

    # ---- loops -----------------------------------------------------------------------------------------------------
    def loop(self, b: Builder, operation: Operation, mapping: Mapping) -> Value:
        """4. Emit a loop; return what it hands over. What it carries is there in any case."""
        counted, carried = operation.op.is_counted, operation.attributes["carried"]
        source = operation.blocks[0]
        assert self.kind is not None
        inner = Builder(Block(), None, self.names)
        inner.location = operation.location
        entered: Mapping = {}
        if counted:
            entered[source.arguments[0]] = inner.argument(source.arguments[0].type)
        raised = inner.argument(self.kind)
        entered |= {a: inner.argument(a.type, a.name) for a in source.arguments[int(counted) :]}
        if counted:
            turned, skipped = inner.child(), inner.child()
            before = source.arguments[1 : 1 + carried]
            turned.block.results = self.iteration(turned, operation, entered)
            skipped.block.results = [skipped.use(raised), *(skipped.use(entered[a]) for a in before)]
            inner.block.results = close_cond(inner, nothing_raised(inner, raised), turned, skipped)
        else:
            inner.block.results = self.iteration(inner, operation, entered)
        first, *others = [mapping[v] for v in operation.operands]
        attributes = {**operation.attributes, "carried": carried + 1}
        made = b.operation(operation.op, [first, self.nothing(b), *others], attributes, [inner.block])
        raised, *left = made.results
        self.define(b, operation, left, mapping)
        return raised

    def iteration(self, b: Builder, operation: Operation, entered: Mapping) -> list[Value]:
        """Emit one iteration; return the next predicate (of a `while_loop`), what was handed over, and what is
        carried.
        """
        counted, carried = operation.op.is_counted, operation.attributes["carried"]
        source = operation.blocks[0]
        outcome = self.run(b, source.operations, source.results, dict(entered))
        going, caught = b.child(), b.child()
        going.block.results = outcome.finish(going)
        before = [caught.use(entered[a]) for a in source.arguments[int(counted) : int(counted) + carried]]
        caught.block.results = before if counted else [_false(caught, source.results[0].type), *before]
        found = close_cond(b, nothing_raised(b, outcome.raised), going, caught)
        return [outcome.raised, *found] if counted else [found[0], outcome.raised, *found[1:]]


def _false(b: Builder, like: Type) -> Value:
    if not isinstance(like, TensorType):
        return b.scalar(False)
    return b.constant(np.zeros([int(str(e)) for e in like.shape], bool), like.dtype)
