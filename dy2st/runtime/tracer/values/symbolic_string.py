"""Text with symbolic values in it: a template that is filled when the Program runs."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from dy2st.formatting import Part
from dy2st.ir.program import Value
from dy2st.kinds import is_container, is_dict, is_list, is_tuple, type_of
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.values.dict_views import is_view
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.trace import ValueTrace
from dy2st.runtime.tracer.values.union import Variant

_CONTAINERS: tuple[type[Any], ...] = (list, tuple, dict)
_PLAIN: tuple[Any, ...] = tuple(vars(kind)["__repr__"] for kind in _CONTAINERS)
"""How Python writes containers; a class that has none of these writes its own text."""


def text_part(trace: ValueTrace, x: Any, conversion: str = "s", spec: str = "") -> tuple[Part, list[Value]]:
    """Return the part of a template that stands for the text of `x`, and its operands."""
    if isinstance(x, Variant):
        tags = range(1, len(x.alternatives))
        return ("one of", ("", *(trace.text_of_alternative(x, i, conversion, spec) for i in tags))), [x.value]
    if isinstance(x, Tensor):
        head = "" if id(x) in trace.arrays else f"{type(x).printed_as}:{trace.stops(x)}"
        return (head, conversion, spec), [trace.value_of(x)]
    if isinstance(x, Scalar):
        return ("", conversion if not spec else "", spec), [x.value]
    if isinstance(x, Text):
        return ("parts", x.template, conversion, spec), x.operands
    if isinstance(x, BaseException) and has_symbols(trace, x.args):
        return _error_part(trace, x, conversion, spec)
    content = trace.content(x)
    if is_view(x):
        part, operands = text_part(trace, content, "r")
        if not operands:
            return written(f"{type(x).__name__}({part})", "s", spec), []
        return ("parts", (f"{type(x).__name__}(", part, ")"), "s", spec), operands
    if is_container(content) and has_symbols(trace, content):
        kind = type_of(x)
        if not hasattr(x, "_fields") and (kind.__repr__ not in _PLAIN or kind.__str__ is not object.__str__):
            return trace.text_of_object(x, conversion, spec)
        parts, operands = _container_parts(trace, content)
        return ("parts", parts, "s", spec), operands
    return trace.text_of_object(content, conversion, spec)


def written(content: Any, conversion: str, spec: str) -> str:
    """Return the text of a Python object, as a field of an f-string has it."""
    shown = repr(content) if conversion == "r" else ascii(content) if conversion == "a" else content
    return format(shown, spec) if spec or (not isinstance(shown, str) and conversion != "s") else str(shown)


def _container_parts(trace: ValueTrace, x: Any) -> tuple[tuple[Part, ...], list[Value]]:
    """Return the text of a list, tuple or dict that holds symbolic values, as Python's `repr` writes it."""
    if hasattr(x, "_fields"):
        raise needs_value(f"the text of a {type(x).__name__} that holds tensors")
    opening, closing = ("{", "}") if is_dict(x) else ("[", "]") if is_list(x) else ("(", ")")
    template: list[Part] = [opening]
    operands: list[Value] = []
    for i, item in enumerate(x.items() if is_dict(x) else x):
        template.append(", " if i else "")
        if is_dict(x):
            template.append(f"{item[0]!r}: ")
        part, more = text_part(trace, item[1] if is_dict(x) else item, "r")
        template.append(part)
        operands += more
    template.append(",)" if is_tuple(x) and len(x) == 1 else closing)
    return tuple(template), operands


def _error_part(trace: ValueTrace, error: BaseException, conversion: str, spec: str) -> tuple[Part, list[Value]]:
    """Return the text of an exception whose arguments are symbolic: its `str`, or its `repr`."""
    shown = type(error).__repr__ if conversion == "r" else type(error).__str__
    if shown not in (BaseException.__repr__, BaseException.__str__, KeyError.__str__):
        return text_part(trace, trace.callable(shown)(error), "s", spec)
    if len(error.args) == 1:
        inner, operands = text_part(trace, error.args[0], "r" if shown is not BaseException.__str__ else "s")
        parts = (inner,) if conversion != "r" else (f"{type(error).__name__}(", inner, ")")
    else:
        inner, operands = _container_parts(trace, error.args)
        parts = inner if conversion != "r" else (type(error).__name__, *inner)
    return ("parts", parts, "s", spec), operands


def has_symbols(trace: ValueTrace, x: Any) -> bool:
    """Return whether a container holds, at some depth, what only the run will tell."""
    items = x.values() if is_dict(x) else x
    return any(
        trace.is_symbolic(i) or isinstance(i, Text) or (is_container(i) and has_symbols(trace, trace.content(i)))
        for i in items
    )


class Text:
    """An f-string with symbolic values: a template and its operands."""

    def __init__(self, template: tuple[Part, ...], operands: list[Value]):
        self.template, self.operands = template, operands

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Text):
            return Text((*self.template, *other.template), [*self.operands, *other.operands])
        return Text((*self.template, other), self.operands) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Text((other, *self.template), self.operands) if isinstance(other, str) else NotImplemented

    def _needed(self, *_: Any) -> Any:
        raise needs_value("text with symbolic values was needed as a Python str", needed=[self])

    __str__ = __repr__ = __format__ = __len__ = __iter__ = __contains__ = __getitem__ = __bool__ = _needed
    __eq__ = __ne__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __mod__ = _needed

    def __getattr__(self, name: str) -> Any:
        if hasattr(str, name):
            self._needed()
        raise AttributeError(name)


_NUMPY_NUMBER: tuple[type, ...] = (np.generic,)


def fstring(trace: ValueTrace, *parts: Any) -> Any:
    """Return an f-string: text, or `Text` where a value is symbolic."""
    template: list[Part] = []
    operands: list[Value] = []
    for part in parts:
        if isinstance(part, str):
            template.append(part)
            continue
        value, conversion, spec = part
        if isinstance(value, _NUMPY_NUMBER) and not conversion:  # its `format` is not its `str`
            template.append(format(value, spec or ""))
            continue
        if isinstance(value, Text) and not conversion and not spec:
            template += value.template
            operands += value.operands
            continue
        piece, more = text_part(trace, value, conversion or ("" if spec or _formats_itself(value) else "s"), spec or "")
        template.append(piece)
        operands += more
    if not operands:
        return "".join(p for p in template if isinstance(p, str))
    return Text(tuple(template), operands)


def _formats_itself(x: Any) -> bool:
    """Return whether the class of an object says itself what an empty format gives."""
    return not isinstance(x, (Tensor, Scalar, Variant)) and isinstance(type(x).__format__, FunctionType)
