"""Whose variable a name is: Python's scope rules over a gast tree.

`Scopes(function)` walks once and then answers: which scope binds this `Name` node, which variables of a function are
captured, rebound or deleted by functions inside it. A comprehension is a scope that runs where it stands; functions,
lambdas and generator expressions run later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dy2st.pysrc import tree
from dy2st.records import field, record


@record(eq=False)
class Scope:
    """One scope: what it binds and what it declares to be bound elsewhere."""

    node: ast.AST
    kind: str  # "function", "class", "comprehension" (runs at once), "generator" (runs later)
    parent: Scope | None
    local: dict[str, None] = field(default_factory=dict[str, None])  # in order of appearance
    globals: set[str] = field(default_factory=set[str])
    nonlocals: set[str] = field(default_factory=set[str])

    def function(self) -> Scope:
        """Return the scope of the function (or lambda) whose code this is part of."""
        scope = self
        while scope.kind != "function" and scope.parent is not None:
            scope = scope.parent
        return scope

    def resolve(self, name: str) -> Scope | None:
        """Return the scope whose variable `name` is; None for globals, builtins and variables from outside."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.globals:
                return None
            mine = name in scope.local and name not in scope.nonlocals
            if mine and (scope is self or scope.kind != "class"):
                return scope
            scope = scope.parent
        return None


class Scopes:
    """All scopes of one outermost function.

    `immediate` are generated functions that stand for comprehensions: they run only where they are called.
    `dropped` are variables of functions that were bound by statements that are gone (dead code binds, too).
    """

    def __init__(
        self,
        root: tree.Function,
        immediate: Iterable[ast.AST] = (),
        dropped: Mapping[ast.AST, Iterable[str]] | None = None,
    ):
        self.of: dict[ast.AST, Scope] = {}
        self.where: dict[ast.Name, Scope] = {}
        self.names: dict[Scope, list[ast.Name]] = {}
        self._immediate, self._dropped = frozenset(immediate), dropped or {}
        self.root = self._function(root, None)
        self.captured: dict[Scope, set[str]] = {scope: set() for scope in self.of.values()}
        self.rebound: dict[Scope, set[str]] = {scope: set() for scope in self.of.values()}
        self.deleted: dict[Scope, set[str]] = {scope: set() for scope in self.of.values()}
        for scope in self.of.values():
            for name in sorted(scope.nonlocals & scope.local.keys()):
                if owner := scope.resolve(name):
                    self.rebound[owner].add(name)
        for node, scope in self.where.items():
            owner = scope.resolve(node.id)
            if owner is None:
                continue
            if type(node.ctx).__name__ == "Del":
                self.deleted[owner].add(node.id)
            if self.runs_later(scope, owner):
                self.captured[owner].add(node.id)

    def runs_later(self, scope: Scope, owner: Scope) -> bool:
        """Return whether code of `scope` may run after the statement of `owner` in which it stands."""
        at: Scope | None = scope
        while at is not None and at is not owner:
            if at.kind in ("function", "generator") and at.node not in self._immediate:
                return True
            at = at.parent
        return False

    def owner(self, node: ast.Name) -> Scope | None:
        """Return the scope that binds a `Name` node."""
        return self.where[node].resolve(node.id)

    def functions(self) -> list[Scope]:
        """List the scopes of all `def`s, outer before inner."""
        return [scope for node, scope in self.of.items() if tree.is_function(node)]

    # -- building

    def _open(self, node: ast.AST, kind: str, parent: Scope | None) -> Scope:
        scope = self.of[node] = Scope(node, kind, parent)
        return scope

    def _function(self, node: Any, parent: Scope | None) -> Scope:
        scope = self._open(node, "function", parent)
        for param in tree.parameters(node.args):
            scope.local[param.id] = None
            self.where[param] = scope
        scope.local.update(dict.fromkeys(self._dropped.get(node, ())))
        body: Any = node.body
        for item in body if tree.is_function(node) else [body]:
            self._visit(item, scope)
        if node in self._immediate and parent is not None:  # a walrus in a comprehension binds outside
            parent.local.update(dict.fromkeys(sorted(scope.nonlocals - parent.local.keys())))
        return scope

    def _visit(self, node: Any, scope: Scope) -> None:
        for name in binds(node):
            _binder(scope, node).local.setdefault(name)
        kind = type(node).__name__
        if kind == "Name":
            self.where[node] = scope
        elif kind in ("Global", "Nonlocal"):
            (scope.globals if kind == "Global" else scope.nonlocals).update(node.names)
            for name in node.names:
                scope.local.setdefault(name) if kind == "Nonlocal" else None
        elif kind == "Lambda" or tree.is_function(node):
            for outside in evaluated_outside(node):
                self._visit(outside, scope)
            self._function(node, scope)
        elif kind == "ClassDef":
            for outside in evaluated_outside(node):
                self._visit(outside, scope)
            inner = self._open(node, "class", scope)
            for item in node.body:
                self._visit(item, inner)
        elif tree.is_comprehension(node):
            self._comprehension(node, scope)
        else:
            for child in tree.children(node):
                self._visit(child, scope)

    def _comprehension(self, node: Any, scope: Scope) -> None:
        inner = self._open(node, "generator" if type(node).__name__ == "GeneratorExp" else "comprehension", scope)
        for target in targets_of(node):
            for name in tree.walk(target):
                if type(name).__name__ == "Name" and type(name.ctx).__name__ == "Store":
                    inner.local.setdefault(name.id)
        self._visit(node.generators[0].iter, scope)
        for part in parts_inside(node):
            self._visit(part, inner)


