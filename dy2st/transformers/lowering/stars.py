r"""`(*items, x)` becomes `helper.gathered(tuple, [*items, x])`: it has as many items as only the run may tell.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(items, x):\n    return (*items, x), {*items}, (x, x), [*items, x]"))
def f(items, x):
    return (_dy.gathered('tuple', [*items, x]), _dy.gathered('set', [*items]), (x, x), [*items, x])
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_gathering(rw: Rewriter, node: Any) -> Any:
    """Lower a tuple or set display with a star in it; one that is assigned to, and any other, stays."""
    node = rw.children(node)
    is_read = type(getattr(node, "ctx", None)).__name__ != "Store"
    if not is_read or not any(type(item).__name__ == "Starred" for item in node.elts):
        return node
    kind = templates.literal(node, type(node).__name__.lower())
    return rw.make(node, "DY.gathered(KIND, [ITEMS])", KIND=kind, ITEMS=node.elts)
