"""Branches, loops, calls, `try` and what only Python can do: printing and raising."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.program import Operation, Value
from dy2st.ir.types import BOOL, ScalarType, TensorType, Type
from dy2st.ops.control.try_ import handed_over
from dy2st.runtime.backends.cpu.allocator.refcounted_blocks import DEPTH, RAISED, STACK
from dy2st.runtime.backends.cpu.emitter.function_emitter import FunctionEmitter
from dy2st.runtime.backends.cpu.emitter.host_calls import host_call
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import (
    Components,
    element_kind,
    function_name,
    in_registers,
    is_small,
    kinds,
)
from dy2st.runtime.backends.cpu.ops.control.closed_form_loops import write_closed_form
from dy2st.runtime.backends.cpu.ops.control.deferred_accumulation import deferred_sums
from dy2st.runtime.backends.cpu.ops.control.input_projection_batching import hoisted_projections
from dy2st.runtime.backends.cpu.ops.control.parallel_loops import parallel_loop
from dy2st.runtime.backends.cpu.ops.control.prepacked_weights import hand_on_packed, prepacked_weights
from dy2st.runtime.backends.cpu.ops.control.safepoints import safepoints
from dy2st.runtime.backends.cpu.ops.registry import rule
from dy2st.runtime.backends.cpu.python_abi.host_callbacks import HostCallback
from dy2st.runtime.interpreter.error_locations import too_deep

DEEPEST = 900
"""How many calls of functions of a Program may be in progress; Python's own functions may nest about as deeply."""
Made = Sequence[Components]


def truth(w: FunctionEmitter, value: Value, components: Components, operation: Operation) -> str:
    """Return the truth of a predicate: a number, or a tensor of one element."""
    t = value.type
    if isinstance(t, ScalarType):
        return _not_zero(w, {"int": "i64", "float": "double", "bool": "i1"}[t.kind], components[0])
    if isinstance(t, TensorType) and in_registers(t) and len(components) == 1:
        return _not_zero(w, element_kind(t.dtype), components[0])
    ask = HostCallback(lambda x: (bool(x),), (t,), (BOOL,), operation.location)
    return w.host(ask, [components])[0][0]


def _not_zero(w: FunctionEmitter, kind: str, register: str) -> str:
    if kind == "i1":
        return register
    return w.f.value(
        f"fcmp une {kind} {register}, 0.0" if kind in ("float", "double") else f"icmp ne {kind} {register}, 0"
    )


