"""Reverse mode: pull cotangents back through the operations of a block, last to first.

For each operation the jvp rule is run on placeholder tangents; the linear operations that it emits are transposed at
once into the backward builder. What the rule needs of the forward values is captured by that builder as residuals.

A cotangent is None (a zero known while building), a value, or an optional: a zero known only when running, as for what
only an untaken branch used. The pull-back through an operation whose result has an optional cotangent stands under
`cond`, so that nothing is computed, and no NaN made, from a zero that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from dy2st.autodiff.activity import active_values
from dy2st.autodiff.residuals import LinearTrace
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import ListType, TensorType, is_differentiable, is_optional, optional, tangent_type
from dy2st.ops.base import Op
from dy2st.ops.lists import ListTake

Cotangents = dict[Value, Value]
ControlRule = Callable[[Builder, Operation, set[Value], Sequence[Value | None]], Sequence[Value | None]]
CONTROL: dict[str, ControlRule] = {}
"""The pull-backs of ops with sub-blocks, filled by `control.py`."""


def pull_back(
    b: Builder, block: Block, roots: Iterable[Value], cts: Cotangents, blocked: Collection[Value] = ()
) -> Cotangents:
    """Emit the cotangents of `roots` from those of values of `block`; roots without one are absent.

    Through `blocked` values no cotangent passes.
    """
    roots = list(roots)
    active = active_values(block, roots)
    active.difference_update(blocked)
    cts = dict(cts)
    for operation in reversed(list(block.operations)):
        given = [cts.get(v) for v in operation.results]
        if all(ct is None for ct in given) or not any(v in active for v in operation.operands):
            continue
        before, b.location = b.location, operation.location
        operands = list(operation.operands)  # a loop gets more of them, its tapes
        for operand, ct in zip(operands, pull_operation(b, operation, active, given)):
            if ct is not None and operand in active:
                cts[operand] = accumulate(b, cts.get(operand), ct)
        b.location = before
    return {v: cts[v] for v in roots if v in cts}


def pull_operation(
    b: Builder, operation: Operation, active: set[Value], cts: Sequence[Value | None]
) -> Sequence[Value | None]:
    """Emit the cotangents of the operands of one operation."""
    rule = CONTROL.get(operation.name)
    if rule is not None:
        return rule(b, operation, active, cts)
    missing = [
        i
        for i, (ct, v) in enumerate(zip(cts, operation.results))
        if ct is not None and is_optional(ct.type) and not is_optional(v.type)
    ]
    if missing and len(cts) == 1:
        return lift(b, cts[0], lambda inner, ct: pull_operation(inner, operation, active, [ct]))  # type: ignore[arg-type]
    if missing:
        cts = [b.variant_or_zeros(ct, operation.results[i], tag=1) if i in missing else ct for i, ct in enumerate(cts)]
    return _transpose_rule(b, operation, active, cts)


def _transpose_rule(
    b: Builder, operation: Operation, active: set[Value], cts: Sequence[Value | None]
) -> Sequence[Value | None]:
    op = operation.op
    assert isinstance(op, Op)
    trace = LinearTrace(b, [v.type for v in operation.results])
    tangents = [
        trace.tangent(tangent_type(v.type)) if v in active and is_differentiable(v.type) else None
        for v in operation.operands
    ]
    out = op.jvp(trace, operation.operands, tangents, operation.results, **operation.attributes)
    outs = out if isinstance(out, (list, tuple)) else [out]
    linear: Cotangents = {}
    for tangent, ct in zip(outs, cts):
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
        so_far = linear.get(made.operands[0])
        linear[made.operands[0]] = op.transpose_into(b, so_far, given, made.operands)[0]  # type: ignore[assignment]
        return
    ct = given[0]
    if len(given) == 1 and ct is not None and is_optional(ct.type) and not is_optional(made.results[0].type):
        found = lift(b, ct, lambda inner, c: op.transpose(inner, [c], made.operands, flags, **made.attributes))
    else:
        found = op.transpose(b, given, made.operands, flags, **made.attributes)
    for operand, flag, one in zip(made.operands, flags, found):
        if flag and one is not None:
            linear[operand] = accumulate(b, linear.get(operand), one)


def accumulate(b: Builder, so_far: Value | None, ct: Value) -> Value:
    """Emit the sum of two cotangents, either of which may be optional or a list."""
    if so_far is None:
        return ct
    if isinstance(ct.type, TensorType) and so_far.type == ct.type:
        return b.emit("add", [so_far, ct])
    return b.emit("optional_add", [so_far, ct])


def lift(b: Builder, ct: Value, rule: Callable[[Builder, Value], Sequence[Value | None]]) -> Sequence[Value | None]:
    """Emit `rule` on the payload of an optional cotangent under `cond`; what it gives is optional in turn."""
    is_set = set_flag(b, ct)
    then = b.child()
    found = rule(then, then.emit("variant_get", [ct], {"tag": 1, "message": "an unset cotangent was read"}))
    return branch_on(b, is_set, then, b.child(), found, [None] * len(found))


def set_flag(b: Builder, ct: Value) -> Value:
    """Emit the bool that says whether an optional is set."""
    return b.scalar_eq(b.variant_tag(ct), 1)


def branch_on(
    b: Builder,
    predicate: Value,
    then: Builder,
    other: Builder,
    left: Sequence[Value | None],
    right: Sequence[Value | None],
) -> list[Value | None]:
    """Emit `cond` over two finished branches of cotangents; where one branch has none, the result is optional."""
    kept = [i for i, pair in enumerate(zip(left, right)) if pair != (None, None)]
    for i in kept:
        ours, theirs = align(then, other, left[i], right[i])
        then.block.results.append(ours)
        other.block.results.append(theirs)
    results = close_cond(b, predicate, then, other)
    found: list[Value | None] = [None] * len(left)
    for i, value in zip(kept, results):
        found[i] = value
    return found


def align(then: Builder, other: Builder, left: Value | None, right: Value | None) -> tuple[Value, Value]:
    """Bring the cotangents of two branches to one type: both dense, or both optional."""
    some = left if left is not None else right
    assert some is not None
    if left is not None and right is not None and is_optional(left.type) == is_optional(right.type):
        return then.use(left), other.use(right)
    of = optional(some.type)
    return as_optional(then, left, of), as_optional(other, right, of)


def as_optional(b: Builder, ct: Value | None, of: object) -> Value:
    """Emit a cotangent as an optional of type `of`; None is unset."""
    if ct is None:
        return b.emit("variant_new", [], {"type": of, "tag": 0})
    return b.use(ct) if is_optional(ct.type) else b.emit("variant_new", [ct], {"type": of, "tag": 1})


def close_cond(b: Builder, predicate: Value, then: Builder, other: Builder) -> list[Value]:
    """Emit `cond` over two child builders: both blocks get the union of what either captured, in one order."""
    outer = list(dict.fromkeys([*then.captures, *other.captures]))
    for child in (then, other):
        for value in outer:
            child.use(value)
        child.block.arguments[:] = [child.captures[v] for v in outer]
    return b.operation("cond", [predicate, *outer], {}, [then.block, other.block]).results


def zero_cotangent(b: Builder, like: Value) -> Value:
    """Emit a zero cotangent for a value that exists."""
    if isinstance(like.type, ListType):
        return b.emit("list_new", [], {"type": tangent_type(like.type)})
    if not isinstance(like.type, TensorType):
        raise AutodiffError(f"a value of type {like.type} has no dense zero cotangent")
    return b.zeros_like(like)
