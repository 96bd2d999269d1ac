"""Type rules of what is seen outside of a run: printing, warning, raising."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any, cast

from dy2st.ir.checker.typed_operation import TypedOperation, rule
from dy2st.ir.types import ScalarType, TensorType, Type, VariantType

_DEEPEST = 8
_MOST_SPEC = 40
_EXCEPTIONS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
)
_WARNINGS = frozenset(name for name in _EXCEPTIONS if issubclass(vars(builtins)[name], Warning))


def _template(g: TypedOperation, name: str, first: int, may_leave: bool = False) -> None:
    """Check a template against the operands from number `first` on."""
    rest = iter(g.types[first:])
    for part in g.sequence(name):
        _part(g, part, rest, 0)
    g.require(may_leave or next(rest, None) is None, "more operands than places")


def _part(g: TypedOperation, part: Any, rest: Iterator[Type], depth: int) -> None:
    if type(part) is str:
        return
    items: list[Any] = list(cast("tuple[Any, ...]", part)) if type(part) is tuple else []
    if not 1 < len(items) < 5 or depth > _DEEPEST or type(items[0]) is not str:
        g.refuse(f"{part!r:.40} in a template")
    head, inside, *form = items
    if head == "parts" and len(form) == 2 and type(inside) is tuple:
        for inner in cast("tuple[Any, ...]", inside):
            _part(g, inner, rest, depth + 1)
        _format(g, *form)
        return
    t = next(rest, None)
    if head == "one of" and not form and type(inside) is tuple:
        parts = cast("tuple[Any, ...]", inside)
        if not isinstance(t, VariantType) or len(t.alternatives) != len(parts):
            g.refuse(f"{t} is no variant of {len(parts)}")
        for inner, alternative in zip(parts, t.alternatives, strict=True):
            _part(g, inner, iter((alternative,)), depth + 1)
        return
    if len(form) != 1 or t is None:
        g.refuse(f"{part!r:.40} in a template")
    g.require(not head or (isinstance(t, TensorType) and len(head) < 100), f"{t} is printed as a tensor")
    _format(g, inside, form[0])


def _format(g: TypedOperation, conversion: Any, spec: Any) -> None:
    """Refuse a conversion or a format that Python has not, or of a width that costs memory."""
    if type(conversion) is not str or conversion not in ("", "r", "s", "a") or type(spec) is not str:
        g.refuse(f"{conversion!r:.20} and {spec!r:.20} are no format")
    digits = "".join(c if c.isdigit() else " " for c in spec).split()
    g.require(len(spec) <= _MOST_SPEC and all(len(d) <= 4 for d in digits), f"{spec!r:.40} is too wide")


@rule("print")
def _print_(g: TypedOperation) -> Sequence[Type]:
    _template(g, "template", 0)
    return ()


@rule("assert")
def _assert_(g: TypedOperation) -> Sequence[Type]:
    g.count(1, -1)
    g.require(isinstance(g.types[0], (TensorType, ScalarType)), f"asserts {g.types[0]}")
    if g.attribute("template") is not None:
        _template(g, "template", 1)
    return ()


@rule("raise")
def _raise_(g: TypedOperation) -> Sequence[Type]:
    g.require(g.text("kind") in _EXCEPTIONS, "no built-in exception")
    label = g.attribute("label")
    if label is not None:
        g.small(label, "label", 0)
    if g.attribute("template") is not None:
        _template(g, "template", 0, may_leave=label is not None)
    return ()


@rule("warn")
def _warn(g: TypedOperation) -> Sequence[Type]:
    _template(g, "template", 0)
    g.require(g.text("category") in _WARNINGS, "no built-in warning")
    return at_line(g)


@rule("log_record")
def _log_record(g: TypedOperation) -> Sequence[Type]:
    _template(g, "template", 0)
    g.small(g.attribute("level"), "level", 0)
    return at_line(g)


def at_line(g: TypedOperation) -> Sequence[Type]:
    """Refuse an attribute `at` that is no file and line; such operations have no results."""
    at = g.sequence("at")
    g.require(len(at) == 2 and type(at[0]) is str and type(at[1]) is int and 0 <= at[1] < 2**31, "at is no line")
    return ()


def exceptions(g: TypedOperation, name: str) -> None:
    """Refuse an attribute that is not names of built-in exceptions."""
    for kind in g.sequence(name):
        g.require(type(kind) is str and kind in _EXCEPTIONS, f"{kind!r:.40} is no built-in exception")
