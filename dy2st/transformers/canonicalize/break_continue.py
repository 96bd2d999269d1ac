"""`break` and `continue` become flags; what they skip stands in the other branch or under `if not flag`.

>>> from dy2st.transformers.preview import preview
>>> print(preview('''
... def f(xs):
...     for x in xs:
...         if x < 0:
...             continue
...         if x > 9:
...             print(x)
...             break
...         use(x)
...     else:
...         done()
... ''', "jumps"))
def f(xs):
    _break = False
    for x in xs:
        if x < 0:
            pass
        elif x > 9:
            print(x)
            _break = True
        else:
            use(x)
    if not _break:
        done()

A `while` tests the flag first; a `for` tests it before it asks for the next item (`context.loop_tests`).
"""

from __future__ import annotations

import ast
from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.pysrc.scopes import own
from dy2st.transformers.canonicalize.returns import ends
from dy2st.transformers.core.context import Context

_LOOPS = ("While", "For", "AsyncFor")


def transform(root: Any, context: Context) -> None:
    """Lower the jumps and the `else` of every loop that becomes a function."""
    for function in tree.functions(root):
        _blocks(function, context)


def _blocks(node: Any, context: Context) -> None:
    for owner, field in tree.blocks(node):
        done: list[Any] = []
        for stmt in getattr(owner, field):
            if tree.is_compound(stmt):
                _blocks(stmt, context)  # inner loops first
            lower = type(stmt).__name__ in ("While", "For") and stmt not in context.native
            done += _Loop(stmt, context).lower() if lower else [stmt]
        setattr(owner, field, done)


class _Loop:
    def __init__(self, loop: Any, context: Context):
        self.loop, self.context = loop, context
        self.flags: dict[str, str] = {}

    def lower(self) -> list[Any]:
        loop, spot = self.loop, origin.header(self.loop)
        loop.body = self.block(loop.body)
        after, loop.orelse = loop.orelse, []
        if name := self.flags.get("Continue"):
            loop.body = [*self.used(name, templates.statements(spot, "FLAG = False", FLAG=name)), *loop.body]
        name = self.flags.get("Break")
        if name is None:
            return [loop, *after]
        before = templates.statements(spot, "FLAG = False", FLAG=name)
        going = templates.expression(spot, "not FLAG", FLAG=name)
        if type(loop).__name__ == "For":
            self.context.loop_tests[loop] = going
        elif type(loop.test).__name__ == "Constant" and loop.test.value:
            loop.test = going
        else:
            loop.test = templates.expression(spot, "GOING and TEST", GOING=going, TEST=loop.test)
        otherwise = templates.statements(spot, "if not FLAG:\n    AFTER", FLAG=name, AFTER=after) if after else []
        return [*before, loop, *otherwise]

    def used(self, flag: str, start: list[Any]) -> list[Any]:
        """Return the start of a flag, or drop the flag where nothing reads it."""
        if any(getattr(node, "id", None) == flag and _loads(node) for node in own(self.loop.body)):
            return start
        _remove(self.loop, flag)
        return []

    def flag(self, kind: str) -> str:
        if kind not in self.flags:
            self.flags[kind] = self.context.variable(kind.lower())
        return self.flags[kind]

    def jumps(self, node: Any) -> list[str]:
        """List the kinds of jump out of the iteration inside a statement, in order, not those of inner loops."""
        kind = type(node).__name__
        if kind in ("Break", "Continue"):
            return [kind]
        found: list[str] = []
        for owner, field in tree.blocks(node) if tree.is_compound(node) else ():
            if kind not in _LOOPS or field != "body":
                found += [jump for stmt in getattr(owner, field) for jump in self.jumps(stmt)]
        return list(dict.fromkeys(found))

    def block(self, stmts: list[Any]) -> list[Any]:
        done: list[Any] = []
        for at, stmt in enumerate(stmts):
            rest = stmts[at + 1 :]
            kinds = self.jumps(stmt)
            if type(stmt).__name__ in ("Break", "Continue"):
                return [*done, *templates.statements(stmt, "FLAG = True", FLAG=self.flag(kinds[0]))]
            done.append(stmt)
            if not kinds:
                continue
            if type(stmt).__name__ == "If" and ends(stmt.body):
                stmt.body, stmt.orelse = self.block(stmt.body), self.block([*stmt.orelse, *rest])
                return done
            if type(stmt).__name__ == "If" and ends(stmt.orelse):
                stmt.body, stmt.orelse = self.block([*stmt.body, *rest]), self.block(stmt.orelse)
                return done
            self.inside(stmt)
            return [*done, self.unless(stmt, kinds, self.block(rest))] if rest else done
        return done

    def inside(self, stmt: Any) -> None:
        """Lower the blocks of a statement that may go on."""
        kind = type(stmt).__name__
        skipped = self.jumps(tree.new("If", body=stmt.body, orelse=[])) if kind in ("Try", "TryStar") else []
        for owner, field in tree.blocks(stmt):
            if kind not in _LOOPS or field != "body":
                setattr(owner, field, self.block(getattr(owner, field)))
        if skipped and stmt.orelse:
            stmt.orelse = [self.unless(stmt.orelse[0], skipped, stmt.orelse)]

    def unless(self, stmt: Any, kinds: list[str], rest: list[Any]) -> Any:
        spot = origin.header(stmt)
        tests = [templates.name(spot, self.flag(kind)) for kind in kinds]
        either = tests[0] if len(tests) == 1 else templates.expression(spot, "A or B", A=tests[0], B=tests[1])
        return templates.statement(spot, "if not EITHER:\n    REST", EITHER=either, REST=rest)


def _loads(node: Any) -> bool:
    return type(node.ctx).__name__ == "Load"


def _remove(node: Any, flag: str) -> None:
    for owner, field in tree.blocks(node):
        block = getattr(owner, field)
        kept = [stmt for stmt in block if not _assigns(stmt, flag)]
        if block and not kept and field == "body":
            kept = templates.statements(block[0], "pass")
        setattr(owner, field, kept)
        for stmt in kept:
            if tree.is_compound(stmt):
                _remove(stmt, flag)


def _assigns(stmt: ast.stmt, flag: str) -> bool:
    node: Any = stmt
    return type(stmt).__name__ == "Assign" and getattr(node.targets[0], "id", None) == flag
