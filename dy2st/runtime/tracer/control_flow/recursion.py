"""A function that calls itself where it is known only at run time how often becomes a function of the Program.

Calls are traced in line. A call that comes back to a function that is being traced, with arguments of the same kind and
deeper inside of branches, would do so forever: from there on it is the op `call`. What the function takes and gives
back is found as for loops: it is traced until that settles, at first with only the paths that do not call again.
A Python number that is another one in each call (a depth) is a value of the run then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_here, frame_at
from dy2st.ir.program import Value
from dy2st.ops.control.control_flow import outward
from dy2st.records import field, record
from dy2st.runtime.tracer.control_flow.conditional import Diverged, seen_aval
from dy2st.runtime.tracer.effects.container_state import refuse_spliced
from dy2st.runtime.tracer.effects.escape_analysis import made_aval, old_objects
from dy2st.runtime.tracer.effects.nonlocal_rebinding import check_carried
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import (
    AbstractValue,
    Number,
    TensorLike,
    abstract_value_of,
)
from dy2st.runtime.tracer.values.flatten import flatten, unflatten
from dy2st.runtime.tracer.values.join import join_values
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.runtime.tracer.values.symbolic_iterator import made_here

MOST_ATTEMPTS = 16
MANY = 4
"""Calls of one function inside of each other, each in a branch of its own, after which changing numbers are opened."""
DEEPEST = 200
"""Calls of one function inside of each other, in line, after which a trace gives up."""


@record
class ActiveCall:
    """A call that is being traced."""

    function: Any
    arguments: tuple[Any, ...]
    builder: Builder


@record
class RecursiveFunction:
    """A function of the Program: what it takes, and what it gives back as far as is known."""

    function: Any
    name: str
    taken: AbstractValue
    result: AbstractValue | None = None
    slots: dict[Key, AbstractValue] = field(default_factory=dict[Key, AbstractValue])
    captures: list[Value] = field(default_factory=list[Value])
    inside: Builder | None = None
    """The builder of the function while it is traced."""


def call_function(trace: Trace, function: Any, *args: Any, **keywords: Any) -> Any:
    """Call a function of the user's in its converted form."""
    refuse_spliced(args)
    made = trace.convert(function)
    check_carried(trace, made)
    arguments = (*args, *keywords.values())
    around = [active for active in reversed(trace.active) if active.function is function]
    further_out = [active for active in around if active.builder is not trace.builder]
    if any(_same_kind(trace, active.arguments, arguments) for active in further_out):
        return _call(trace, function, made, args, keywords)
    if len(further_out) >= MANY:
        changing = _numbers_left_open(trace, further_out[0].arguments, arguments)
        if changing is not None:
            mark, functions = trace.checkpoint(), len(trace.recursions)
            words = dict(zip(keywords, changing[len(args) :], strict=True))
            try:
                return _call(trace, function, made, changing[: len(args)], words)
            except NeedsPythonValue:
                trace.rollback(mark)
                del trace.recursions[functions:]
    if len(around) > DEEPEST:
        raise _error(f"`{function.__name__}` calls itself more than {DEEPEST} times while it is traced")
    trace.active.append(ActiveCall(function, arguments, trace.builder))
    try:
        return made_here(trace, made(*args, **keywords))
    finally:
        trace.active.pop()


