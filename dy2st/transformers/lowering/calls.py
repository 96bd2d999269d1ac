r"""`f(x)` becomes `helper.call(f)(x)`, and `obj.name(x)` becomes `helper.method(obj, 'name')(x)`.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    return np.abs(g(x)).sum(0)", modules=["np"]))
def f(x):
    return _dy.method(_dy.call(np.abs)(_dy.call(g)(x)), 'sum')(0)

Calls that Python ties to the calling frame stay as they are: `super()`, `globals()`, `locals()`, `eval`, `exec`,
`vars()`, `dir()`.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.attributes import is_module_path
from dy2st.transformers.lowering.rewriter import Rewriter

_OF_THE_FRAME = frozenset(["super", "globals", "locals", "eval", "exec", "vars", "dir"])


def lower_call(rw: Rewriter, node: Any) -> Any:
    """Lower a call; its place stays, so that carets point at it."""
    func = node.func
    if not _stays(rw, node):
        if type(func).__name__ == "Attribute" and not is_module_path(rw, func):
            text = templates.literal(func, func.attr)
            node.func = rw.make(func, "DY.method(OBJ, NAME)", OBJ=rw.expr(func.value), NAME=text)
        else:
            node.func = rw.make(func, "DY.call(FUNC)", FUNC=rw.expr(func))
    node.args = [rw.expr(arg) for arg in node.args]
    for word in node.keywords:
        word.value = rw.expr(word.value)
    return node


def _stays(rw: Rewriter, node: Any) -> bool:
    func = node.func
    if type(func).__name__ == "Attribute" and type(func.value).__name__ == "Name":
        return func.value.id == rw.context.helper
    if type(func).__name__ != "Name" or (func.id == "vars" and node.args):
        return False
    return func.id in rw.context.functions or (func.id in _OF_THE_FRAME and rw.is_outside(func))
