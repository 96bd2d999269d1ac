r"""`return` inside an `if` or a loop becomes an assignment, and one `return` stands at the end.

1. After an `if` that always returns, the rest moves into the other branch.
2. Out of a loop, `try`, `with`, or an `if` that may go on: a flag, a `break`, and the rest under `if not flag`.
3. A `finally` that returns comes behind its `try`, which catches everything: what it returned or raised is forgotten.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(x):\n    if x:\n        return 1\n    x += 1\n    return x", "returns"))
def f(x):
    if x:
        _value = 1
    else:
        x += 1
        _value = x
    return _value
>>> print(preview("def f(xs):\n    for x in xs:\n        if x:\n            return x", "returns"))
def f(xs):
    _returned = False
    for x in xs:
        if x:
            _value = x
            _returned = True
            break
    if not _returned:
        _value = None
    return _value
"""

from __future__ import annotations

import copy
from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.pysrc.scopes import own
from dy2st.transformers.canonicalize.keep_native import always_returns
from dy2st.transformers.core.context import Context

_CONVERTED = ("If", "While", "For", "Try", "With")
_LOOPS = ("While", "For", "AsyncFor")


def transform(root: Any, context: Context) -> None:
    """Lower the returns of every function that has one inside of a construct that becomes a function."""
    for function in tree.functions(root):
        if any(_needs(stmt, context) for stmt in function.body):
            lowering = _Returns(context)
            function.body = lowering.top(function.body)


def _returns(node: Any) -> bool:
    return any(type(inner).__name__ == "Return" for inner in own(node))


def _needs(stmt: Any, context: Context) -> bool:
    """Return whether a return cannot stay where it is."""
    if type(stmt).__name__ in _CONVERTED and stmt not in context.native:
        return _returns(stmt)
    if not tree.is_compound(stmt):
        return False
    return any(_needs(inner, context) for owner, field in tree.blocks(stmt) for inner in getattr(owner, field))


def _may_raise(stmts: list[Any]) -> bool:
    return any(type(inner).__name__ in ("Raise", "Assert", "Call", "Subscript") for inner in own(stmts))


def ends(stmts: list[Any]) -> bool:
    """Return whether a block always leaves by a jump."""
    if not stmts:
        return False
    last = stmts[-1]
    if type(last).__name__ == "If":
        return ends(last.body) and ends(last.orelse)
    return type(last).__name__ in ("Return", "Raise", "Break", "Continue")


