"""`try` without exceptions: what a `raise` skips stands under a `cond`, so that derivatives need no rule for it.

Before                                              After
    %y = try(%x) {                                      %o = cond(%p, %x) {
      body (%x1):                                         then (%x1): return variant_new(%x1) {tag=1}
        cond(%p, %x1) {                                   else (%x1): return variant_new() {tag=0}
          then (%x2): raise(%x2) {label=0}              }
          else (%x2):                                   %y = cond(scalar_eq(variant_tag(%o), 1), %o, %x) {
        }                                                 then (%o1, %x1): return mul(variant_get(%o1), 100)
        return mul(%x1, 3)                                else (%o1, %x1): return mul(%x1, 3)
      handler (%e, %x1): return mul(%e, 100)            }
    }

The outcome of a block that may raise under the label is a variant: what the `raise` hands over, or the block's results.

1. `raise`: the outcome is what it hands over; what follows is dropped.
2. A `cond` gives the outcome of the block that ran; what follows runs where that did not raise.
3. A `try` of kinds is asked first whether its body would raise; then it is a `cond` on the answer.
4. A loop carries what was handed over; it ends (`while_loop`), or turns without doing anything (`counted_while`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dy2st.autodiff.cotangents import close_cond
from dy2st.ir.builder import Builder, Names
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import NONE, UNSET, TensorType, TupleType, Type, VariantType, is_differentiable
from dy2st.ops.control import outward

Mapping = dict[Value, Value]
RAISED, FINISHED = 1, 2


def has_attempts(program: Program) -> bool:
    """Say whether there is a `try` in a Program."""
    return any(operation.name == "try" for block in program.functions.values() for operation in block.walk())


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
    """Say whether there is a `try` in an operation through which a derivative may flow."""
    inside = (o for block in operation.blocks for o in block.walk())
    return any(o.name == "try" and any(map(_flows, o.results)) for o in (operation, *inside))


def _flows(value: Value) -> bool:
    return is_differentiable(value.type)


def _is_attempt(operation: Operation) -> bool:
    return operation.name == "try" and operation.attributes["label"] is not None


def _raises(operation: Operation, label: int) -> bool:
    if operation.name == "raise":
        return operation.attributes["label"] == label
    return any(_raises(inner, label) for block in operation.blocks for inner in block.operations)


class _Unwind:
    def __init__(self, names: Names):
        self.names = names

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
        elif operation.name == "try":
            self.define(b, operation, self.asked(b, operation, mapping), mapping)
        else:
            inside = any(inner.name == "try" for block in operation.blocks for inner in block.walk())
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

    # ---- a try -----------------------------------------------------------------------------------------------------
    def attempt(self, b: Builder, operation: Operation, mapping: Mapping) -> Sequence[Value]:
        """Emit a `try`; return its results."""
        body, handler = self.closed(operation.blocks[0]), operation.blocks[1]
        operands = [b.use(mapping[v]) for v in operation.operands]
        count, label = len(handler.arguments) - len(operands), operation.attributes["label"]
        entered = dict(zip(body.arguments, operands, strict=True))
        kind = self.kind([a.type for a in handler.arguments[:count]], operation.results)
        outcome = self.run(b, body.operations, body.results, entered, label, kind)
        caught, going = b.child(), b.child()
        given = dict(zip(handler.arguments, [*_parts(caught, outcome, RAISED), *operands], strict=True))
        for argument in handler.arguments[:count]:
            caught.retype(given[argument], argument.type)
        for inner in handler.operations:
            self.operation(caught, inner, given)
        caught.block.results = [caught.use(given[v]) for v in handler.results]
        going.block.results = _parts(going, outcome, FINISHED)
        return close_cond(b, _has_raised(b, outcome), caught, going)

    def kind(self, handed: Sequence[Type], results: Sequence[Value]) -> VariantType:
        """Return the type of an outcome."""
        kinds = [Builder(Block(), None, self.names).named(_packed(types)) for types in (handed, _types(results))]
        return VariantType((UNSET, *kinds))

    def run(self, b: Builder, operations: Sequence[Operation], results: Sequence[Value], mapping: Mapping, label: int,
            kind: VariantType) -> Value:  # fmt: skip
        """Emit operations of which one may raise the label; return the outcome."""
        for at, operation in enumerate(operations):
            if not _raises(operation, label):
                self.operation(b, operation, mapping)
                continue
            b.location = operation.location
            if operation.name == "raise":  # 1.
                handed = len(_items(kind, RAISED))
                given = operation.operands[len(operation.operands) - handed :]
                return _outcome(b, kind, RAISED, [mapping[v] for v in given])
            inner = VariantType((UNSET, kind.alternatives[RAISED], self.kind([], operation.results).alternatives[2]))
            found = self.compound(b, operation, mapping, label, inner)
            caught, going = b.child(), b.child()
            caught.block.results = [_outcome(caught, kind, RAISED, _parts(caught, found, RAISED))]
            values = dict(mapping)
            self.define(going, operation, _parts(going, found, FINISHED), values)
            rest = self.run(going, operations[at + 1 :], results, values, label, kind)
            going.block.results = [going.use(rest)]
            return close_cond(b, _has_raised(b, found), caught, going)[0]
        return _outcome(b, kind, FINISHED, [mapping[v] for v in results])

    def compound(self, b: Builder, operation: Operation, mapping: Mapping, label: int, kind: VariantType) -> Value:
        """Emit an operation with a `raise` in a block; return the outcome."""
        operands = [b.use(mapping[v]) for v in operation.operands]
        if operation.name in ("while_loop", "counted_while"):
            return self.loop(b, operation, operands, label, kind)
        first = operands[1:] if operation.name == "cond" else operands
        chosen = operands[0] if operation.name == "cond" else self.probe(b, operation, mapping)  # 2. and 3.
        ways: list[Builder] = []
        for block in operation.blocks:
            way = b.child()
            entered = dict(zip(block.arguments, first, strict=True))
            found = self.run(way, block.operations, block.results, entered, label, kind)
            way.block.results = [way.use(found)]
            ways.append(way)
        return close_cond(b, chosen, *ways)[0]

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
            if inner.name == "try":
                self.probe(body, inner, entered)
            else:
                self.operation(body, inner, entered)
        body.block.results, handler.block.results = [body.scalar(True)], [handler.scalar(False)]
        outer = list(body.captures)
        for way in (body, handler):
            way.block.arguments[:] = [way.use(v) for v in outer]
        return b.operation("try", outer, dict(operation.attributes), [body.block, handler.block]).results[0]

    # ---- loops -----------------------------------------------------------------------------------------------------
    def loop(self, b: Builder, operation: Operation, operands: list[Value], label: int, kind: VariantType) -> Value:
        """4."""
        counted, carried = operation.name == "counted_while", operation.attributes["carried"]
        source = operation.blocks[0]
        handed = VariantType((UNSET, kind.alternatives[RAISED]))
        inner = Builder(Block(), None, self.names)
        inner.location = operation.location
        mapping: Mapping = {}
        if counted:
            mapping[source.arguments[0]] = inner.argument(source.arguments[0].type)
        raised = inner.argument(handed)
        mapping |= {a: inner.argument(a.type, a.name) for a in source.arguments[int(counted) :]}
        if counted:
            skipped, turned = inner.child(), inner.child()
            skipped.block.results = [
                skipped.use(raised),
                *(skipped.use(mapping[a]) for a in source.arguments[1 : 1 + carried]),
            ]
            turned.block.results = self.turn(turned, operation, mapping, label, kind, handed)
            inner.block.results = close_cond(inner, _has_raised(inner, raised), skipped, turned)
        else:
            inner.block.results = self.turn(inner, operation, mapping, label, kind, handed)
        start = b.emit("variant_new", [], {"type": handed, "tag": 0})
        attributes = {**operation.attributes, "carried": carried + 1}
        given = [operands[0], start, *operands[1:]]
        raised, *left = b.operation(operation.op, given, attributes, [inner.block]).results
        caught, going = b.child(), b.child()
        caught.block.results = [_outcome(caught, kind, RAISED, _parts(caught, raised, RAISED))]
        going.block.results = [_outcome(going, kind, FINISHED, [going.use(v) for v in left])]
        return close_cond(b, _has_raised(b, raised), caught, going)[0]

    def turn(self, b: Builder, operation: Operation, mapping: Mapping, label: int, kind: VariantType,
             handed: VariantType) -> list[Value]:  # fmt: skip
        """Emit one turn; return the next predicate (of a `while_loop`), what was handed over, and what is carried."""
        counted, carried = operation.name == "counted_while", operation.attributes["carried"]
        source = operation.blocks[0]
        before = [mapping[a] for a in source.arguments[int(counted) : int(counted) + carried]]
        shape = VariantType((UNSET, kind.alternatives[RAISED], self.kind([], source.results).alternatives[2]))
        found = self.run(b, source.operations, source.results, mapping, label, shape)
        caught, going = b.child(), b.child()
        given = _parts(caught, found, RAISED)
        whole = [] if not _items(kind, RAISED) else [caught.emit("tuple_new", given)]
        stop = [] if counted else [_false(caught, source.results[0].type)]
        caught.block.results = [
            *stop,
            caught.emit("variant_new", whole, {"type": handed, "tag": RAISED}),
            *(caught.use(v) for v in before),
        ]
        parts = _parts(going, found, FINISHED)
        unset = going.emit("variant_new", [], {"type": handed, "tag": 0})
        going.block.results = [unset, *parts] if counted else [parts[0], unset, *parts[1:]]
        return close_cond(b, _has_raised(b, found), caught, going)


def _types(values: Sequence[Value]) -> list[Type]:
    return [v.type for v in values]


def _packed(types: Sequence[Type]) -> Type:
    return TupleType(tuple(outward(t, set()) for t in types)) if types else NONE


def _items(kind: Type, tag: int) -> tuple[Type, ...]:
    assert isinstance(kind, VariantType)
    packed = kind.alternatives[tag]
    return packed.items if isinstance(packed, TupleType) else ()


def _outcome(b: Builder, kind: VariantType, tag: int, values: Sequence[Value]) -> Value:
    packed = [b.emit("tuple_new", values)] if values else []
    return b.emit("variant_new", packed, {"type": kind, "tag": tag})


def _parts(b: Builder, outcome: Value, tag: int) -> list[Value]:
    if not _items(outcome.type, tag):
        return []
    packed = b.emit("variant_get", [outcome], {"tag": tag, "message": "a block of a try has another outcome"})
    return b.operation("tuple_get", [packed]).results


def _has_raised(b: Builder, outcome: Value) -> Value:
    return b.emit("scalar_eq", [b.emit("variant_tag", [outcome]), b.scalar(RAISED)])


def _false(b: Builder, like: Type) -> Value:
    if not isinstance(like, TensorType):
        return b.scalar(False)
    return b.constant(np.zeros([int(str(e)) for e in like.shape], bool), like.dtype)
