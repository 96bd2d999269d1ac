"""What cutting a function asks of its variables and statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from dy2st.pysrc import tree
from dy2st.pysrc.definite import Definite, State, deleted_inside
from dy2st.pysrc.liveness import Liveness, Names
from dy2st.pysrc.scopes import Scope, Scopes, own

Quiet = Callable[[Any], bool]
_WORK = frozenset(("Call", "BinOp", "UnaryOp", "Compare", "AugAssign", "Subscript"))
_LOOPS = frozenset(("For", "While"))
_SEES_FRAME = frozenset(("locals", "vars", "dir", "eval", "exec"))
"""Built-ins that see all variables of the function that calls them."""
_SEES_ENDS = frozenset(("weakref", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "gc"))
"""What sees that an object ends with the last part that wants it, not with the function."""


class Wanted(Liveness):
    """Which variables are wanted after a statement, and where an exception leaves it (`raised`).

    A context manager that is `quiet` lets exceptions pass.
    """

    def __init__(self, scopes: Scopes, quiet: Quiet):
        self.raised: dict[ast.AST, Names] = {}
        self._quiet = quiet
        super().__init__(scopes, scopes.root)

    def _block(self, nodes: list[Any], out: Names) -> Names:
        self.raised.update(dict.fromkeys(nodes, self._raised))
        return super()._block(nodes, out)

    def _With(self, node: Any, out: Names) -> Names:
        if not all(self._quiet(item.context_expr) for item in node.items):
            return super()._With(node, out)
        return self._block(node.body, out).union(*(self.reads(item) for item in node.items))


class Assigned(Definite):
    """Which variables are surely assigned before a statement."""

    def __init__(self, scopes: Scopes, quiet: Quiet):
        self.before: dict[ast.AST, State] = {}
        self._quiet = quiet
        super().__init__(scopes, scopes.root)

    def _With(self, node: Any) -> None:
        if not all(self._quiet(item.context_expr) for item in node.items):
            super()._With(node)
            return
        self._block([part for item in node.items for part in (item.context_expr, item.optional_vars) if part])
        self._block(node.body)

    def _block(self, nodes: list[Any]) -> None:
        for node in nodes:
            self.before[node] = self.state
            self._visit(node)


def can_be_cut(root: Any) -> bool:
    """Return whether a function does what its statements do in turn, and nothing sees its variables but they."""
    for node in own(root.body):
        kind = type(node).__name__
        if kind in ("Yield", "YieldFrom", "Await", "AsyncFor", "AsyncWith", "NamedExpr"):
            return False
        if kind == "Name" and node.id in _SEES_FRAME | _SEES_ENDS:
            return False
        if tree.is_comprehension(node) and any(generator.is_async for generator in node.generators):
            return False
    return True


def work_of(nodes: list[Any]) -> int:
    """Return about how many operations statements are, those of a loop more than once."""
    found = 0
    for node in nodes:
        inner = sum(type(x).__name__ in _WORK for x in own([node]))
        loops = any(type(x).__name__ in _LOOPS for x in own([node]))
        found += inner * 4 if loops else inner
    return found


def leaves(node: Any, *, returns: bool, looping: bool = False) -> bool:
    """Return whether control may leave a statement by a jump; `returns` are no such jumps where they may stay."""
    kind = type(node).__name__
    if kind == "Return":
        return not returns
    if kind in ("Break", "Continue"):
        return not looping
    if tree.is_function(node) or kind in ("ClassDef", "Lambda"):
        return False
    for owner, field in tree.blocks(node) if tree.is_compound(node) else ():
        inside = looping or (kind in _LOOPS and field == "body" and owner is node)
        if any(leaves(inner, returns=returns, looping=inside) for inner in getattr(owner, field)):
            return True
    return False


class Captures:
    """Variables of a function that functions inside of it read or rebind, at any time."""

    def __init__(self, scopes: Scopes):
        self._scopes, self._root = scopes, scopes.root
        self._changed = scopes.rebound[self._root] | deleted_inside(scopes, self._root)
        self._names = scopes.captured[self._root] | self._changed
        self._stand: dict[str, list[tuple[ast.Name, Scope]]] = {}
        for node, scope in scopes.where.items():
            if node.id in self._names and scope.resolve(node.id) is self._root:
                self._stand.setdefault(node.id, []).append((node, scope))
        self._once = {n for n in self._names if self._is_bound_once(n)}

    def _is_bound_once(self, name: str) -> bool:
        """Return whether a variable is assigned by a parameter alone, or by one statement that runs once at most."""
        root: Any = self._root.node
        binders = [s for s in root.body if name in _bound_in(s)]
        if any(name == param.id for param in tree.parameters(root.args)):
            return not binders
        return len(binders) == 1 and not tree.is_compound(binders[0])

    def allow(self, run: list[Any], bound: list[str]) -> bool:
        """Return whether statements may have copies of the variables that they share with functions inside."""
        inside = {id(node) for statement in run for node in tree.walk(statement)}
        for name in self._names:
            mine = [id(node) in inside for node, _ in self._stand.get(name, ())]
            if not (any(mine) or name in bound) or (all(mine) and name in bound):
                continue
            if name in self._changed or (name in bound and name not in self._once):
                return False
            later = any(here and at is not self._root for (_, at), here in zip(self._stand[name], mine, strict=True))
            if later and (name in bound or name not in self._once):
                return False
        return True


def _bound_in(statement: Any) -> set[str]:
    found = {x.id for x in own([statement]) if type(x).__name__ == "Name" and type(x.ctx).__name__ != "Load"}
    return found | {statement.name} if tree.is_function(statement) else found
