"""`assert` and `raise` in converted code, and exceptions that a traced branch raises.

Tracing runs the user's Python, so an exception is raised in it as Python does, and a `try` around it sees it. What
leaves a branch of which only the run will tell whether it is taken becomes a `raise` there. A Program can raise
built-in exceptions with a text; what else belongs to the exception (its class, several arguments, a cause) is a
`Raised`, which the trace keeps under the op's `label` and which turns the error of a run into the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dy2st.errors import StructureError
from dy2st.formatting import render
from dy2st.ir.location import error_at
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType
from dy2st.ops.control.control_flow import RAISABLE
from dy2st.records import field, record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.control_flow.catchable_errors import RunError
from dy2st.runtime.tracer.control_flow.conditional import if_exp, predicate
from dy2st.runtime.tracer.control_flow.internal_errors import place_of
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.abstract import Unset, types_of
from dy2st.runtime.tracer.values.flatten import alternative
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import Text, text_part
from dy2st.runtime.tracer.values.unbound import Undefined
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
    value = predicate(trace, trace.truth(condition) if isinstance(condition, list) else condition)
    template, operands = (None, []) if message is None else text_of(trace, message())
    trace.emit("assert", [value, *operands], {"template": template})


def _failed(message: Thunk | None) -> None:
    raise AssertionError(*(() if message is None else (message(),)))


def text_of(trace: Trace, x: Any) -> tuple[Any, list[Any]]:
    """Return template and operands of the text that an exception is made with."""
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
    if len(rest) == 1 and types_of(rest[0]):
        return alternative(trace, named, 1)  # asks by itself
    if len(rest) == 1 or unset.name:
        is_unset = Scalar(trace.emit("variant_tag", [variant.value])) == 0
        if_exp(trace, is_unset, lambda: _unbound(name), lambda: None)
    return alternative(trace, named, 1) if len(rest) == 1 else named


def _unbound(name: str) -> None:
    raise UnboundLocalError(Undefined(name).message)


def _thrown(error: Any, cause: Thunk | None) -> None:
    if cause is None:
        raise error
    raise error from cause()


# ---- what a Program raises -------------------------------------------------------------------------------------------


@record
class Raised:
    """An exception that a Program raises, as the user's code made it."""

    error: BaseException
    parts: list[Any]
    """For each argument of the exception: a constant, a `Filled` text, or a `Given` value."""
    operands: list[Value]
    writes: list[Any] = field(default_factory=list[Any])
    """What had been written, as (key, owner, template); its values are the last operands of the `raise`."""
    actions: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What the call had come to do at its end."""

    @classmethod
    def of(cls, trace: Trace, error: BaseException) -> tuple[Raised, list[Value]]:
        """Take an exception apart; return it and the values in it."""
        found = Parts()
        for x in error.args:
            found.add(trace, x)
        return cls(error, found.parts, found.operands), found.operands

    def made(self, operands: Sequence[Any], wrap: Callable[[Any], Any]) -> BaseException:
        """Return the exception with the values of a run; `wrap` makes tensors of arrays."""
        rest = iter(operands)
        return self._with(part.made(rest, wrap) if isinstance(part, (Filled, Given)) else part for part in self.parts)

    @property
    def is_of_run(self) -> bool:
        """Whether an operation raises it by itself, so that its text is not known before."""
        return any(isinstance(part, RunError) for part in self.parts)

    def of_run(self, error: BaseException, operands: Sequence[Any], wrap: Callable[[Any], Any]) -> BaseException:
        """Return the exception of a run in which the Program raised `error`."""
        if not self.is_of_run:
            return self.made(operands, wrap)
        first = error
        while hasattr(first, "raised") and first.__context__ is not None:
            first = first.__context__
        return first

    def seen(self, trace: Trace, values: Iterator[Value]) -> BaseException:
        """Return the exception as a handler sees it; takes from `values` what it needs."""
        if not any(isinstance(part, (Filled, Given)) for part in self.parts):
            return self.error
        return self._with(
            part.seen(trace, values) if isinstance(part, (Filled, Given)) else part for part in self.parts
        )

    def _with(self, parts: Iterable[Any]) -> BaseException:
        args = tuple(parts)
        kind = type(self.error)
        again = kind.__new__(kind, *args)
        again.args = args
        again.__dict__.update(self.error.__dict__)
        again.__cause__, again.__suppress_context__ = self.error.__cause__, self.error.__suppress_context__
        return again.with_traceback(self.error.__traceback__)


@record(frozen=True)
class Filled:
    """A text with values of the run in it."""

    template: tuple[Any, ...]
    count: int

    def made(self, operands: Any, wrap: Callable[[Any], Any]) -> str:
        """Return the text."""
        return "".join(render(self.template, tuple(next(operands) for _ in range(self.count))))

    def seen(self, trace: Trace, values: Iterator[Value]) -> Text:
        """Return the text as it stands in a trace."""
        return Text(self.template, [next(values) for _ in range(self.count)])


@record(frozen=True)
class Given:
    """A tensor or a number of the run."""

    def made(self, operands: Any, wrap: Callable[[Any], Any]) -> Any:
        """Return the value."""
        return wrap(next(operands))

    def seen(self, trace: Trace, values: Iterator[Value]) -> Any:
        """Return the value as it stands in a trace."""
        value = next(values)
        return Scalar(value) if isinstance(value.type, ScalarType) else trace.wrap(value)


@record
class Parts:
    """The arguments of an exception, taken apart."""

    parts: list[Any] = field(default_factory=list[Any])
    operands: list[Any] = field(default_factory=list[Any])

    def add(self, trace: Trace, x: Any) -> None:
        """Take one argument apart."""
        if isinstance(x, Text):
            self.parts.append(Filled(x.template, len(x.operands)))
            self.operands += x.operands
        elif isinstance(x, (Tensor, Scalar)):
            self.parts.append(Given())
            self.operands.append(trace.value_of(x) if isinstance(x, Tensor) else x.value)
        else:
            self.parts.append(trace.content(x))


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
    found, operands = Raised.of(trace, error)
    label = None
    plain = len(error.args) < 2 and error.__cause__ is None and not error.__suppress_context__
    whole = base is kind and plain and all(isinstance(p, (str, Filled)) for p in found.parts)
    if not whole or trace.attempts or trace.has_written():
        label = trace.keep_raised(found)
        more = trace.attempts[-1].hand_over(label, found) if trace.attempts else trace.write_back(found)
        operands = [*operands, *more]
    if not whole:
        template: Any = (_summary(error),)
    elif not error.args:
        template = None
    else:
        part = found.parts[0]
        template = part.template if isinstance(part, Filled) else (part,)
    trace.emit("raise", operands, {"kind": base.__name__, "template": template, "label": label})
    error.__traceback__ = None
    builder.location = before


def _summary(error: BaseException) -> str:
    """Return the text of an exception as far as it is known before the run."""
    if any(isinstance(x, (Text, Tensor, Scalar, RunError)) for x in error.args):
        return type(error).__name__
    return str(error)


def _takes_text(kind: type[BaseException]) -> bool:
    try:
        kind("")
    except TypeError:
        return False
    return True
