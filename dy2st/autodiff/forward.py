"""Forward mode: push tangents through the operations of a block, first to last.

Control flow is rebuilt with the tangents beside the primals, so it needs no tape; sub-blocks are pushed in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dy2st.autodiff.activity import active_carried, active_results
from dy2st.autodiff.cotangents import conform
from dy2st.autodiff.refusal import no_rule
from dy2st.errors import AutodiffError
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import is_differentiable, tangent_type
from dy2st.ops.core.base import Op
from dy2st.passes.remove_prints import silence

Tangents = dict[Value, Value]
Mapping = dict[Value, Value]


def push_forward(
    b: Builder, block: Block, mapping: Mapping | None, tangents: Tangents, stop: int | None = None
) -> None:
    """Emit the tangents of the values of `block`; they enter `tangents`.

    With a `mapping` (old value -> new value, the arguments already in it) the operations are copied into `b`; without
    one, `b` appends to `block` itself and the primal values are there already.
    """
    for operation in block.operations[: len(block.operations) if stop is None else stop]:
        given = [tangents.get(v) for v in operation.operands]
        if any(t is not None for t in given) and any(active_results(operation, set(tangents))):
            _push(b, operation, mapping, tangents, given)
        elif mapping is not None:
            _copy(b, operation, mapping)


def _push(
    b: Builder, operation: Operation, mapping: Mapping | None, tangents: Tangents, given: Sequence[Value | None]
) -> None:
    before, b.location = b.location, operation.location
    primals = [_mapped(v, mapping) for v in operation.operands]
    if operation.op.is_branch:
        _push_cond(b, operation, mapping, tangents, primals, given)
    elif operation.op.is_loop:
        _push_loop(b, operation, mapping, tangents, primals, given)
    elif operation.op.is_call:
        _push_call(b, operation, mapping, tangents, primals, given)
    elif operation.blocks:
        raise no_rule(operation)
    else:
        if mapping is not None:
            _copy(b, operation, mapping)
        outs = [_mapped(v, mapping) for v in operation.results]
        assert isinstance(operation.op, Op)
        made = operation.op.jvp(b, primals, given, outs, **operation.attributes)
        parts = cast("Sequence[Any]", made) if isinstance(made, (list, tuple)) else [made]
        for result, tangent in zip(operation.results, parts, strict=True):
            if tangent is not None:
                tangents[result] = conform(b, tangent, _mapped(result, mapping))
    b.location = before


def _inner(b: Builder) -> Builder:
    """Return a builder of a block of its own, in the name of the same source line."""
    inner = Builder(Block(), None, names=b.names)
    inner.location, inner.functions = b.location, b.functions
    return inner


def _mapped(value: Value, mapping: Mapping | None) -> Value:
    return value if mapping is None else mapping[value]


def _copy(b: Builder, operation: Operation, mapping: Mapping) -> None:
    operands = [mapping[v] for v in operation.operands]
    blocks = [clone_block(inner) for inner in operation.blocks]
    made = b.operation(operation.op, operands, dict(operation.attributes), blocks, operation.location)
    for old, new in zip(operation.results, made.results, strict=True):
        new.name = old.name
        b.retype(new, old.type)
        mapping[old] = new


def _enter(inner: Builder, arguments: Sequence[Value], tangents_of: Sequence[bool]) -> tuple[Mapping, Tangents]:
    """Make the arguments of a rebuilt block: the primals, then a tangent for each that has one."""
    mapping: Mapping = {a: inner.argument(a.type, a.name) for a in arguments}
    tangents: Tangents = {}
    for a, has in zip(arguments, tangents_of, strict=True):
        if has:
            tangents[a] = inner.argument(tangent_type(a.type))
    return mapping, tangents


def _tangent_or_zero(b: Builder, value: Value, mapping: Mapping, tangents: Tangents) -> Value:
    found = tangents.get(value)
    return b.use(found) if found is not None else b.zeros_like(mapping[value])


def _push_cond(
    b: Builder,
    operation: Operation,
    mapping: Mapping | None,
    tangents: Tangents,
    primals: Sequence[Value],
    given: Sequence[Value | None],
) -> None:
    has = [t is not None for t in given[1:]]
    sides: list[tuple[Builder, Mapping, Tangents]] = []
    for block in operation.blocks:
        inner = _inner(b)
        inside, pushed = _enter(inner, block.arguments, has)
        push_forward(inner, block, inside, pushed)
        inner.block.results = [inside[v] for v in block.results]
        sides.append((inner, inside, pushed))
    live = [
        i
        for i, v in enumerate(operation.results)
        if is_differentiable(v.type)
        and any(blk.results[i] in p for blk, (_, _, p) in zip(operation.blocks, sides, strict=True))
    ]
    for block, (inner, inside, pushed) in zip(operation.blocks, sides, strict=True):
        inner.block.results += [_tangent_or_zero(inner, block.results[i], inside, pushed) for i in live]
    operands = [*primals, *(t for t in given[1:] if t is not None)]
    made = b.operation("cond", operands, {}, [inner.block for inner, _, _ in sides], operation.location)
    _leave(b, operation, made, live, mapping, tangents)


def _push_loop(
    b: Builder,
    operation: Operation,
    mapping: Mapping | None,
    tangents: Tangents,
    primals: Sequence[Value],
    given: Sequence[Value | None],
) -> None:
    counted, carried = operation.op.is_counted, operation.attributes["carried"]
    body = operation.blocks[0]
    has = active_carried(operation, {v for v, t in zip(operation.operands, given, strict=True) if t is not None})
    has += [t is not None for t in given[1 + carried :]]
    inner = _inner(b)
    taken = body.arguments[1:] if counted else body.arguments
    inside: Mapping = {body.arguments[0]: inner.argument(body.arguments[0].type)} if counted else {}
    pushed: Tangents = {}
    for group in (slice(0, carried), slice(carried, None)):
        part, more = _enter(inner, taken[group], has[group])
        inside.update(part)
        pushed.update(more)
    push_forward(inner, body, inside, pushed)
    leaving = body.results if counted else body.results[1:]
    live = [i for i in range(carried) if has[i]]
    inner.block.results = [inside[v] for v in body.results]
    inner.block.results += [_tangent_or_zero(inner, leaving[i], inside, pushed) for i in live]
    starts = [given[1 + i] if given[1 + i] is not None else b.zeros_like(primals[1 + i]) for i in live]
    operands = [*primals[: 1 + carried], *starts, *primals[1 + carried :], *(t for t in given[1 + carried :] if t)]
    attributes = {**operation.attributes, "carried": carried + len(live)}
    made = b.operation(operation.op, operands, attributes, [inner.block], operation.location)  # type: ignore[arg-type]
    _leave(b, operation, made, live, mapping, tangents)


def _push_call(
    b: Builder,
    operation: Operation,
    mapping: Mapping | None,
    tangents: Tangents,
    primals: Sequence[Value],
    given: Sequence[Value | None],
) -> None:
    function = pushed_function(b, operation.attributes["function"], [t is not None for t in given])
    live = [i for i, v in enumerate(operation.results) if is_differentiable(v.type)]
    types = [v.type for v in operation.results]
    types += [tangent_type(types[i]) for i in live]
    operands = [*primals, *(t for t in given if t is not None)]
    made = b.operation("call", operands, {"function": function, "types": tuple(types)}, (), operation.location)
    _leave(b, operation, made, live, mapping, tangents)


def pushed_function(b: Builder, name: str, has: Sequence[bool]) -> str:
    """Return the name of the function that computes what `name` does and the tangents of its results beside it.

    Arguments that have a tangent are followed by it; every result that can have a tangent has one.
    """
    functions = functions_of(b, name)
    made = f"{name}__jvp_{''.join(str(int(one)) for one in has)}"
    if made not in functions:
        source, inner = functions[name], _inner(b)
        functions[made] = inner.block  # before it is built: it may call itself
        mapping, tangents = _enter(inner, source.arguments, has)
        push_forward(inner, source, mapping, tangents)
        live = [v for v in source.results if is_differentiable(v.type)]
        inner.block.results = [mapping[v] for v in source.results]
        inner.block.results += [_tangent_or_zero(inner, v, mapping, tangents) for v in live]
    return made


def functions_of(b: Builder, name: str) -> dict[str, Block]:
    """Return the functions of the Program that calls `name`."""
    if b.functions is None:
        raise AutodiffError(f"the call of function {name!r} is differentiated without the Program that it belongs to")
    return b.functions


def _leave(
    b: Builder,
    operation: Operation,
    made: Operation,
    live: Sequence[int],
    mapping: Mapping | None,
    tangents: Tangents,
) -> None:
    """Map the results of the rebuilt operation: primals first, then the tangents of the `live` ones."""
    count = len(operation.results)
    if mapping is not None:
        for old, new in zip(operation.results, made.results[:count], strict=True):
            b.retype(new, old.type)
            mapping[old] = new
    else:
        silence_again(b, made)
    for i, tangent in zip(live, made.results[count:], strict=True):
        tangents[operation.results[i]] = conform(b, tangent, _mapped(operation.results[i], mapping), fresh=True)


def silence_again(b: Builder, made: Operation) -> None:
    """Remove the prints of an operation that runs beside the one that it was made of, which has printed."""
    again = Block()
    again.operations.append(made)
    silence(again, b.functions if b.functions is not None else {})
