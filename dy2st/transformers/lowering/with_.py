r"""`with` becomes a call of the helper with a function for its body: `__exit__` sees what only the run raises.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    with a as b:\n        x = b(x)\n    return x"))
def f(x):
    b = _dy.undefined('b')
    def _with(_entered):
        nonlocal b, x
        b = _entered
        x = _dy.call(b)(x)
    def _set(_values):
        nonlocal b, x
        [b, x] = _values
    _dy.with_(a, _with, lambda: (b, x), _set, ('b', 'x'))
    return x

Each manager of a `with` gets one of its own. A `with` that must stay (see pinned) is told which manager it takes.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.transformers.core.context import Context
from dy2st.transformers.lowering.assignments import only_names
from dy2st.transformers.lowering.rewriter import Rewriter


def transform(root: Any, context: Context) -> None:
    """Give every `with` one manager: those after the first are entered in its body."""
    for node in list(tree.walk(root)):
        while type(node).__name__ == "With" and len(node.items) > 1:
            last = tree.new("With", items=[node.items.pop()], body=node.body, type_comment=None)
            origin.put(last, origin.header(node))
            node.body = [last]


def lower_with(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `with`."""
    plan, spot = rw.context.plans.get(node), origin.header(node)
    if plan is None:
        return _staying(rw, node)
    (item,) = node.items
    manager, entered = rw.expr(item.context_expr), rw.context.shared("entered")
    take: list[Any] = []
    if item.optional_vars is not None:
        target = item.optional_vars
        take = templates.statements(target, "TARGET = ENTERED", TARGET=target, ENTERED=templates.name(target, entered))
    body = rw.part(spot, "with", [*take, *node.body], plan, entered)
    access, get, put = rw.access(spot, plan)
    call = rw.make(
        spot,
        "DY.with_(MANAGER, BODY, GET, SET, NAMES)",
        MANAGER=manager,
        BODY=templates.name(spot, rw.context.function("with")),
        GET=get,
        SET=put,
        NAMES=rw.shown(spot, plan),
    )
    return [*rw.emptied(spot, plan), *body, *access, *templates.statements(spot, "CALL", CALL=call)]


def _staying(rw: Rewriter, node: Any) -> list[Any]:
    """Lower a `with` that stays; a target that is an attribute or item is assigned first thing inside."""
    start: list[Any] = []
    for item in node.items:
        manager = rw.expr(item.context_expr)
        if type(node).__name__ == "With":
            manager = rw.make(item.context_expr, "DY.context(MANAGER)", MANAGER=manager)
        item.context_expr = manager
        target = item.optional_vars
        if target is None or only_names(target):
            continue
        entered = rw.context.variable("entered")
        start += templates.statements(
            target, "TARGET = ENTERED", TARGET=target, ENTERED=templates.name(target, entered)
        )
        item.optional_vars = templates.name(target, entered, "Store")
    node.body = rw.block([*start, *node.body])
    return [node]