def _numbers_left_open(trace: Trace, before: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments with numbers that the call further out had otherwise as values of the run, None without."""
    if len(before) != len(arguments):
        return None
    changed = [
        type(x) in (int, float) and type(y) is type(x) and x != y for x, y in zip(arguments, before, strict=True)
    ]
    if not any(changed):
        return None
    return tuple(trace.as_scalar(x) if open_ else x for x, open_ in zip(arguments, changed, strict=True))


def _same_kind(trace: Trace, a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and _kind(trace, a) == _kind(trace, b)


def _kind(trace: Trace, arguments: tuple[Any, ...]) -> AbstractValue:
    return opened(abstract_value_of(trace, arguments))


def opened(t: AbstractValue) -> AbstractValue:
    """Return an abstract value in which extents that are not ints are unknown, and values of numbers are, too."""
    if isinstance(t, TensorLike):
        return TensorLike(outward(t.type, set()), t.stop_gradient)  # type: ignore[arg-type]
    if isinstance(t, Number):
        return Number(t.kind)
    return t.mapped(opened)


def _call(trace: Trace, function: Any, made: Callable[..., Any], args: Any, keywords: dict[str, Any]) -> Any:
    arguments = (*args, *keywords.values())
    kind = _kind(trace, arguments)
    found = next((r for r in trace.recursions if r.function is function and r.taken == kind and _sees(trace, r)), None)
    if found is None:
        found = RecursiveFunction(function, f"{function.__name__}_{len(trace.recursions)}".lstrip("_<>"), kind)
        trace.recursions.append(found)
        _define(trace, found, made, len(args), tuple(keywords))
    if found.inside is not None and found.result is None:
        raise Diverged  # the first attempt: what the paths give that do not come here
    return _emit(trace, found, arguments)


def _sees(trace: Trace, found: RecursiveFunction) -> bool:
    """Return whether what a function captures can be handed over here."""
    return found.inside is not None or all(trace.builder.sees(v) for v in found.captures)


def _emit(trace: Trace, found: RecursiveFunction, arguments: tuple[Any, ...]) -> Any:
    """Emit the call and read its results."""
    b: Builder = trace.builder
    assert found.result is not None
    operands = flatten(trace, arguments, found.taken)
    for key, aval in found.slots.items():
        operands += flatten(trace, trace.current(key), aval)
    operands += map(b.use, found.captures)
    avals = [found.result, *found.slots.values()]
    types = tuple(t for one in avals for t in one.types())
    results = iter(b.operation("call", operands, {"function": found.name, "types": types}).results)
    made, *written = [unflatten(trace, results, t) for t in avals]
    for key, value in zip(found.slots, written, strict=True):
        trace.commit_joined(key, value)
    return made


def _define(
    trace: Trace, found: RecursiveFunction, made: Callable[..., Any], count: int, names: tuple[str, ...]
) -> None:
    """Trace the function until what it takes and gives settles."""
    for _ in range(MOST_ATTEMPTS):
        child = trace.builder.child()
        found.inside = child
        mark, functions = trace.checkpoint(), len(trace.recursions)
        for value in found.captures:
            child.use(value)
        if _attempt(trace, found, child, lambda a: made(*a[:count], **dict(zip(names, a[count:], strict=True)))):
            found.inside = None
            return
        trace.rollback(mark)
        del trace.recursions[functions:]
    raise _error(f"what `{found.function.__name__}` gives back does not settle")


def _attempt(trace: Trace, found: RecursiveFunction, child: Builder, body: Callable[[Any], Any]) -> bool:
    writes: dict[Key, Any] = {}
    with trace.inside(child, writes):
        old = old_objects(trace)
        values = [child.argument(t) for t in map(child.named, found.taken.types())]
        arguments = unflatten(trace, iter(values), found.taken)
        for key, aval in found.slots.items():
            entering = [child.argument(t) for t in map(child.named, aval.types())]
            values += entering
            trace.commit_joined(key, unflatten(trace, iter(entering), aval))
        trace.active.append(ActiveCall(found.function, arguments, child))
        bottom, trace.bottom = trace.bottom, frame_at(0)
        try:
            result = body(arguments)
        except Diverged:
            raise _error(f"`{found.function.__name__}` calls itself on every path: it never ends") from None
        finally:
            trace.active.pop()
            trace.bottom = bottom
        aval = opened(made_aval(trace, result, old))
        leaving = {key: opened(seen_aval(trace, key, x)) for key, x in writes.items()}
    met = aval if found.result is None else opened(join_values(found.result, aval, trace))
    slots = {
        key: t if key not in found.slots else opened(join_values(found.slots[key], t, trace))
        for key, t in leaving.items()
    }
    for key in slots.keys() - found.slots.keys():
        before = opened(seen_aval(trace, key, trace.current(key)))
        slots[key] = opened(join_values(before, slots[key], trace))
    slots = {**found.slots, **slots}
    captures = list(child.captures)
    if met == found.result and slots == found.slots and captures == found.captures:
        with trace.inside(child, writes):
            results = flatten(trace, result, met)
            for key, t in slots.items():
                results += flatten(trace, trace.current(key), t)
            child.block.results = [child.use(v) for v in results]
        if list(child.captures) == captures:
            child.block.arguments[:] = [*values, *child.captures.values()]
            trace.functions[found.name] = child.block
            return True
        captures = list(child.captures)
    found.result, found.slots, found.captures = met, slots, captures
    return False


def _error(message: str) -> StructureError:
    return error_here(StructureError, message)
