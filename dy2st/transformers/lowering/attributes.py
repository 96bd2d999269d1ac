r"""Reads of attributes and items become calls; dotted paths from modules stay.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x, i):\n    return x.w[i, 1:] + np.pi", modules=["np"]))
def f(x, i):
    return _dy.item(_dy.attr(x, 'w'), (i, _dy.slice_(1, None, None))) + np.pi
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.rewriter import Rewriter


def is_module_path(rw: Rewriter, node: Any) -> bool:
    """Return whether an expression is `module` or `module.a.b`."""
    while type(node).__name__ == "Attribute":
        node = node.value
    return type(node).__name__ == "Name" and node.id in rw.context.modules and rw.is_outside(node)


def lower_attribute(rw: Rewriter, node: Any) -> Any:
    """Lower a read of an attribute."""
    if type(node.ctx).__name__ != "Load" or is_module_path(rw, node):
        return rw.children(node)
    return rw.make(node, "DY.attr(OBJ, NAME)", OBJ=rw.expr(node.value), NAME=templates.literal(node, node.attr))


def lower_subscript(rw: Rewriter, node: Any) -> Any:
    """Lower a read of an item."""
    if type(node.ctx).__name__ != "Load":
        return rw.children(node)
    return rw.make(node, "DY.item(OBJ, KEY)", OBJ=rw.expr(node.value), KEY=rw.expr(node.slice))


def lower_slice(rw: Rewriter, node: Any) -> Any:
    """Lower `a:b:c`, which outside of brackets has no syntax."""
    parts = [templates.literal(node, None) if part is None else rw.expr(part) for part in _ends(node)]
    return rw.make(node, "DY.slice_(A, B, C)", A=parts[0], B=parts[1], C=parts[2])


def _ends(node: Any) -> list[Any]:
    return [node.lower, node.upper, node.step]
