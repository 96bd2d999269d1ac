"""`if` becomes a call of `helper.if_` with a function for each branch.

>>> from dy2st.transformers.preview import preview
>>> print(preview('''
... def f(x):
...     y = 0
...     if x > 0:
...         y = x
...     return y
... '''))
def f(x):
    y = 0
    def _then():
        nonlocal y
        y = x
    def _set(_values):
        nonlocal y
        [y] = _values
    _dy.if_(x > 0, _then, lambda: None, lambda: (y,), _set, ('y',))
    return y

An `if` that must stay (see pinned) tests `helper.bool_(test)`.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import origin, templates
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_if(rw: Rewriter, node: Any) -> list[Any]:
    """Lower an `if` statement."""
    plan, spot = rw.context.plans.get(node), origin.header(node)
    test = rw.expr(node.test)
    if plan is None:
        node.test = rw.make(spot, "DY.bool_(TEST)", TEST=test)
        node.body, node.orelse = rw.block(node.body), rw.block(node.orelse)
        return [node]
    then = rw.part(spot, "then", node.body, plan)
    other: list[Any] = []
    orelse = templates.expression(spot, "lambda: None")
    if node.orelse:
        other = rw.part(spot, "else", node.orelse, plan)
        orelse = templates.name(spot, rw.context.function("else"))
    else:
        rw.context.thunks.add(orelse)
    access, get, put = rw.access(spot, plan)
    call = rw.make(
        spot,
        "DY.if_(TEST, THEN, ORELSE, GET, SET, NAMES)",
        TEST=test,
        THEN=templates.name(spot, rw.context.function("then")),
        ORELSE=orelse,
        GET=get,
        SET=put,
        NAMES=rw.shown(spot, plan),
    )
    return [*then, *other, *access, *templates.statements(spot, "CALL", CALL=call)]
