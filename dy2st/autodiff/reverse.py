"""Reverse mode: pull cotangents back through the operations of a block, last to first.

For each operation the jvp rule is run on placeholder tangents; the linear operations that it emits are transposed at
once into the backward builder. What the rule needs of the forward values is captured by that builder as residuals.

A cotangent is None (a zero known while building), a value, or an optional: a zero known only when running, as for what
only an untaken branch used. The VJP through an operation whose result has an optional cotangent stands under
`cond`, so that nothing is computed, and no NaN made, from a zero that is not there. One such `cond` is kept open
(`open_cond.py`) for as long as the operations before it have their cotangents from inside of it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import cast

from dy2st.autodiff.activity import active_values
from dy2st.autodiff.cotangents import (
    Cotangents,
    accumulate,
    branch_on,
    close_cond,
    conform,
    dense_or_zeros,
    may_miss,
    payload_of,
    set_flag,
)
from dy2st.autodiff.open_cond import Flag, OpenCond
from dy2st.autodiff.prune import hoist
from dy2st.autodiff.refusal import no_rule
from dy2st.autodiff.residuals import LinearTrace
from dy2st.autodiff.scatter import pour, reads_part
from dy2st.autodiff.try_to_cond import unwind_here
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ListType, VariantType, is_differentiable, tangent_type
from dy2st.ops.control.list_cotangents import ListTake
from dy2st.ops.core.base import Op
from dy2st.passes.core.base import innermost_first
from dy2st.passes.simplify.fuse_attention import bring_together

__all__ = ["CONTROL", "Cotangents", "Frontier", "accumulate", "close_cond", "pull_back", "set_flag"]

ControlRule = Callable[["Frontier", Operation, Sequence[Value | None]], None]
CONTROL: dict[str, ControlRule] = {}
"""The VJPs of ops with sub-blocks, filled by `control.py`, `loops.py` and `calls.py`."""


def pull_back(
    b: Builder, block: Block, roots: Iterable[Value], cts: Cotangents, blocked: Collection[Value] = ()
) -> Cotangents:
    """Emit the cotangents of `roots` from those of values of `block`; roots without one are absent.

    Through `blocked` values no cotangent passes.
    """
    roots = list(roots)
    unwind_here(b, block)
    hoist(b, block)
    for inner in innermost_first(block):
        bring_together(inner, (*roots, *cts, *blocked))
    return pull_block(b, block, roots, cts, blocked)


def pull_block(
    b: Builder, block: Block, roots: Iterable[Value], cts: Cotangents, blocked: Collection[Value] = ()
) -> Cotangents:
    """Do so for a block of which nothing is to be moved any more."""
    roots = list(roots)
    active = active_values(block, roots)
    active.difference_update(blocked)
    frontier = Frontier(b, active, frozenset(roots))
    frontier.cts.update(cts)
    for operation in reversed(list(block.operations)):
        frontier.pull(operation)
    frontier.close_all()
    return {v: frontier.cts[v] for v in roots if v in frontier.cts}


class Frontier:
    """The cotangents of the values of one block that are not pulled back yet, as values of the builder `b`."""

    def __init__(self, b: Builder, active: set[Value], roots: frozenset[Value]):
        self.b, self.active, self.roots = b, active, roots
        self.cts: Cotangents = {}
        self.guards: dict[Value, OpenCond] = {}
        self.held: dict[Value, dict[OpenCond, None]] = {}
        """For each value of which an open guard holds a cotangent, the guards that do."""
        self.flags: dict[Value, Flag] = {}
        """For optional cotangents of which it is known: the predicate, and the branch in which they are set."""

    # ---- cotangents ------------------------------------------------------------------------------------------------
    def add(self, value: Value, ct: Value | None, fresh: bool = False) -> None:
        """Add a cotangent of a value, where one can flow; it is `fresh` where nothing else uses it."""
        if ct is None or value not in self.active:
            return
        flag = self.flags.get(ct)
        ct = conform(self.b, ct, value, fresh)
        so_far = self.cts.get(value)
        total = self.cts[value] = accumulate(self.b, so_far, ct)
        if flag is not None and (so_far is None or self.flags.get(so_far) == flag):
            self.flags[total] = flag

    def reaches(self, value: Value) -> bool:
        """Return whether the value has a cotangent here or in an open guard."""
        return value in self.cts or value in self.held

    def take(self, value: Value) -> Value | None:
        """Return the cotangent of a value, which is not needed here any longer."""
        return self.cts.get(value) if value in self.roots else self.cts.pop(value, None)

    def lists_so_far(self, operation: Operation) -> Cotangents:
        """Take the cotangents of list operands, so that a rule adds to them in place of adding whole lists.

        So it is with tensors of which its blocks, or the function that it calls, read parts.
        """
        operands = operation.operands
        given = [v for v in dict.fromkeys(operands) if v in self.cts and v in self.active and operands.count(v) == 1]
        control = operation.blocks or operation.op.is_call
        parts = [v for v in given if control and reads_part(operation, v, self.b.functions)]
        return {v: self.cts.pop(v) for v in given if isinstance(v.type, ListType) or v in parts}

    # ---- operations ------------------------------------------------------------------------------------------------
    def pull(self, operation: Operation) -> None:
        """Emit the cotangents of the operands of one operation, here or in the guard that has those of its results."""
        results = operation.results
        if not any(map(self.reaches, results)):
            return
        guards = list(dict.fromkeys(g for v in results for g in self.held.get(v, ())))
        if len(guards) == 1 and not any(v in self.cts for v in results):
            sides = [side for side in guards[0].sides if any(map(side.reaches, results))]
            if len(sides) == 1:
                self.pull_inside(guards[0], sides[0], operation)
                return
        for guard in guards:
            guard.close()
        cts = [self.take(v) for v in results]
        if any(ct is not None for ct in cts) and any(v in self.active for v in operation.operands):
            before, self.b.location = self.b.location, operation.location
            self.pull_here(operation, cts)
            self.b.location = before

    def pull_inside(self, guard: OpenCond, side: Frontier, operation: Operation) -> None:
        """Pull an operation back in one branch of an open guard."""
        guard.lend_lists(operation)
        side.pull(operation)
        for value in operation.results:
            if not side.reaches(value):
                self.held.pop(value, None)
        self.note(guard, operation.operands)

    def note(self, guard: OpenCond, values: Iterable[Value]) -> None:
        """Note which values have a cotangent in a guard."""
        for value in values:
            if any(side.reaches(value) for side in guard.sides):
                self.held.setdefault(value, {})[guard] = None

    def pull_here(self, operation: Operation, cts: Sequence[Value | None]) -> None:
        results = operation.results
        loose = [i for i, v in enumerate(results) if may_miss(cts[i], v)]
        if loose and self.pull_guarded(operation, cts, loose):
            return
        rule = CONTROL.get(operation.name)
        if rule is not None:
            rule(self, operation, cts)
            return
        if operation.blocks:
            raise no_rule(operation)
        given = [
            dense_or_zeros(self.b, ct, v) if i in loose and ct is not None else ct
            for i, (ct, v) in enumerate(zip(cts, results, strict=True))
        ]
        operands = list(operation.operands)
        so_far = self.lists_so_far(operation)
        before = len(self.b.block.operations)
        found = transpose_rule(self.b, operation, self.active, given, so_far)
        made = self.b.block.operations[before:]
        for operand, ct in zip(operands, found, strict=True):
            if ct is not None and found.count(ct) == 1 and pour(self.b, self.cts.get(operand), ct, operand, made):
                self.cts[operand] = ct
            else:
                self.add(operand, ct)

    def pull_guarded(self, operation: Operation, cts: Sequence[Value | None], loose: Sequence[int]) -> bool:
        """Pull an operation back under the flag of its results' cotangents, where these are all missing together."""
        given = [i for i, ct in enumerate(cts) if ct is not None]
        flags = {self.flag_of(cts[i]) for i in given}
        if len(loose) < len(given) or len(flags) > 1:
            return False
        guard, which = self.guard_of(next(iter(flags)))
        side = guard.sides[which]
        for i in given:
            ct = cts[i]
            assert ct is not None
            side.cts[operation.results[i]] = payload_of(side.b, ct, operation.results[i])
        self.pull_inside(guard, side, operation)
        for i in given:
            side.cts.pop(operation.results[i], None)  # a root has its cotangent outside
        return True

    # ---- guards ----------------------------------------------------------------------------------------------------
    def flag_of(self, ct: Value | None) -> Flag:
        """Return when an optional cotangent is set: a predicate and a branch; itself where nothing more is known."""
        assert ct is not None
        return self.flags.get(ct, (ct, 0))

    def guard_of(self, flag: Flag) -> tuple[OpenCond, int]:
        """Return the open guard for a flag, and the branch of it."""
        key, which = flag
        guard = self.guards.get(key)
        if guard is None:
            predicate = set_flag(self.b, key) if isinstance(key.type, VariantType) else key
            guard = OpenCond(self, key, predicate, [self.side(self.b.child()) for _ in range(2)])
            self.guards[key] = guard
        return guard, which

    def side(self, b: Builder) -> Frontier:
        """Return an empty frontier of the same values for a block inside this one."""
        return Frontier(b, self.active, self.roots)

    def open(self, key: Value, sides: list[Frontier]) -> OpenCond:
        """Open a guard on the predicate `key` over branches in which something was emitted already."""
        if key in self.guards:
            self.guards[key].close()
        guard = self.guards[key] = OpenCond(self, key, key, sides)
        self.note(guard, dict.fromkeys(v for side in sides for v in (*side.cts, *side.held)))
        return guard

    def close_all(self) -> None:
        """Close every guard, so that all cotangents are here."""
        while self.guards:
            next(iter(self.guards.values())).close()


