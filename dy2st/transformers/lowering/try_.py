r"""`try` becomes a call of the helper with a function for each part; the handlers stay Python's, around a `raise`.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    try:\n        y = g(x)\n    except ValueError:\n        y = 0\n    return y"))
def f(x):
    y = _dy.undefined('y')
    def _try():
        nonlocal y
        y = _dy.call(g)(x)
    def _except(_raised):
        nonlocal y
        try:
            raise _raised
        except ValueError:
            y = 0
    def _set(_values):
        nonlocal y
        [y] = _values
    _dy.try_(_try, _except, None, None, lambda: (ValueError,), lambda: (y,), _set, ('y',))
    return y

A `try` that must stay (see pinned), or catches groups, stays.
"""

from __future__ import annotations

import copy
from typing import Any

from dy2st.pysrc import origin, templates
from dy2st.transformers.core.context import Plan
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_try(rw: Rewriter, node: Any) -> list[Any]:
    """Lower `try`."""
    plan, spot = rw.context.plans.get(node), origin.header(node)
    if plan is None:
        return [rw.children(node)]
    parts = rw.part(spot, "try", node.body, plan)
    passed: dict[str, Any] = {"ORELSE": templates.literal(spot, None), "FINAL": templates.literal(spot, None)}
    if node.handlers:
        parts += _handlers(rw, node, plan)
        passed["EXCEPT"] = templates.name(spot, rw.context.function("except"))
    else:
        passed["EXCEPT"] = templates.literal(spot, None)
    for key, part, body in (("ORELSE", "else", node.orelse), ("FINAL", "finally", node.finalbody)):
        if body:
            parts += rw.part(spot, part, body, plan)
            passed[key] = templates.name(spot, rw.context.function(part))
    access, get, put = rw.access(spot, plan)
    call = rw.make(
        spot,
        "DY.try_(BODY, EXCEPT, ORELSE, FINAL, KINDS, GET, SET, NAMES)",
        BODY=templates.name(spot, rw.context.function("try")),
        KINDS=_kinds(rw, node, spot),
        GET=get,
        SET=put,
        NAMES=rw.shown(spot, plan),
        **passed,
    )
    return [*rw.emptied(spot, plan), *parts, *access, *templates.statements(spot, "CALL", CALL=call)]


def lower_try_star(rw: Rewriter, node: Any) -> list[Any]:
    """Leave `except*` to Python; a trace is told before."""
    call = rw.make(origin.header(node), "DY.refuse_groups()")
    return [*templates.statements(origin.header(node), "CALL", CALL=call), rw.children(node)]


def _kinds(rw: Rewriter, node: Any, spot: Any) -> Any:
    """Make the function that gives what the handlers, lowered already, catch."""
    kinds: list[Any] = []
    for handler in node.handlers:
        bare = handler.type is None
        kinds.append(templates.name(spot, "BaseException") if bare else copy.deepcopy(handler.type))
    made = templates.expression(spot, "lambda: (*KINDS,)", KINDS=kinds)
    rw.context.thunks.add(made)
    return made


def _handlers(rw: Rewriter, node: Any, plan: Plan) -> list[Any]:
    """Make the function that runs the handler which fits an exception."""
    spot = origin.header(node)
    raised = rw.context.shared("raised")
    inside = rw.bindings.names(node.handlers)
    again: Any
    (again,) = templates.statements(spot, "try:\n    raise RAISED\nexcept Exception:\n    pass", RAISED=raised)
    again.handlers = [rw.expr(handler) for handler in node.handlers]
    made = templates.statement(
        spot,
        "def NAME():\n    nonlocal NONLOCALS\n    global GLOBALS\n    BODY",
        NAME=rw.context.function("except"),
        NONLOCALS=[name for name in plan.nonlocals if name in inside],
        GLOBALS=[name for name in plan.globals if name in inside],
        BODY=[again],
    )
    made.args.args = [templates.name(spot, raised, "Param")]
    return [made]
