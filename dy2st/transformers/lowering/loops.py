"""`while` and `for` become calls of `helper.while_` and `helper.for_` with functions for test and body.

>>> from dy2st.transformers.preview import preview
>>> print(preview('''
... def f(n, xs):
...     while n > 0:
...         n -= 1
...     for x in xs:
...         n = n + x
...     return n
... '''))
def f(n, xs):
    def _body():
        nonlocal n
        n = _dy.aug('-=', n, 1)
    def _set(_values):
        nonlocal n
        [n] = _values
    _dy.while_(lambda: n > 0, _body, lambda: (n,), _set, ('n',))
    def _body(_item):
        nonlocal n
        x = _item
        n = n + x
    def _set(_values):
        nonlocal n
        [n] = _values
    _dy.for_(xs, _body, lambda: (n,), _set, ('n',))
    return n
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import origin, templates
from dy2st.transformers.lowering.assignments import only_names
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_while(rw: Rewriter, node: Any) -> list[Any]:
    """Lower a `while` statement (its `else` and jumps are gone already)."""
    plan, spot = rw.context.plans.get(node), origin.header(node)
    if plan is None:
        node.test = rw.make(spot, "DY.bool_(TEST)", TEST=rw.expr(node.test))
        node.body, node.orelse = rw.block(node.body), rw.block(node.orelse)
        return [node]
    test = rw.thunk(node.test)
    body = rw.part(spot, "body", node.body, plan)
    access, get, put = rw.access(spot, plan)
    call = rw.make(
        spot,
        "DY.while_(TEST, BODY, GET, SET, NAMES)",
        TEST=test,
        BODY=templates.name(spot, rw.context.function("body")),
        GET=get,
        SET=put,
        NAMES=rw.shown(spot, plan),
    )
    return [*body, *access, *templates.statements(spot, "CALL", CALL=call)]


def lower_for(rw: Rewriter, node: Any) -> list[Any]:
    """Lower a `for` statement (its `else` and jumps are gone already)."""
    plan, spot = rw.context.plans.get(node), origin.header(node)
    iterable = rw.expr(node.iter)
    if plan is None:
        start = [] if only_names(node.target) else _assign_target(rw, node)
        node.iter, node.body, node.orelse = iterable, [*start, *rw.block(node.body)], rw.block(node.orelse)
        return [node]
    item = rw.context.shared("item")
    take = templates.statements(
        node.target, "TARGET = ITEM", TARGET=node.target, ITEM=templates.name(node.target, item)
    )
    body = rw.part(spot, "body", [*take, *node.body], plan, item)
    access, get, put = rw.access(spot, plan)
    going = rw.context.loop_tests.get(node)
    call = rw.make(
        spot,
        "DY.for_(ITERABLE, BODY, GET, SET, NAMES, test=GOING)",
        GOING=rw.thunk(going) if going is not None else templates.literal(spot, None),
        ITERABLE=iterable,
        BODY=templates.name(spot, rw.context.function("body")),
        GET=get,
        SET=put,
        NAMES=rw.shown(spot, plan),
    )
    if going is None:
        call.keywords = []
    return [*body, *access, *templates.statements(spot, "CALL", CALL=call)]


def _assign_target(rw: Rewriter, node: Any) -> list[Any]:
    """Take the item into a variable, and make the statement that assigns it to an attribute or item."""
    item = rw.context.variable("item")
    made = templates.statements(
        node.target, "TARGET = ITEM", TARGET=node.target, ITEM=templates.name(node.target, item)
    )
    node.target = templates.name(node.target, item, "Store")
    return rw.block(made)
