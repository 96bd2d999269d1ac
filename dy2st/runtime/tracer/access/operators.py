"""Operators in converted code: methods of the user's classes are converted, all else runs behind the barrier."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from dy2st.kinds import is_dict, type_of
from dy2st.naming import is_plain_module
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.effects.barrier import natively, note_born
from dy2st.runtime.tracer.effects.container_state import CONTAINERS, Spliced
from dy2st.runtime.tracer.effects.escape_analysis import is_plain_object
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.container_classes import is_of_users_class
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.union import SymbolicList, Variant

Function = Callable[[Any, Any], Any]
_DUNDERS = {
    "+": ("__add__", "__radd__"), "-": ("__sub__", "__rsub__"), "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"), "//": ("__floordiv__", "__rfloordiv__"), "%": ("__mod__", "__rmod__"),
    "**": ("__pow__", "__rpow__"), "@": ("__matmul__", "__rmatmul__"), "&": ("__and__", "__rand__"),
    "|": ("__or__", "__ror__"), "^": ("__xor__", "__rxor__"), "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"), "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"),
    ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
}  # fmt: skip
BINARY: dict[str, tuple[Function, str, str]] = {
    sign: (getattr(operator, name), name, swapped) for sign, (name, swapped) in _DUNDERS.items()
}
UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "-": (operator.neg, "__neg__"), "+": (operator.pos, "__pos__"), "~": (operator.invert, "__invert__"),
}  # fmt: skip
_QUICK = frozenset((Tensor, Parameter, Scalar, int, float, bool, complex, str, bytes, tuple, type(None)))


def binary(trace: Trace, sign: str, a: Any, b: Any) -> Any:
    """Return what `a <sign> b` gives."""
    f, name, swapped = BINARY[sign]
    kinds = type_of(a), type_of(b)
    if (kinds[0] in _QUICK and kinds[1] in _QUICK) or Variant in kinds:
        return f(a, b)
    if np.ndarray in kinds:
        made = f(a, b)
        note_born(trace, made)
        return made
    if (found := _users(trace, sign, name, swapped, a, b)) is not MISSING:
        return found
    if isinstance(a, CONTAINERS) or isinstance(b, CONTAINERS):
        for x in (a, b):
            if isinstance(x, (set, dict)) and not isinstance(trace.content(x), CONTAINERS):  # it is one of several
                return trace.on_content(x, switch, lambda: binary(trace, sign, a, b))
        return f(items(trace, a), items(trace, b))
    return natively(trace, f, a, b)


def unary(trace: Trace, sign: str, x: Any) -> Any:
    """Return what `<sign>x` gives."""
    f, name = UNARY[sign]
    own = users_dunder(type_of(x), name)
    if own is not None:
        return trace.callable(own)(x)
    return f(x) if type(x) in _QUICK or isinstance(x, (Tensor, Variant)) else natively(trace, f, x)


def users_dunder(kind: type, name: str) -> FunctionType | None:
    """Return the special method that a class has from the user, in source that can be converted."""
    found = getattr(kind, name, None)
    if not isinstance(found, FunctionType) or is_plain_module(found.__module__):
        return None
    generated = found.__code__.co_filename.startswith("<string") or is_plain_module(found.__globals__.get("__name__"))
    return None if generated else found  # a dataclass wrote it


def _users(trace: Trace, sign: str, name: str, swapped: str, a: Any, b: Any) -> Any:
    """Return what a method of the user's gives for an operator; MISSING where neither operand has one."""
    mine, others = users_dunder(type_of(a), name), users_dunder(type_of(b), swapped)
    if mine is None and others is None:
        return MISSING
    ways = [functools.partial(_ask, trace, mine, name, a, b), functools.partial(_ask, trace, others, swapped, b, a)]
    if type(b) is not type(a) and issubclass(type(b), type(a)) and others is not None:
        ways.reverse()
    for way in ways if type(a) is not type(b) or sign in COMPARING else ways[:1]:
        found = way()
        if found is not NotImplemented:
            return found
    if sign in ("==", "!="):
        return (a is b) is (sign == "==")
    raise TypeError(f"unsupported operand type(s) for {sign}: '{type(a).__name__}' and '{type(b).__name__}'")


COMPARING = ("<", "<=", ">", ">=", "==", "!=")


def _ask(trace: Trace, own: FunctionType | None, name: str, x: Any, y: Any) -> Any:
    """Ask one operand; NotImplemented where it does not know."""
    if own is not None:
        return trace.callable(own)(x, y)
    if name == "__ne__" and users_dunder(type_of(x), "__eq__") is not None:
        found = trace.callable(users_dunder(type_of(x), "__eq__"))(x, y)
        return found if found is NotImplemented else trace.negated(found)
    plain = getattr(type_of(x), name, None)
    return NotImplemented if plain is None else plain(x, y)


def items(trace: Trace, x: Any) -> Any:
    """Return what `*x` and `**x` take the items from: a container from outside as the trace left it."""
    if not isinstance(x, CONTAINERS):
        return x
    content = trace.content(x)
    is_open = isinstance(content, (SymbolicList, Variant))
    if is_open and is_dict(x):
        raise needs_value("a dict of which only the run will tell the keys was handed over key by key (`**d`)")
    if id(x) not in trace.external:
        return x
    return [Spliced(content)] if is_open else content


def compared(trace: Trace, sign: str, a: Any, b: Any) -> Any:
    """Return what a comparison of two Python objects gives."""
    f, name, swapped = BINARY[sign]
    if type(a) in _QUICK and type(b) in _QUICK:
        return f(a, b)
    if sign in ("==", "!=") and _are_alike(a, b):
        fields = type_of(a).__dataclass_fields__
        compared_ones = [n for n, field in fields.items() if field.compare]
        first, second = (tuple(trace.attribute_of(x, n) for n in compared_ones) for x in (a, b))
        return trace.compared(first, sign, second)
    if (found := _users(trace, sign, name, swapped, a, b)) is not MISSING:
        return found
    if isinstance(a, (Tensor, Scalar)) or isinstance(b, (Tensor, Scalar)):
        return f(a, b)
    return natively(trace, f, a, b)


def _are_alike(a: Any, b: Any) -> bool:
    """Return whether two objects are of one dataclass that compares them by their fields."""
    made = getattr(type_of(a), "__dataclass_params__", None)
    return type(a) is type(b) and made is not None and made.eq and users_dunder(type_of(a), "__eq__") is None


def truth(trace: Trace, x: Any) -> Any:
    """Return the truth of something that is not symbolic, by the converted method where the user wrote one."""
    if not is_plain_object(x) and not is_of_users_class(x):
        return bool(trace.content(x))
    for name in ("__bool__", "__len__"):
        own = users_dunder(type_of(x), name)
        if own is not None:
            found = trace.callable(own)(x)
            if trace.is_symbolic(found):
                raise needs_value(f"the truth of a {type(x).__name__} depends on a value of the run")
            return bool(found)
    return bool(trace.content(x))