@rule("cond", carries=True)
def cond(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a choice; a branch takes over what is used last here."""
    f = w.f
    predicate = truth(w, operation.operands[0], operands[0], operation)
    passed = operation.operands[1:]
    single = {v for v in passed if passed.count(v) == 1 and v is not operation.operands[0]}
    owned = [v in single and w.takes(v) for v in passed]
    types = [v.type for v in operation.results]
    kept = [w.slots(t) for t in types]
    labels, join = [f.label("then"), f.label("else")], f.label("join")
    f.branch(predicate, *labels)
    hand_on_packed(w, operation)
    for label, block in zip(labels, operation.blocks, strict=True):
        f.start(label)
        made = w.block(block, list(zip(operands[1:], owned, strict=True)))
        for slots, t, components in zip(kept, types, made, strict=True):
            w.put(slots, t, components)
        f.jump(join)
    f.start(join)
    return [w.get(slots, t) for slots, t in zip(kept, types, strict=True)]


@rule("while_loop", carries=True)
def while_loop(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a loop whose body gives (predicate, *carried)."""
    shared = parallel_loop(w, operation, operands, while_loop)
    if shared is not None:
        return shared
    count, f = operation.attributes["carried"], w.f
    predicate = truth(w, operation.operands[0], operands[0], operation)
    types = _carried_types(operation)
    kept = _start(w, operation, operands, types)
    iteration, done, turned = f.label("turn"), f.label("done"), safepoints(w, operation)
    with (
        deferred_sums(w, operation, kept),
        prepacked_weights(w, operation),
        hoisted_projections(w, operation, operands),
    ):
        write_closed_form(w, operation, predicate, operands, kept, done)
        f.branch(predicate, iteration, done)
        f.start(iteration)
        carried = [(w.get(slots, t), True) for slots, t in zip(kept, types, strict=True)]
        body = operation.blocks[0]
        w.loops += 1
        again, *made = w.block(body, [*carried, *((c, False) for c in operands[count + 1 :])])
        w.loops -= 1
        for slots, t, components in zip(kept, types, made, strict=True):
            w.put(slots, t, components)
        going = truth(w, body.results[0], again, operation)
        w.release(body.results[0].type, again)
        turned()
        f.branch(going, iteration, done)
        f.start(done)
    return _ended(w, operation, kept, types)


@rule("counted_while", carries=True)
def counted_while(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a loop of a number of iterations that is known before it."""
    shared = parallel_loop(w, operation, operands, counted_while)
    if shared is not None:
        return shared
    count, f = operation.attributes["carried"], w.f
    types = _carried_types(operation)
    kept = _start(w, operation, operands, types)
    iterations = f.call("i64", "@llvm.smax.i64", f"i64 {operands[0][0]}", "i64 0")
    last = f.value(f"sub i64 {iterations}, 1")
    turned = safepoints(w, operation)
    with (
        deferred_sums(w, operation, kept),
        prepacked_weights(w, operation),
        hoisted_projections(w, operation, operands),
        f.loop(iterations) as i,
    ):
        number = f.value(f"sub i64 {last}, {i}") if operation.attributes["reverse"] else i
        carried = [(w.get(slots, t), True) for slots, t in zip(kept, types, strict=True)]
        arguments = [((number,), False), *carried, *((c, False) for c in operands[count + 1 :])]
        w.loops += 1
        for slots, t, components in zip(kept, types, w.block(operation.blocks[0], arguments), strict=True):
            w.put(slots, t, components)
        turned()
        w.loops -= 1
    return _ended(w, operation, kept, types)


def _carried_types(operation: Operation) -> list[Type]:
    """Return the types as which carried values stand between iterations.

    They are those of the results, but for a small tensor whose extents the iterations change: that one stands in
    memory.
    """
    count = len(operation.results)
    arguments = operation.blocks[0].arguments[operation.op.is_counted :][:count]
    pairs = zip(operation.results, arguments, strict=True)
    return [v.type if not is_small(v.type) or is_small(argument.type) else argument.type for v, argument in pairs]


def _ended(w: FunctionEmitter, operation: Operation, kept: list[list[str]], types: Sequence[Type]) -> Made:
    """Return what is carried after the last iteration, as the results have it."""
    pairs = zip(operation.results, kept, types, strict=True)
    return [w.fitted(v.type, w.get(slots, t)) for v, slots, t in pairs]


def _start(
    w: FunctionEmitter, operation: Operation, operands: list[Components], types: Sequence[Type]
) -> list[list[str]]:
    """Put the carried values where iterations read them, held by the loop; invariants stay with who holds them."""
    kept: list[list[str]] = []
    count = len(types)
    invariants = operation.operands[count + 1 :]
    seen: set[Value] = set(invariants)
    entering = zip(operation.operands[1 : count + 1], operands[1 : count + 1], types, strict=True)
    for value, components, t in entering:
        if value in seen:
            w.retain(value.type, components)
        else:
            w.owned(value, components)
        seen.add(value)
        slots = w.slots(t)
        w.put(slots, t, components)
        kept.append(slots)
    return kept


@rule("call", carries=True)
def call(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a call of a function of the Program."""
    f, name = w.f, operation.attributes["function"]
    callee = w.unit.program.functions[name]
    types, made_types = ([v.type for v in values] for values in (callee.arguments, callee.results))
    given = f.slot("i64", max(1, sum(len(kinds(t)) for t in types)))
    made = f.slot("i64", max(1, sum(len(kinds(t)) for t in made_types)))
    passed = [w.fitted(t, c, own=False) for t, c in zip(types, operands, strict=True)]
    w.write(given, types, passed)
    depth = f.offset("%context", DEPTH)
    deeper = f.value(f"add i64 {f.load('i64', depth)}, 1")
    with w.unlikely(f.value(f"icmp sgt i64 {deeper}, {DEEPEST}"), "deep"):
        w.host(_deep(operation, name), [])
    _keep_to_the_stack(w, given, deeper)
    f.store("i64", deeper, depth)
    status = f.call("i32", f"@{function_name(name)}", "ptr %context", f"ptr {given}", f"ptr {made}")
    f.store("i64", f.value(f"sub i64 {f.load('i64', depth)}, 1"), depth)
    with w.unlikely(f.value(f"icmp eq i32 {status}, {RAISED}"), "raised"):
        w.host(HostCallback(_again, (), (), operation.location, calling=True), [])
    w.check(status)
    for t, components, own in zip(types, passed, operands, strict=True):
        if components is not own:
            w.release(t, components)
    results, at = [], 0
    for t in made_types:
        results.append(w.read(made, t, at))
        at += len(kinds(t))
    return results


def _keep_to_the_stack(w: FunctionEmitter, place: str, deeper: str) -> None:
    """Write that the interpreter takes over where calls have used their share of the thread's stack."""
    f, field = w.f, w.f.offset("%context", STACK)
    here = f.value(f"ptrtoint ptr {place} to i64")
    with f.when(f.value(f"icmp eq i64 {deeper}, 1"), "first"):
        w.module.add("dy2st.lowest", "declare i64 @dy2st.lowest(i64)")
        f.store("i64", f.call("i64", "@dy2st.lowest", f"i64 {here}"), field)
    w.demand(f.value(f"icmp sgt i64 {here}, {f.load('i64', field)}"))


def _deep(operation: Operation, name: str) -> HostCallback:
    def fail() -> Sequence[Any]:
        raise too_deep(RecursionError("maximum recursion depth exceeded"), name)

    return HostCallback(fail, (), (), operation.location)


def _again() -> Sequence[Any]:
    """Stand for the line of a call when what it called has raised."""
    raise AssertionError("a run keeps its error on the way through a call")


@rule("try", carries=True)
def attempt(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a body, and a handler that runs where the body raises what it is for."""
    f, types = w.f, [v.type for v in operation.results]
    kept = [w.slots(t) for t in types]
    body, handler = operation.blocks
    raised, join = f.label("raised"), f.label("join")
    outer, w.failed = w.failed, raised
    for slots, t, made in zip(kept, types, w.block(body, [(c, False) for c in operands]), strict=True):
        w.put(slots, t, made)
    w.failed = outer
    f.jump(join)
    f.start(raised)
    with w.unlikely(f.value(f"icmp ne i32 {f.load('i32', w.status)}, {RAISED}"), "through"):
        w.check(f.load("i32", w.status))
    given = handler.arguments[: len(handler.arguments) - len(operands)]
    taken = w.host(_caught(operation, list(given)), [])
    arguments = [*((c, True) for c in taken), *((c, False) for c in operands)]
    for slots, t, made in zip(kept, types, w.block(handler, arguments), strict=True):
        w.put(slots, t, made)
    w.host(HostCallback(_handled, (), (), operation.location, handled=True), [])
    f.start(join)
    return [w.get(slots, t) for slots, t in zip(kept, types, strict=True)]


def _handled() -> Sequence[Any]:
    """Stand for the end of a handler."""
    return ()


def _caught(operation: Operation, given: Sequence[Value]) -> HostCallback:
    """Return the host callback that hands over what the handler takes, or raises the error again."""

    def hand_over(error: BaseException) -> Sequence[Any]:
        values = handed_over(error, **operation.attributes, count=len(given))
        if values is None:
            raise error
        return values

    return HostCallback(hand_over, (), tuple(v.type for v in given), operation.location, catching=True)


@rule("assert", carries=True)
def assertion(w: FunctionEmitter, operation: Operation, operands: list[Components]) -> Made:
    """Write a check; Python makes the text of the error."""
    f = w.f
    fails = f.value(f"xor i1 {truth(w, operation.operands[0], operands[0], operation)}, true")
    with w.unlikely(fails, "wrong"):
        w.host(host_call(operation), operands)
    return []
