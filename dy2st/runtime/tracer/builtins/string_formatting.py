"""`"%d of %s" % (n, x)`, `"{} {:.2f}".format(n, x)` and `", ".join(texts)` where a value is symbolic: the f-string that
says the same.
"""

from __future__ import annotations

import operator
import re
from string import Formatter
from typing import Any

from dy2st.kinds import is_dict, is_tuple
from dy2st.runtime.tracer.builtins.builtins import BUILTINS
from dy2st.runtime.tracer.effects.barrier import natively
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.symbolic_string import Text, fstring, has_symbols

FIELD = re.compile(r"%(?:\((\w+)\))?([#0\- +]*)(\*|\d+)?(?:\.(\*|\d+))?[hlL]?([diouxXeEfFgGcrsa%])")


def percent(trace: Trace, text: str, values: Any) -> Any:
    """Return `text % values`."""
    given = values if is_tuple(values) else (values,)
    content = trace.content(values)
    if not has_symbols(trace, given) and not (is_dict(content) and has_symbols(trace, content)):
        return natively(trace, operator.mod, text, values)
    parts: list[Any] = []
    end, used = 0, 0
    for field in FIELD.finditer(text):
        name, flags, width, precision, kind = field.groups()
        parts.append(text[end : field.start()])
        end = field.end()
        if kind == "%":
            parts.append("%")
            continue
        if "*" in (width, precision) or kind == "c":
            raise trace.needs_python("a width, or a character, of a text with symbolic values was not known")
        if name is None and used == len(given):
            raise TypeError("not enough arguments for format string")
        value = given[used] if name is None else content[name]
        used += name is None
        parts.append(_part(trace, value, kind, flags, width or "", precision))
    if used < len(given) and not is_dict(content):
        raise TypeError("not all arguments converted during string formatting")
    return fstring(trace, *parts, text[end:])


def _part(trace: Trace, value: Any, kind: str, flags: str, width: str, precision: str | None) -> Any:
    """Return the field of an f-string that writes what a `%` field does."""
    points = "" if precision is None else f".{precision}"
    align = "<" if "-" in flags else ">" if width else ""
    if kind in "rsa":
        return value, kind, align + width + points
    zeros = "0" if "0" in flags and "-" not in flags else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    number = BUILTINS[int if kind in "dioxXu" else float](trace, value)
    form = "d" if kind in "diu" else kind
    shown = "" if zeros else align
    return number, None, f"{shown}{sign}{'#' if '#' in flags else ''}{zeros}{width}{points}{form}"


def format_(trace: Trace, text: str, *values: Any, **named: Any) -> Any:
    """Return `text.format(*values, **named)`."""
    if not has_symbols(trace, values) and not has_symbols(trace, named):
        return natively(trace, text.format, *values, **named)
    parts: list[Any] = []
    count = 0
    for literal, name, spec, conversion in Formatter().parse(text):
        parts.append(literal)
        if name is None:
            continue
        if not name or name[0] in ".[":
            name, count = f"{count}{name}", count + 1
        value, _ = Formatter().get_field(name, values, named)
        if spec and "{" in spec:
            raise trace.needs_python("a format that is written in a text with symbolic values was not known")
        parts.append((value, conversion, spec or None))
    return fstring(trace, *parts)


def join(trace: Trace, separator: str, texts: Any) -> Any:
    """Return `separator.join(texts)`."""
    items = list(trace.iterate(texts))
    if not all(isinstance(x, (str, Text)) for x in items) or not any(isinstance(x, Text) for x in items):
        return separator.join(items)
    parts: list[Any] = []
    for x in items:
        parts += [separator, x if isinstance(x, str) else (x, None, None)]
    return fstring(trace, *parts[1:])
