"""Which variables are still wanted after a statement, and at the head of a loop (backward, over structured code).

`before[stmt]`, `after[stmt]` and `head[loop]` hold names. An exception may leave any point of a `try` body, so
what its handlers read is wanted all through the body.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from dy2st.pysrc import tree
from dy2st.pysrc.scopes import Scope, Scopes, bound

Names = frozenset[str]
NONE: Names = frozenset()


class Liveness:
    """The analysis of one function.

    `called` maps the name of a generated function to the function: a call of it reads what the function reads.
    `loop_tests` are tests that a `for` loop makes before each turn.
    """

    def __init__(
        self,
        scopes: Scopes,
        scope: Scope,
        called: Mapping[str, ast.AST] | None = None,
        loop_tests: Mapping[ast.AST, ast.AST] | None = None,
    ):
        self.scopes, self.scope = scopes, scope
        self.called, self.loop_tests = called or {}, loop_tests or {}
        self.after: dict[ast.AST, Names] = {}
        self.before: dict[ast.AST, Names] = {}
        self.head: dict[ast.AST, Names] = {}
        self._reads: dict[ast.AST, Names] = {}
        self._raised: Names = NONE  # wanted if an exception is raised here
        self._loops: list[tuple[Names, Names]] = []  # wanted after break, after continue
        node: Any = scope.node
        self._block(node.body, NONE)

    def reads(self, node: ast.AST | None) -> Names:
        """Return the variables of this function that a node reads, functions inside it included."""
        if node is None:
            return NONE
        if node in self._reads:
            return self._reads[node]
        found: set[str] = set()
        for inner in tree.walk(node):
            name: Any = inner
            if type(inner).__name__ != "Name" or type(name.ctx).__name__ == "Store":
                continue
            if name.id in self.called:
                found |= self.reads(self.called[name.id])
            if inner in self.scopes.where and self.scopes.owner(name) is self.scope:
                found.add(name.id)
        self._reads[node] = frozenset(found)
        return self._reads[node]

    def _block(self, nodes: list[Any], out: Names) -> Names:
        for node in reversed(nodes):
            self.after[node] = out = out | self._raised
            method = getattr(self, f"_{type(node).__name__}", self._simple)
            self.before[node] = out = method(node, out) | self._raised
        return out

    def _simple(self, node: Any, out: Names) -> Names:
        return (out - self._writes(node)) | self.reads(node)

    def _writes(self, node: Any) -> Names:
        """Return what a simple statement surely assigns (a walrus may not run)."""
        kind = type(node).__name__
        if kind in ("Assign", "AnnAssign"):
            targets = node.targets if kind == "Assign" else [node.target] if node.value else []
            return frozenset(name for target in targets for name in bound(target))
        if kind in ("Import", "ImportFrom", "FunctionDef", "AsyncFunctionDef", "ClassDef", "Delete"):
            return frozenset(bound(node)) if kind != "FunctionDef" else frozenset({node.name})
        return NONE

    def _AugAssign(self, node: Any, out: Names) -> Names:
        read = frozenset(bound(node.target)) if type(node.target).__name__ == "Name" else self.reads(node.target)
        return out | read | self.reads(node.value)

    def _Return(self, node: Any, out: Names) -> Names:
        return self.reads(node)

    _Raise = _Return

    def _Break(self, node: Any, out: Names) -> Names:
        return self._loops[-1][0]

    def _Continue(self, node: Any, out: Names) -> Names:
        return self._loops[-1][1]

    def _If(self, node: Any, out: Names) -> Names:
        return self.reads(node.test) | self._block(node.body, out) | self._block(node.orelse, out)

    def _While(self, node: Any, out: Names) -> Names:
        return self._loop(node, self.reads(node.test) | self._block(node.orelse, out), out, NONE)

    def _For(self, node: Any, out: Names) -> Names:
        leave = self._block(node.orelse, out) | self.reads(node.target)
        if (test := self.loop_tests.get(node)) is not None:  # not part of the tree; reads flags of this function
            leave |= frozenset(name.id for name in tree.walk(test) if type(name).__name__ == "Name")
        return self._loop(node, leave, out, frozenset(bound(node.target))) | self.reads(node.iter)

    _AsyncFor = _For

    def _loop(self, node: Any, head: Names, out: Names, target: Names) -> Names:
        """Grow what is wanted at the head until the body asks for nothing more."""
        while True:
            self._loops.append((out, head))
            grown = head | (self._block(node.body, head) - target)
            self._loops.pop()
            if grown == head:
                break
            head = grown
        self.head[node] = head
        return head

    def _With(self, node: Any, out: Names) -> Names:
        items: Names = frozenset(name for item in node.items for name in self.reads(item))
        outer = self._raised
        self._raised |= out  # a context manager may swallow what is raised in the body
        inside = self._block(node.body, out)
        self._raised = outer
        return inside | items

    _AsyncWith = _With

    def _Try(self, node: Any, out: Names) -> Names:
        final = self._block(node.finalbody, out)
        outer = self._raised
        self._raised = outer | final
        caught: Names = NONE
        for handler in node.handlers:
            name = tree.handler_name(handler)
            inside = self._block(handler.body, final) - frozenset({name.id} if name else ())
            caught |= inside | self.reads(handler.type)
        end = self._block(node.orelse, final)
        self._raised |= caught
        start = self._block(node.body, end)
        self._raised = outer
        return start | caught

    _TryStar = _Try

    def _Match(self, node: Any, out: Names) -> Names:
        wanted = self.reads(node.subject) | out
        for case in node.cases:
            wanted |= self._block(case.body, out) | self.reads(case.pattern) | self.reads(case.guard)
        return wanted