def transpose_rule(
    b: Builder, operation: Operation, active: set[Value], cts: Sequence[Value | None], so_far: Cotangents
) -> Sequence[Value | None]:
    """Emit the cotangents of the operands of one op; those in `so_far` (lists) are added to."""
    op = operation.op
    assert isinstance(op, Op)
    wanted = [v in active and is_differentiable(v.type) for v in operation.operands]
    direct = op.pull(b, operation.operands, cts, wanted, **operation.attributes)
    if direct is not None:
        return direct
    trace = LinearTrace(b, operation)
    tangents = [
        trace.tangent(tangent_type(v.type)) if flows else None
        for v, flows in zip(operation.operands, wanted, strict=True)
    ]
    out = op.jvp(trace, operation.operands, tangents, operation.results, **operation.attributes)
    outs = cast("Sequence[Value | None]", out if isinstance(out, (list, tuple)) else [out])
    linear: Cotangents = {t: so_far[v] for t, v in zip(tangents, operation.operands, strict=True) if t and v in so_far}
    for tangent, ct in zip(outs, cts, strict=True):
        if tangent is not None and ct is not None:
            linear[tangent] = accumulate(b, linear.get(tangent), ct)
    for made in reversed(trace.block.operations):
        given = [linear.get(v) for v in made.results]
        if any(ct is not None for ct in given):
            _transpose(b, made, trace.block, given, linear)
    return [None if t is None else linear.get(t) for t in tangents]


