"""Decide which variables each construct hands to the helper, and which start as placeholders.

The tree stays; `context.plans`, `context.placeholders` and (for inner functions) `context.unbound` are filled.

1. Names of a construct: what it assigns and somebody wants afterwards (or, in a loop, in the next iteration; or a
   function inside has captured it).
   A variable that is only used inside lives in the function of the body; a rest is declared `nonlocal`.
2. A variable starts as a placeholder when a read may come before its assignment, or when its first assignment
   moves into a function.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import tree
from dy2st.pysrc.definite import Definite, dropped
from dy2st.pysrc.liveness import Liveness
from dy2st.pysrc.scopes import Bindings, Scope, Scopes, binds, own
from dy2st.transformers.core.context import Context, Plan
from dy2st.transformers.lowering.assignments import only_names

_CONVERTED = ("If", "While", "For", "Try", "With")


def transform(root: Any, context: Context) -> None:
    """Plan every construct of every function."""
    scopes = Scopes(root, context.comprehensions.values(), context.locals)
    for scope in scopes.functions():
        _Function(scopes, scope, context).plan()
    _mark_reads_from_inside(scopes, context)


class _Function:
    def __init__(self, scopes: Scopes, scope: Scope, context: Context):
        self.scopes, self.scope, self.context = scopes, scope, context
        self.live = Liveness(scopes, scope, context.comprehensions, context.loop_tests)
        self.definite = Definite(scopes, scope)
        self.late: set[str] = set()
        self.kept: frozenset[str] = frozenset()
        self.nested = False
        self.bindings = Bindings()

    def plan(self) -> None:
        node: Any = self.scope.node
        params = {param.id for param in tree.parameters(node.args)}
        self.blocks(node)
        for read in self.context.unbound:
            name: Any = read
            if name in self.scopes.where and self.scopes.owner(name) is self.scope:
                self.late.add(name.id)
        for name in self.deferred_walruses(node):
            self.late.add(name)
        still_bound = {*self.bindings.names(node.body), *params}
        self.late.update(name for name in self.scope.local if name not in still_bound)  # by dead code only
        self.context.unset[node] = self.late
        self.context.placeholders[node] = [
            name for name in self.scope.local if name in self.late and name not in params and self.mine(name)
        ]

    def mine(self, name: str) -> bool:
        return self.scope.resolve(name) is self.scope

    def is_ours(self, name: str) -> bool:
        """Return whether no other function sees a variable."""
        return self.mine(name) and name not in self.scopes.captured[self.scope]

    def blocks(self, node: Any) -> None:
        for owner, field in tree.blocks(node):
            for stmt in getattr(owner, field):
                if not tree.is_compound(stmt):
                    continue
                kept, nested = self.kept, self.nested
                if type(stmt).__name__ in _CONVERTED and stmt not in self.context.native:
                    self.construct(stmt)
                    self.kept, self.nested = kept | frozenset(self.context.plans[stmt].names), True
                self.blocks(stmt)
                self.kept, self.nested = kept, nested

    def construct(self, stmt: Any) -> None:
        if type(stmt).__name__ in ("Try", "With"):
            self.attempt(stmt)
            return
        parts = [*([stmt.test] if type(stmt).__name__ == "While" else []), *stmt.body, *stmt.orelse]
        parts += [stmt.target] if type(stmt).__name__ == "For" else []
        inside = frozenset(self.bindings.names(parts))
        assigned = [name for name in self.bindings.names([stmt]) if name in inside]  # target before body
        rebound = sorted(self.scopes.rebound[self.scope] - inside) if self.bindings.calls(parts) else []
        wanted = self.live.after[stmt] | self.live.head.get(stmt, frozenset()) | self.scopes.captured[self.scope]
        wanted |= self.kept  # constructs around this one read these at the end of their bodies
        if type(stmt).__name__ == "If":  # one branch must not see what the other one assigned
            wanted |= self.live.before[stmt] & frozenset(self.bindings.names(stmt.body)) & _read(stmt.orelse)
        names = [name for name in [*assigned, *rebound] if name in wanted or not self.mine(name)]
        outer = [name for name in assigned if name in self.scope.globals]
        private = {name for name in assigned if name not in names and self.stays_inside(name, stmt)}
        nonlocals = [name for name in assigned if name not in outer and name not in private]
        self.context.plans[stmt] = Plan(
            tuple(names),
            tuple(nonlocals),
            tuple(outer),
            tuple(name for name in names if self.scope.resolve(name) is None),
        )
        sure = self.definite.entries.get(stmt)
        unsure = [] if sure is None else [name for name in [*nonlocals, *rebound] if name not in sure]
        unreachable = nonlocals if sure is None else []
        self.late.update([*unsure, *unreachable])

    def attempt(self, stmt: Any) -> None:
        """Plan a `try` or `with`: a handler may see anything that the body assigned, `finally` what any part did."""
        assigned = self.bindings.names([stmt])
        is_try = type(stmt).__name__ == "Try"
        handlers: list[Any] = stmt.handlers if is_try else []
        wanted = self.live.after[stmt] | self.scopes.captured[self.scope]
        caught = [tree.handler_name(handler) for handler in handlers]
        for handler, name in zip(handlers, caught, strict=True):
            wanted |= self.live.before[handler.body[0]] - {name.id if name else ""}
        for part in (stmt.orelse, stmt.finalbody) if is_try else ():
            wanted |= self.live.before[part[0]] if part else frozenset()
        before = self.live.before[stmt] | self.kept
        wanted |= before  # the body may be traced twice
        rebound = sorted(self.scopes.rebound[self.scope] - {*assigned}) if self.bindings.calls([stmt]) else []
        names = [name for name in [*assigned, *rebound] if name in wanted or not self.mine(name)]
        outer = [name for name in assigned if name in self.scope.globals]
        private = {name.id for name in caught if name and name.id not in names}
        nonlocals = [name for name in assigned if name not in outer and name not in private]
        self.context.plans[stmt] = Plan(
            tuple(names),
            tuple(nonlocals),
            tuple(outer),
            tuple(name for name in names if self.scope.resolve(name) is None),
            tuple(name for name in names if self.nested and name not in before and self.is_ours(name)),
        )
        sure = self.definite.entries.get(stmt) or frozenset()
        self.late.update(name for name in [*nonlocals, *rebound] if name not in sure)

    def stays_inside(self, name: str, stmt: Any) -> bool:
        """Return whether a variable that nobody wants afterwards can live in the functions of a construct."""
        if name in self.context.variables:
            return True
        if name in self.live.before[stmt] or name in self.scopes.deleted[self.scope] or name in dropped(stmt):
            return False
        if type(stmt).__name__ == "While" and name in self.bindings.names([stmt.test]):
            return False
        if type(stmt).__name__ == "For" and name in self.bindings.names([stmt.target]):
            return only_names(stmt.target)
        return _assigned_first(name, stmt.body) and _assigned_first(name, stmt.orelse)

    def deferred_walruses(self, node: Any) -> list[str]:
        """List the targets of walruses that move into functions: they need a binding outside."""
        found: list[str] = []
        for inner in own(node.body):
            kind = type(inner).__name__
            deferred: list[Any] = []
            if kind == "BoolOp":
                deferred = inner.values[1:]
            elif kind == "IfExp":
                deferred = [inner.body, inner.orelse]
            elif kind == "Compare" and len(inner.ops) > 1:
                deferred = inner.comparators
            elif kind in ("Assert", "Raise"):
                deferred = [inner]
            elif kind == "While":
                deferred = [inner.test]
            elif kind == "Call" and getattr(inner.func, "id", None) in self.context.comprehensions:
                made: Any = self.context.comprehensions[inner.func.id]
                deferred = [made.body]
            found += [name.target.id for part in deferred for name in own(part) if type(name).__name__ == "NamedExpr"]
        return found


def _read(stmts: list[Any]) -> frozenset[str]:
    """Return the variables that a block reads somewhere, functions inside included."""
    return frozenset(
        node.id
        for stmt in stmts
        for node in tree.walk(stmt)
        if type(node).__name__ == "Name" and type(node.ctx).__name__ == "Load"
    )


def _assigned_first(name: str, stmts: list[Any]) -> bool:
    """Return whether the first statement of a block that mentions a variable assigns it, and does nothing else with
    it.
    """
    for stmt in stmts:
        mentions = [node for node in tree.walk(stmt) if getattr(node, "id", None) == name or name in binds(node)]
        if mentions:
            targets: list[Any] = stmt.targets if type(stmt).__name__ == "Assign" else []
            return len(mentions) == 1 and mentions[0] in targets
    return True


def _mark_reads_from_inside(scopes: Scopes, context: Context) -> None:
    """Mark reads, by functions inside, of variables that may be unset: placeholders and what `del` unset."""
    late = {scopes.of[node]: names for node, names in context.unset.items()}
    kills: dict[Scope, set[str]] = {scope: set(scopes.deleted[scope]) for scope in late}
    for scope in late:
        node: Any = scope.node
        kills[scope] |= dropped(node.body)
    added_to = {node.target for node in tree.walk(context.root) if type(node).__name__ == "AugAssign"}
    for read, where in scopes.where.items():
        owner = where.resolve(read.id)
        if owner is None or owner not in late or read in context.unbound or read.id in context.variables:
            continue
        loads = type(read.ctx).__name__ == "Load" or read in added_to
        if loads and scopes.runs_later(where, owner) and read.id in late[owner] | kills[owner]:
            context.unbound[read] = True
