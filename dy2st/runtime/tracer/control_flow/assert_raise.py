"""`assert` and `raise` in converted code, and exceptions that a traced branch raises.

Tracing runs the user's Python, so an exception is raised in it as Python does, and a `try` around it sees it. What
leaves a branch of which it is known only at run time whether it is taken becomes a `raise` there. A Program can raise
built-in exceptions with a text; what else belongs to the exception (its class, several arguments, a cause) is a
`RaisedException`, which the trace keeps under the op's `label` and which turns the error of a run into the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dy2st.errors import Dy2stError, StructureError
from dy2st.ir.location import error_at
from dy2st.ir.program import Value
from dy2st.ir.types import has_tensors
from dy2st.kinds import is_list
from dy2st.ops.control.control_flow import RAISABLE
from dy2st.records import field, record
from dy2st.runtime.tracer.control_flow.catchable_errors import RunError
from dy2st.runtime.tracer.control_flow.conditional import if_exp, predicate
from dy2st.runtime.tracer.control_flow.internal_errors import place_of
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import AbstractValue, Const, Items, Unset
from dy2st.runtime.tracer.values.flatten import alternative, unflatten
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text, text_part
from dy2st.runtime.tracer.values.unbound import UnboundLocal
from dy2st.runtime.tracer.values.union import Variant

Thunk = Callable[[], Any]


def assert_(trace: Trace, test: Thunk, message: Thunk | None) -> None:
    """Do `assert test, message`."""
    condition = test()
    if not trace.is_symbolic(condition):
        if trace.content(condition):
            return
        _failed(message)
    if trace.attempts or trace.has_written():
        if_exp(trace, trace.truth(condition), lambda: None, lambda: _failed(message))
        return
    value = predicate(trace, trace.truth(condition) if is_list(condition) else condition)
    aval, operands = (None, []) if message is None else text_of(trace, message())
    trace.emit("assert", [value, *operands], {"template": aval})


def _failed(message: Thunk | None) -> None:
    raise AssertionError(*(() if message is None else (message(),)))


def text_of(trace: Trace, x: Any) -> tuple[Any, list[Any]]:
    """Return abstract value and operands of the text that an exception is made with."""
    if isinstance(x, Text):
        return x.template, x.operands
    part, operands = text_part(trace, x)
    return (part,), operands


def raise_(trace: Trace, exception: Thunk, cause: Thunk | None) -> None:
    """Do `raise exception from cause`; an exception class is called, as Python does."""
    error = exception()
    if isinstance(error, Variant):
        error = trace.each(error, lambda e: _thrown(e, cause))
    _thrown(error, cause)


def loaded(trace: Trace, variant: Variant, name: str) -> Any:
    """Return what a variable holds that may be unset: UnboundLocalError where it is."""
    unset, rest = variant.alternatives[0], variant.alternatives[1:]
    named = Variant(variant.value, (Unset(name), *rest), variant)
    if len(rest) == 1 and rest[0].types():
        return alternative(trace, named, 1)  # asks by itself
    if len(rest) == 1 or unset.name:
        is_unset = Scalar(trace.emit("variant_tag", [variant.value])) == 0
        if_exp(trace, is_unset, lambda: _unbound(name), lambda: None)
    return alternative(trace, named, 1) if len(rest) == 1 else named


def _unbound(name: str) -> None:
    raise UnboundLocalError(UnboundLocal(name).message)


def _thrown(error: Any, cause: Thunk | None) -> None:
    if cause is None:
        raise error
    raise error from cause()


# ---- what a Program raises -------------------------------------------------------------------------------------------


@record
class RaisedException:
    """An exception that a Program raises, as the user's code made it."""

    error: BaseException
    aval: AbstractValue
    """The abstract value of its `parts`."""
    operands: list[Value]
    writes: list[Any] = field(default_factory=list[Any])
    """What had been written, as (key, owner, abstract value); its values are the last operands of the `raise`."""
    actions: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What the call had come to do at its end."""
    refusal: Dy2stError | None = None
    """Why no Program can raise it, where nothing gives its tensors the history that they have in eager mode."""
    is_replayed: bool = False
    """Whether eager mode raises it in the place of a run, with the tensors that it has there."""

    @property
    def holds_tensors(self) -> bool:
        """Whether tensors leave the run with it, or are written before it."""
        return any(has_tensors(kind) for t in (self.aval, *(w[2] for w in self.writes)) for kind in t.types())

    @property
    def is_of_run(self) -> bool:
        """Whether an operation raises it by itself, so that its text is not known before."""
        return any(isinstance(x, RunError) for x in self.error.args)

    def of_run(self, error: BaseException, parts: Any) -> BaseException:
        """Return the exception of a run in which the Program raised `error`."""
        if not self.is_of_run:
            return made_again(self.error, parts)
        first = error
        while hasattr(first, "raised") and first.__context__ is not None:
            first = first.__context__
        return first

    def seen(self, trace: Trace, values: Iterator[Value]) -> BaseException:
        """Return the exception as a handler sees it; takes from `values` what it needs."""
        if not _varies(self.aval):
            return self.error
        return made_again(self.error, unflatten(trace, values, self.aval))


def raised_parts(trace: Trace, error: BaseException, aval: Callable[[Any], AbstractValue]) -> tuple[Any, AbstractValue]:
    """Return arguments, names and values of attributes, and the parts of the cause of an exception; their abstract
    value.

    A cause from outside is that object.
    """
    found, cause = trace.attributes_of(error), error.__cause__
    parts: list[Any] = [error.args, tuple(found), tuple(found.values())]
    avals = list(map(aval, parts))
    inside: tuple[Any, AbstractValue] = None, Const(None)
    if cause is not None and not trace.is_from_outside(cause):
        inside = raised_parts(trace, cause, aval)
    return (*parts, inside[0]), Items(tuple, (*avals, inside[1]))


def _varies(t: AbstractValue) -> bool:
    return bool(t.types()) or t.holds_objects


def made_again(error: BaseException, parts: Any) -> BaseException:
    """Return an exception like another, made of other parts."""
    args, names, values, cause = parts
    kind = type(error)
    again = kind.__new__(kind, *args)
    again.args = args
    again.__dict__.update(zip(names, values, strict=True))
    again.__cause__, again.__suppress_context__ = error.__cause__, error.__suppress_context__
    if cause is not None and error.__cause__ is not None:
        again.__cause__ = made_again(error.__cause__, cause)
    return again.with_traceback(error.__traceback__)


def emit_raise(trace: Trace, error: BaseException) -> None:
    """Record that `error`, which a branch raised while it was traced, is raised here."""
    kind = type(error)
    place = trace.raised_at.setdefault(id(error), (error, place_of(error.__traceback__)))[1]
    base = next((c for c in kind.__mro__ if RAISABLE.get(c.__name__) is c and _takes_text(c)), None)
    if base is None:
        raise error_at(
            StructureError,
            place,
            f"{kind.__name__} is raised on a path that only the run will take; a Program can raise what derives from "
            "Exception",
        )
    builder = trace.builder
    before, builder.location = builder.location, place or builder.location
    plain = len(error.args) < 2 and error.__cause__ is None and not error.__suppress_context__
    whole = base is kind and plain and not vars(error) and all(isinstance(x, (str, Text)) for x in error.args)
    label, operands = None, list[Value]()
    aval: Any = None
    if whole and error.args:
        aval, operands = text_of(trace, error.args[0])
    if not whole:
        aval = (_summary(error),)
    if not whole or trace.attempts or trace.has_written():
        label, operands = trace.keep_raised(error)
    trace.emit("raise", operands, {"kind": base.__name__, "template": aval, "label": label})
    error.__traceback__ = None
    builder.location = before


def _summary(error: BaseException) -> str:
    """Return the text of an exception as far as it is known before the run."""
    known = all(x is None or isinstance(x, (str, int, float)) for x in error.args)
    return str(error) if known else type(error).__name__


def _takes_text(kind: type[BaseException]) -> bool:
    try:
        kind("")
    except TypeError:
        return False
    return True