def _binder(scope: Scope, node: Any) -> Scope:
    """Return the scope where a binding lands: a walrus inside a comprehension binds outside of it."""
    while scope.kind in ("comprehension", "generator") and scope.parent is not None:
        if getattr(node, "id", None) in scope.local:
            return scope
        scope = scope.parent
    return scope


def binds(node: Any) -> list[str]:
    """List the names that a node binds by itself, without its children."""
    kind = type(node).__name__
    if kind == "Name":
        return [node.id] if type(node.ctx).__name__ in ("Store", "Del") else []
    if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
        return [node.name]
    if kind == "alias":
        return [node.asname or node.name.split(".")[0]]
    if kind in ("MatchAs", "MatchStar"):
        return [node.name] if node.name else []
    if kind == "MatchMapping":
        return [node.rest] if node.rest else []
    return []


def evaluated_outside(node: Any) -> list[Any]:
    """List what a def, lambda or class evaluates where it stands: decorators, defaults, annotations, bases."""
    if type(node).__name__ == "ClassDef":
        return [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]
    args = node.args
    defaults = [default for default in [*args.defaults, *args.kw_defaults] if default is not None]
    annotations: list[Any] = [getattr(param, "annotation", None) for param in tree.parameters(args)]
    found: list[Any] = [*getattr(node, "decorator_list", []), *defaults, *annotations, getattr(node, "returns", None)]
    return [item for item in found if item is not None]


def targets_of(node: Any) -> list[Any]:
    """List the targets of a comprehension."""
    return [generator.target for generator in node.generators]


def parts_inside(node: Any) -> list[Any]:
    """List what a comprehension evaluates in its own scope: all but the first iterable."""
    parts: list[Any] = []
    for turn, generator in enumerate(node.generators):
        parts += [generator.iter] if turn else []
        parts += [generator.target, *generator.ifs]
    return parts + ([node.key, node.value] if type(node).__name__ == "DictComp" else [node.elt])


_WITH_A_SCOPE = frozenset(["Lambda", "ClassDef", "FunctionDef", "AsyncFunctionDef"])


def own(nodes: Any) -> Iterator[Any]:
    """Yield every node that runs as part of the same function, in source order.

    Enters comprehensions, not functions, lambdas or classes (only what those evaluate where they stand).
    """
    waiting: list[Any] = nodes[::-1] if isinstance(nodes, list) else [nodes]  # pyright: ignore[reportUnknownVariableType]
    while waiting:
        node = waiting.pop()
        yield node
        inside = evaluated_outside(node) if type(node).__name__ in _WITH_A_SCOPE else tree.children(node)
        if inside:
            inside.reverse()
            waiting += inside


def bound(nodes: Any) -> list[str]:
    """List the variables of the function around that these statements bind, in order of appearance."""
    found: dict[str, None] = {}
    hidden: set[int] = set()
    for node in own(nodes):
        if tree.is_comprehension(node):
            hidden.update(id(name) for target in targets_of(node) for name in tree.walk(target))
        if id(node) not in hidden:
            found.update(dict.fromkeys(binds(node)))
    return list(found)


class Bindings:
    """`bound` of statements that do not change meanwhile: each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, tuple[dict[str, None], bool]] = {}

    def names(self, nodes: list[Any]) -> list[str]:
        """List the variables that these nodes bind, in order of appearance."""
        found: dict[str, None] = {}
        for node in nodes:
            found.update(self._look(node)[0])
        return list(found)

    def calls(self, nodes: list[Any]) -> bool:
        """Return whether these nodes call anything by name or enter a context manager."""
        return any(self._look(node)[1] for node in nodes)

    def _look(self, node: Any) -> tuple[dict[str, None], bool]:
        if node in self._known:
            return self._known[node]
        kind = type(node).__name__
        if not tree.is_compound(node) and kind not in ("ExceptHandler", "match_case"):
            found = dict.fromkeys(bound(node))
            calls = any(type(inner).__name__ == "Call" for inner in own(node))
        else:
            parts = [self._look(child) for child in tree.children(node)]
            found = {name: None for names, _ in parts for name in names}
            calls = kind in ("With", "AsyncWith") or any(called for _, called in parts)
        self._known[node] = found, calls
        return found, calls
