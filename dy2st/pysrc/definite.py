"""Which variables are surely assigned at each point of a function (forward, over structured code).

Python raises UnboundLocalError where a variable that is not assigned is read. Reads that this analysis cannot prove
are listed in `unproven`, each with whether it reads a variable of an outer code object (NameError there); `entries`
has the variables that are surely assigned when an `if`, `while`, `for`, `try` or `with` starts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from dy2st.pysrc import tree
from dy2st.pysrc.scopes import Scope, Scopes, binds, evaluated_outside, own, parts_inside

State = frozenset[str] | None  # None: this point is never reached


def join(*states: State) -> State:
    """Return what is sure whichever way was taken."""
    reached = [state for state in states if state is not None]
    return reached[0].intersection(*reached[1:]) if reached else None


class Definite:
    """The analysis of one function."""

    def __init__(self, scopes: Scopes, scope: Scope):
        self.scopes, self.scope = scopes, scope
        self.unproven: dict[ast.AST, bool] = {}
        self.entries: dict[ast.AST, State] = {}
        self._jumps: list[tuple[list[State], list[State]]] = []  # (break, continue) of the loops around
        node: Any = scope.node
        self.unsure = deleted_inside(scopes, scope)
        self.state: State = frozenset(param.id for param in tree.parameters(node.args)) - self.unsure
        self._block(node.body)

    # -- what an expression or statement does to the state

    def _add(self, *names: str) -> None:
        if self.state is not None:
            self.state |= frozenset(name for name in names if self.scope.resolve(name) is self.scope) - self.unsure

    def _drop(self, names: frozenset[str]) -> None:
        if self.state is not None:
            self.state -= names

    def _read(self, node: ast.Name) -> None:
        where = self.scopes.where.get(node)
        if where is None or self.state is None or node.id in self.state or where.resolve(node.id) is not self.scope:
            return
        inlined = sys.version_info >= (3, 12)  # from 3.12 on a comprehension is part of its function's code
        outer = where.kind in ("class", "generator") or (where.kind == "comprehension" and not inlined)
        self.unproven[node] = outer

    def _visit(self, node: Any) -> None:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            method(node)
        elif tree.is_comprehension(node):
            self._comprehension(node)
        else:
            for child in tree.children(node):
                self._visit(child)
            if names := binds(node):
                self._add(*names)

    def _block(self, nodes: list[Any]) -> None:
        for node in nodes:
            self._visit(node)

    def _Name(self, node: Any) -> None:
        kind = type(node.ctx).__name__
        if kind == "Store":
            self._add(node.id)
            return
        self._read(node)
        if kind == "Del":
            self._drop(frozenset({node.id}))

    def _maybe(self, nodes: list[Any]) -> None:
        """Visit what may not run."""
        before = self.state
        self._block(nodes)
        self.state = before

    def _BoolOp(self, node: Any) -> None:
        self._visit(node.values[0])
        self._maybe(node.values[1:])

    def _Compare(self, node: Any) -> None:
        self._block([node.left, node.comparators[0]])
        self._maybe(node.comparators[1:])

    def _IfExp(self, node: Any) -> None:
        self._visit(node.test)
        self._fork([node.body], [node.orelse])

    def _NamedExpr(self, node: Any) -> None:
        self._block([node.value, node.target])

    def _comprehension(self, node: Any) -> None:
        self._visit(node.generators[0].iter)
        self._maybe(parts_inside(node))

    def _Lambda(self, node: Any) -> None:
        self._block(evaluated_outside(node))

    def _FunctionDef(self, node: Any) -> None:
        self._block(evaluated_outside(node))
        self._add(node.name)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: Any) -> None:
        self._block(evaluated_outside(node))
        for inner in own(node.body):
            if type(inner).__name__ == "Name" and type(inner.ctx).__name__ == "Load":
                self._read(inner)
        self._add(node.name)

    def _Assign(self, node: Any) -> None:
        self._block([node.value, *node.targets])

    def _AugAssign(self, node: Any) -> None:
        if type(node.target).__name__ == "Name":
            self._read(node.target)
        self._block([node.value, node.target])

    def _AnnAssign(self, node: Any) -> None:
        if node.value is not None:
            self._block([node.value, node.target])
        elif type(node.target).__name__ != "Name":
            self._visit(node.target)

    def _Assert(self, node: Any) -> None:
        self._visit(node.test)
        self._maybe([node.msg] if node.msg else [])

    def _Return(self, node: Any) -> None:
        self._block(tree.children(node))
        self.state = None

    _Raise = _Return

    def _Break(self, node: Any) -> None:
        self._jumps[-1][0].append(self.state)
        self.state = None

    def _Continue(self, node: Any) -> None:
        self._jumps[-1][1].append(self.state)
        self.state = None

    def _fork(self, *ways: list[Any]) -> None:
        start, ends = self.state, list[State]()
        for way in ways:
            self.state = start
            self._block(way)
            ends.append(self.state)
        self.state = join(*ends)

    def _If(self, node: Any) -> None:
        self._visit(node.test)
        self.entries[node] = self.state
        self._fork(node.body, node.orelse)

    def _While(self, node: Any) -> None:
        self._drop(dropped(node))
        self.entries[node] = self.state
        self._visit(node.test)
        endless = type(node.test).__name__ == "Constant" and bool(node.test.value)
        self._loop(node, None if endless else self.state, [])

    def _For(self, node: Any) -> None:
        self._visit(node.iter)
        self._drop(dropped(node))
        self.entries[node] = self.state
        self._loop(node, self.state, [node.target])

    _AsyncFor = _For

    def _loop(self, node: Any, finished: State, first: list[Any]) -> None:
        self._jumps.append(([], []))
        self._block([*first, *node.body])
        breaks, _ = self._jumps.pop()
        self.state = finished
        self._block(node.orelse)
        self.state = join(self.state, *breaks)

    def _With(self, node: Any) -> None:
        for item in node.items:
            self._visit(item.context_expr)
        self.entries[node] = entered = self.state
        self._block([item.optional_vars for item in node.items if item.optional_vars])
        self._block(node.body)
        kept = None if entered is None else entered - dropped(node)
        self.state = join(self.state, kept)  # a context manager may swallow what is raised in the body

    _AsyncWith = _With

    def _Try(self, node: Any) -> None:
        self.entries[node] = start = self.state
        failed = None if start is None else start - dropped(node)
        self._block([*node.body, *node.orelse])
        ends = [self.state]
        for handler in node.handlers:
            self.state = failed
            self._block([handler.type] if handler.type else [])
            name = tree.handler_name(handler)
            self._add(*([name.id] if name else []))
            self._block(handler.body)
            self._drop(frozenset({name.id} if name else ()))
            ends.append(self.state)
        end = join(*ends)
        self.state = failed
        self._block(node.finalbody)
        added = None if self.state is None or failed is None else self.state - failed
        self.state = None if end is None or added is None else (end - dropped(node.finalbody)) | added

    _TryStar = _Try

    def _Match(self, node: Any) -> None:
        self._visit(node.subject)
        start, ends = self.state, list[State]()
        for case in node.cases:
            self.state = start
            self._block([case.pattern, *([case.guard] if case.guard else []), *case.body])
            ends.append(self.state)
        last = node.cases[-1]
        total = last.guard is None and type(last.pattern).__name__ == "MatchAs" and last.pattern.pattern is None
        self.state = join(*ends, None if total else start)


def deleted_inside(scopes: Scopes, scope: Scope) -> frozenset[str]:
    """Return the variables of a function that functions inside of it delete, at any time."""
    found: set[str] = set()
    for node, where in scopes.where.items():
        if type(getattr(node, "ctx", None)).__name__ == "Del":
            name: str = getattr(node, "id", "")
            if where.function() is not scope and where.resolve(name) is scope:
                found.add(name)
    return frozenset(found)


def dropped(nodes: Any) -> frozenset[str]:
    """Return the names that statements may unbind: by `del`, or at the end of an exception handler."""
    found: set[str] = set()
    for node in own(nodes):
        if type(node).__name__ == "Name" and type(node.ctx).__name__ == "Del":
            found.add(node.id)
        if type(node).__name__ == "ExceptHandler" and (name := tree.handler_name(node)):
            found.add(name.id)
    return frozenset(found)


def entry_states(scopes: Scopes) -> Mapping[ast.AST, State]:
    """Return what is surely assigned at each `if`, `while`, `for` and `try` of all functions."""
    found: dict[ast.AST, State] = {}
    for scope in scopes.functions():
        found.update(Definite(scopes, scope).entries)
    return found