def _transpose(b: Builder, made: Operation, block: Block, given: Sequence[Value | None], linear: Cotangents) -> None:
    op = made.op
    assert isinstance(op, Op)
    flags = [v.block is block for v in made.operands]
    if isinstance(op, ListTake):
        slots = made.operands[0]
        linear[slots] = op.transpose_into(b, linear.get(slots), given, made.operands)
        return
    ct = given[0]
    if len(given) == 1 and ct is not None and may_miss(ct, made.results[0]):
        found = _lifted(b, ct, made, flags)
    else:
        found = op.transpose(b, given, made.operands, flags, **made.attributes)
    for operand, flag, one in zip(made.operands, flags, found, strict=False):
        if flag and one is not None:
            linear[operand] = accumulate(b, linear.get(operand), one)


def _lifted(b: Builder, ct: Value, made: Operation, flags: Sequence[bool]) -> Sequence[Value | None]:
    """Emit the transpose of a linear op under `cond`, on the payload of an optional cotangent."""
    assert isinstance(made.op, Op)
    predicate, then = set_flag(b, ct), b.child()
    payload = payload_of(then, ct, made.results[0])
    found = list(made.op.transpose(then, [payload], made.operands, flags, **made.attributes))
    found += [None] * (len(made.operands) - len(found))
    likes = [v.type for v in made.operands]
    return branch_on(b, predicate, then, b.child(), found, [None] * len(found), likes)
