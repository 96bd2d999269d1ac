r"""An f-string becomes a call: text, or (value, conversion, format) for each field.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x, w):\n    return f'x={x!r:>{w}}'"))
def f(x, w):
    return _dy.fstring('x=', (x, 'r', _dy.fstring('>', (w, None, None))))

Python formats each field before it evaluates the next one. Where that could be seen, each field gets its own call:

>>> print(preview("def f(x):\n    return f'{x}{g(x)}'"))
def f(x):
    return _dy.fstring((_dy.fstring((x, None, None)), None, None), (_dy.call(g)(x), None, None))

`'...' % values` is a call as well:

>>> print(preview("def f(x):\n    return 'x=%d' % x"))
def f(x):
    return _dy.percent('x=%d', x)
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.pysrc.scopes import own
from dy2st.transformers.lowering.rewriter import Rewriter

_RUNS_CODE = frozenset(
    ["Call", "Await", "Yield", "YieldFrom", "NamedExpr", "BinOp", "Compare", "Subscript", "Attribute", "UnaryOp"]
)


def lower_percent(rw: Rewriter, node: Any) -> Any:
    """Lower `'...' % values`; any other operator stays."""
    text = node.left
    is_text = type(node.op).__name__ == "Mod" and type(text).__name__ == "Constant" and isinstance(text.value, str)
    if not is_text:
        return rw.children(node)
    return rw.make(node, "DY.percent(TEXT, VALUES)", TEXT=text, VALUES=rw.expr(node.right))


def lower_joined_str(rw: Rewriter, node: Any) -> Any:
    """Lower an f-string; one without fields stays."""
    fields = [value for value in node.values if type(value).__name__ == "FormattedValue"]
    if not fields:
        return node
    apart = any(type(inner).__name__ in _RUNS_CODE for field in fields[1:] for inner in own(field.value))
    parts = [_part(rw, value, apart and value is not fields[-1]) for value in node.values]
    return rw.make(node, "DY.fstring(*PARTS)", PARTS=parts)


def _part(rw: Rewriter, node: Any, apart: bool) -> Any:
    if type(node).__name__ != "FormattedValue":
        return node
    conversion = templates.literal(node, None if node.conversion == -1 else chr(node.conversion))
    spec = templates.literal(node, None)
    value = rw.expr(node.value)
    if node.format_spec is not None:
        spec = rw.expr(node.format_spec)
    made = templates.expression(node, "(VALUE, CONVERSION, SPEC)", VALUE=value, CONVERSION=conversion, SPEC=spec)
    if not apart:
        return made
    return rw.make(node, "(DY.fstring(MADE), None, None)", MADE=made)