class _Returns:
    def __init__(self, context: Context):
        self.context = context
        self.value = context.variable("value", label="return value")
        self.returned = context.variable("returned")

    def top(self, stmts: list[Any]) -> list[Any]:
        """Lower the function's own block, in which a `return` may stay."""
        for at, stmt in enumerate(stmts):
            if not _needs(stmt, self.context):
                continue
            lowered = self.tail(stmts[at:])
            final = templates.statements(origin.header(stmt), "return VALUE", VALUE=self.value)
            return [*stmts[:at], *lowered, *final]
        return stmts

    def tail(self, stmts: list[Any], spot: Any = None) -> list[Any]:
        """Lower a block after which nothing follows: each way through it assigns the value."""
        done: list[Any] = []
        for at, stmt in enumerate(stmts):
            rest = stmts[at + 1 :]
            spot = origin.header(stmt)
            if type(stmt).__name__ == "Return":
                return [*done, *self.assign(stmt)]
            done.append(stmt)
            if not _returns(stmt):
                continue
            if final := self.final(stmt):  # 3.
                self.flag(stmt, in_loop=False)
                forgotten = templates.statements(spot, "RETURNED = False", RETURNED=self.returned)
                return [*done[:-1], *forgotten, stmt, *self.tail(final)]
            if type(stmt).__name__ == "If" and (ends(stmt.body) or ends(stmt.orelse)):
                first = ends(stmt.body)
                stmt.body = self.tail(stmt.body if first else [*stmt.body, *rest], spot)
                stmt.orelse = self.tail([*stmt.orelse, *rest] if first else stmt.orelse, spot)
                return done
            done[-1:] = [*templates.statements(spot, "RETURNED = False", RETURNED=self.returned), stmt]
            self.flag(stmt, in_loop=False)
            return [*done, self.unless_returned(spot, self.tail(rest, spot))]
        if ends(done):
            return done
        return [*done, *templates.statements(spot, "VALUE = None", VALUE=self.value)]

    def assign(self, stmt: Any) -> list[Any]:
        value = stmt.value if stmt.value is not None else templates.literal(stmt, None)
        return templates.statements(stmt, "VALUE = RESULT", VALUE=self.value, RESULT=value)

    def unless_returned(self, spot: Any, body: list[Any]) -> Any:
        return templates.statement(spot, "if not RETURNED:\n    BODY", RETURNED=self.returned, BODY=body)

    def flag(self, stmt: Any, in_loop: bool) -> None:
        """Lower the returns inside one compound statement to flags."""
        kind = type(stmt).__name__
        skips_else = kind in ("Try", "TryStar") and not in_loop and _returns(stmt.body)
        cancels = kind in ("Try", "TryStar") and _may_raise(stmt.finalbody) and _returns(stmt)
        for owner, field in tree.blocks(stmt):
            inside = in_loop or (kind in _LOOPS and field == "body")
            setattr(owner, field, self.flagged(getattr(owner, field), inside))
        if skips_else and stmt.orelse:
            stmt.orelse = [self.unless_returned(stmt.orelse[0], stmt.orelse)]
        if cancels:  # a `finally` that raises takes a return back
            spot = origin.header(stmt.finalbody[0])
            values = {"PENDING": self.context.variable("pending"), "RETURNED": self.returned, "FINAL": stmt.finalbody}
            text = "PENDING = RETURNED\nRETURNED = False\nFINAL\nRETURNED = PENDING"
            stmt.finalbody = templates.statements(spot, text, **values)

    def final(self, stmt: Any) -> list[Any]:
        """Take the `finally` off a `try` that it always leaves by a `return`; the `try` then catches everything."""
        if type(stmt).__name__ != "Try" or stmt in self.context.native or not always_returns(stmt.finalbody):
            return []
        final, stmt.finalbody = stmt.finalbody, []
        outer: Any = templates.statement(origin.header(stmt), "try:\n    pass\nexcept BaseException:\n    pass")
        if stmt.handlers:
            inner = copy.copy(stmt)
            stmt.body, stmt.orelse = [inner], []
        stmt.handlers = outer.handlers
        return final

    def flagged(self, stmts: list[Any], in_loop: bool) -> list[Any]:
        """Lower a block after which more may follow."""
        done: list[Any] = []
        for at, stmt in enumerate(stmts):
            rest = stmts[at + 1 :]
            if type(stmt).__name__ == "Return":
                flag = templates.statements(stmt, "RETURNED = True", RETURNED=self.returned)
                leave = templates.statements(stmt, "break") if in_loop else []
                return [*done, *self.assign(stmt), *flag, *leave]
            done.append(stmt)
            if not _returns(stmt):
                continue
            spot = origin.header(stmt)
            if final := self.final(stmt):  # 3.
                self.flag(stmt, in_loop=False)
                forgotten = templates.statements(spot, "RETURNED = False", RETURNED=self.returned)
                return [*done, *forgotten, *self.flagged(final, in_loop)]
            if type(stmt).__name__ == "If" and not in_loop and ends(stmt.body):
                stmt.orelse = [*stmt.orelse, *rest]
                self.flag(stmt, in_loop)
                return done
            self.flag(stmt, in_loop)
            if not in_loop:
                return [*done, self.unless_returned(spot, self.flagged(rest, in_loop))] if rest else done
            if type(stmt).__name__ in _LOOPS:
                done += templates.statements(spot, "if RETURNED:\n    break", RETURNED=self.returned)
        return done
