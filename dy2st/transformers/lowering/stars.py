r"""`(*items, x)` becomes `helper.gathered(tuple, [*items, x])`: it has as many items as only the run may tell.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(items, x):\n    return (*items, x), {*items}, (x, x), [*items, x]"))
def f(items, x):
    return (_dy.gathered('tuple', [*items, x]), _dy.gathered('set', [*items]), (x, x), [*items, x])

A dict with keys that are not written down becomes `helper.keyed([(key, item)])`: the run may tell these keys.

>>> print(preview("def f(k, x):\n    return {k: x, 'b': 1}, {'a': x}, {**x, k: 1}"))
def f(k, x):
    return (_dy.keyed([(k, x), ('b', 1)]), {'a': x}, {**x, k: 1})
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


def lower_dict(rw: Rewriter, node: Any) -> Any:
    """Lower a dict display with keys that are no constants; one with stars in it stays."""
    node = rw.children(node)
    if None in node.keys or all(type(key).__name__ == "Constant" for key in node.keys):
        return node
    pairs = [
        templates.expression(node, "(KEY, ITEM)", KEY=k, ITEM=v) for k, v in zip(node.keys, node.values, strict=True)
    ]
    return rw.make(node, "DY.keyed([PAIRS])", PAIRS=pairs)
