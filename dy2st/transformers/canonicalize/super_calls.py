r"""`super()` looks for its class and object in the frame that calls it: name them, as code moves into functions.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(self, x):\n    return super().f(x)", "supers", free=["__class__"]))
def f(self, x):
    return super(__class__, self).f(x)
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates, tree
from dy2st.pysrc.scopes import Scope, Scopes
from dy2st.transformers.core.context import Context


def transform(root: Any, context: Context) -> None:
    """Give every `super()` of a method its arguments."""
    scopes = Scopes(root)
    for name, where in list(scopes.where.items()):
        if name.id != "super" or where.resolve("super") is not None:
            continue
        call = _call_of(name, scopes, where)
        first = tree.first_parameter(_arguments(where)) if where.kind == "function" else None
        if call is not None and first is not None and _in_class(where, context):
            call.args = [templates.name(call, "__class__"), templates.name(call, first.id)]


def _call_of(name: Any, scopes: Scopes, where: Scope) -> Any:
    for node in tree.walk(where.node):
        call: Any = node
        if type(node).__name__ == "Call" and call.func is name and not call.args and not call.keywords:
            return call
    return None


def _arguments(scope: Scope) -> Any:
    node: Any = scope.node
    return node.args


def _in_class(scope: Scope | None, context: Context) -> bool:
    if "__class__" in context.free:
        return True
    while scope is not None and scope.kind != "class":
        scope = scope.parent
    return scope is not None
