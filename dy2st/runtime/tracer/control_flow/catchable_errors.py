"""What operations raise by themselves, and how a `try` of the user's catches it.

An operation that may raise what a handler is for stands in a `try` of its own, by kind, whose handler raises it again
under a label, with what the handlers of the user's `try` take over:

    %y = try(%x, %i) {label=none, kinds=("IndexError",)} {
      body(%x, %i): return index(%x, %i)
      handler(%x, %i): raise(...) {kind="IndexError", label=3}; return unreachable()
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.errors import StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.location import error_at, user_location
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation, Value


class RunError:
    """The argument of an exception that an operation will raise: its text is not known before."""

    def __init__(self) -> None:
        self.place = user_location()

    def __str__(self) -> str:
        raise error_at(
            StructureError,
            self.place,
            "the text of an exception that an operation raises in the run is not known while tracing",
            "Test for it with `if`, and raise an exception of your own.",
        )

    __repr__ = __str__


def kinds_raised(op: OpDef, operands: Sequence[Value], attributes: dict[str, Any], caught: Sequence[Any]) -> list[type]:
    """Return what an operation may raise of what handlers for `caught` would catch."""
    if op.blocks or not op.can_raise([v.type for v in operands], attributes):
        return []
    return [error for error in op.raises if any(_overlap(error, k) for k in caught)]


def _overlap(error: type[Exception], kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(error, kind) or issubclass(kind, error))


def guarded(
    b: Builder, op: OpDef, operands: Sequence[Value], attributes: dict[str, Any], kinds: Sequence[type],
    raise_in: Callable[[Builder, type], None],
) -> Operation:  # fmt: skip
    """Emit an operation in a `try` for each kind; `raise_in` emits in a builder what raises a kind again."""
    if not kinds:
        return b.operation(op, operands, attributes)
    body, handler = b.child(), b.child()
    made = guarded(body, op, operands, attributes, kinds[:-1], raise_in)
    body.block.results = list(made.results)
    raise_in(handler, kinds[-1])
    handler.block.results = [handler.emit("unreachable", [], {"type": v.type}) for v in made.results]
    outer = list(dict.fromkeys([*body.captures, *handler.captures]))
    for way in (body, handler):
        way.block.arguments[:] = [way.use(v) for v in outer]
    again = {"label": None, "kinds": (kinds[-1].__name__,)}
    caught = b.operation("try", outer, again, [body.block, handler.block])
    for value, inner in zip(caught.results, made.results, strict=True):
        b.retype(value, inner.type)  # the handler gives nothing: what is known of extents in the body holds
    return caught
