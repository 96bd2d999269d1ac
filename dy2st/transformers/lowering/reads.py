r"""A read that may find no value asks the helper, which raises what Python would.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    if x:\n        y = 1\n    return y"))
def f(x):
    y = _dy.undefined('y')
    def _then():
        nonlocal y
        y = 1
    def _set(_values):
        nonlocal y
        [y] = _values
    _dy.if_(x, _then, lambda: None, lambda: (y,), _set, ('y',))
    return _dy.load(y, 'y')

A third argument `True` says that the read is in another function than the variable (NameError, not UnboundLocalError).
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_name(rw: Rewriter, node: Any) -> Any:
    """Guard a read."""
    if node not in rw.context.unbound or type(node.ctx).__name__ != "Load":
        return node
    return load(rw, node, rw.context.unbound[node])


def load(rw: Rewriter, node: Any, outer: bool) -> Any:
    """Make the guarded read of a name."""
    value, text = templates.name(node, node.id), templates.literal(node, node.id)
    if outer:
        return rw.make(node, "DY.load(VALUE, NAME, True)", VALUE=value, NAME=text)
    return rw.make(node, "DY.load(VALUE, NAME)", VALUE=value, NAME=text)
