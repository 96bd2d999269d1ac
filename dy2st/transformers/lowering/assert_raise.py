r"""`assert` and `raise` become calls with thunks; a bare `raise` in a handler stays.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    assert x > 0, 'low'\n    raise ValueError(x) from None"))
def f(x):
    _dy.assert_(lambda: x > 0, lambda: 'low')
    _dy.raise_(lambda: _dy.call(ValueError)(x), lambda: None)
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_assert(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `assert`; under `python -O` it stays, and the compiler drops it."""
    if not __debug__:
        return [rw.children(node)]
    message = templates.literal(node, None) if node.msg is None else rw.thunk(node.msg)
    call = rw.make(node, "DY.assert_(TEST, MESSAGE)", TEST=rw.thunk(node.test), MESSAGE=message)
    return templates.statements(node, "CALL", CALL=call)


def lower_raise(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `raise exception [from cause]`."""
    if node.exc is None:
        return [node]
    cause = templates.literal(node, None) if node.cause is None else rw.thunk(node.cause)
    call = rw.make(node, "DY.raise_(ERROR, CAUSE)", ERROR=rw.thunk(node.exc), CAUSE=cause)
    return templates.statements(node, "CALL", CALL=call)
