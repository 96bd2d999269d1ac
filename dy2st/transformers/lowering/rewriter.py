"""The last pass: walk once, and let one rule a construct put in the calls of the helper (rules.py has the table).

An expression rule returns the expression that takes the node's place; a statement rule returns statements. What an
expression needs before its statement (a function that assigns, see `thunk`) goes to `before`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, cast

from dy2st.pysrc import origin, templates, tree
from dy2st.pysrc.scopes import Bindings, Scope, Scopes, own
from dy2st.transformers.core.context import Context, Plan

Rule = Callable[["Rewriter", Any], Any]
_BLOCKS = ("body", "orelse", "finalbody")


class Rewriter:
    """The state of the walk."""

    def __init__(self, context: Context, expressions: Mapping[str, Rule], statements: Mapping[str, Rule]):
        self.context = context
        self.scopes = Scopes(context.root, context.comprehensions.values(), context.locals)
        self.scope: Scope = self.scopes.root
        self.bindings = Bindings()
        self.before: list[ast.stmt] = []
        self.hoistable = True  # a function may stand before the statement: not inside lambdas and comprehensions
        self.plain = False  # the own statements of a class body: only reads are guarded
        self._expressions, self._statements = expressions, statements

    # -- walking

    def expr(self, node: Any) -> Any:
        """Rewrite an expression, or any part of one."""
        kind = type(node).__name__
        rule = self._expressions.get(kind)
        if rule is None or node in self.context.native or (self.plain and kind not in ("Name", "Lambda")):
            return self.children(node)
        return rule(self, node)

    def children(self, node: Any) -> Any:
        """Rewrite what is inside a node, in place."""
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list) and field in _BLOCKS:
                setattr(node, field, self.block(value))  # pyright: ignore[reportUnknownArgumentType]
            elif isinstance(value, list):
                items = cast("list[Any]", value)
                setattr(node, field, [self.expr(item) if isinstance(item, ast.AST) else item for item in items])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.expr(value))
        return node

    def block(self, nodes: list[Any]) -> list[Any]:
        """Rewrite a list of statements; one that becomes empty keeps a `pass`."""
        made = [new for node in nodes for new in self.statement(node)]
        return made if made or not nodes else templates.statements(nodes[0], "pass")

    def statement(self, node: Any) -> list[Any]:
        """Rewrite one statement."""
        rule = self._statements.get(type(node).__name__)
        outer, self.before = self.before, []
        plain = self.plain and not (tree.is_function(node) or type(node).__name__ == "ClassDef")
        skip = rule is None or plain or (node in self.context.native and type(node).__name__ in ("Assert", "Raise"))
        made = [self.children(node)] if skip or rule is None else rule(self, node)
        made = [*self.before, *made]
        self.before = outer
        return made

    @contextmanager
    def inside(self, scope: Scope | None = None, *, hoistable: bool, plain: bool = False) -> Generator[None]:
        """Walk in an inner scope for a while."""
        outer = self.scope, self.hoistable, self.plain
        self.scope, self.hoistable, self.plain = scope or self.scope, hoistable, plain
        yield
        self.scope, self.hoistable, self.plain = outer

    # -- making code

    def make(self, at: Any, template: str, **values: Any) -> Any:
        """Build an expression from a template in which DY is the helper."""
        return templates.expression(at, template, DY=self.context.helper, **values)

    def is_outside(self, node: Any) -> bool:
        """Return whether a name is a global, a builtin, or a variable of unconverted code."""
        where = self.scopes.where.get(node)
        return type(node).__name__ == "Name" and (where is None or where.resolve(node.id) is None)

    def can_defer(self, nodes: list[Any]) -> bool:
        """Return whether expressions can move into functions (a walrus needs a `nonlocal`, so a statement)."""
        return self.hoistable or not any(walruses(node) for node in nodes)

    def thunk(self, node: Any) -> Any:
        """Rewrite an expression that the helper may evaluate: a lambda, or a function where it assigns."""
        spot = origin.place(node)
        names = walruses(node)
        value = self.expr(node)
        if not names:
            made = templates.expression(spot, "lambda: VALUE", VALUE=value)
            self.context.thunks.add(made)
            return made
        name = self.context.function("thunk", shared=False)
        self.before += templates.statements(
            spot,
            "def NAME():\n    nonlocal NONLOCALS\n    global GLOBALS\n    return VALUE",
            NAME=name,
            NONLOCALS=[name for name in names if name not in self.scope.globals],
            GLOBALS=[name for name in names if name in self.scope.globals],
            VALUE=value,
        )
        return templates.name(spot, name)

    def assigned(self, nodes: list[Any]) -> Any:
        """Make what reads and writes the variables that deferred expressions assign; None where they assign none."""
        spot = origin.place(nodes[0])
        names = list(dict.fromkeys(name for node in nodes for name in walruses(node)))
        if not names or any(self.scope.resolve(name) is None for name in names):
            return templates.literal(spot, None)
        assign, values = self.context.function("assign", shared=False), self.context.shared("values")
        self.before += templates.statements(
            spot,
            "def ASSIGN(VALUES):\n    nonlocal NONLOCALS\n    [*ITEMS] = VALUES",
            ASSIGN=assign,
            VALUES=values,
            NONLOCALS=names,
            ITEMS=[templates.name(spot, name, "Store") for name in names],
        )
        get = templates.expression(spot, "lambda: (*ITEMS,)", ITEMS=_reads(spot, names))
        self.context.thunks.add(get)
        shown = templates.literal(spot, tuple(names))
        return templates.expression(spot, "(GET, ASSIGN, NAMES)", GET=get, ASSIGN=assign, NAMES=shown)

    def part(self, spot: Any, part: str, body: list[Any], plan: Plan, parameter: str | None = None) -> list[Any]:
        """Make the function of a branch or loop body."""
        inside = self.bindings.names(body)
        made = templates.statement(
            spot,
            "def NAME():\n    nonlocal NONLOCALS\n    global GLOBALS\n    BODY",
            NAME=self.context.function(part),
            NONLOCALS=[name for name in plan.nonlocals if name in inside],
            GLOBALS=[name for name in plan.globals if name in inside],
            BODY=self.block(body),
        )
        if parameter is not None:
            made.args.args = [templates.name(spot, parameter, "Param")]
        return [made]

    def emptied(self, spot: Any, plan: Plan) -> list[Any]:
        """Give the variables of a plan that nobody reads placeholders: they may hold values of an earlier trace."""
        made: list[Any] = []
        for name in plan.stale:
            text = templates.literal(spot, self.context.labels.get(name, name))
            made += templates.statements(
                spot, "NAME = DY.undefined(TEXT)", NAME=name, TEXT=text, DY=self.context.helper
            )
        return made

    def access(self, spot: Any, plan: Plan) -> tuple[list[Any], Any, Any]:
        """Make the functions that get and set the variables of a plan: (definitions, get, set)."""
        values = self.context.shared("values")
        if not plan.names:
            get = templates.expression(spot, "lambda: ()")
            put = templates.expression(spot, "lambda VALUES: None", VALUES=values)
            self.context.thunks.update((get, put))
            return [], get, put
        inner = {name: self.context.variable(name) if name in plan.foreign else name for name in plan.names}
        made = self._setter(spot, plan, inner, values)
        put = templates.name(spot, self.context.function("set"))
        if plan.foreign:
            made += self._careful_getter(spot, plan, inner)
            return made, templates.name(spot, self.context.function("get")), put
        get = templates.expression(spot, "lambda: (*ITEMS,)", ITEMS=_reads(spot, plan.names))
        self.context.thunks.add(get)
        return made, get, put

    def _setter(self, spot: Any, plan: Plan, inner: Mapping[str, str], values: str) -> list[Any]:
        """Make `set`; what is not of this conversion is unset, not given a placeholder."""
        careful: list[Any] = []
        for name in plan.foreign:
            careful += templates.statements(
                spot,
                "if DY.is_undefined(HERE):\n    NAME = None\n    del NAME\nelse:\n    NAME = HERE",
                HERE=inner[name],
                NAME=name,
                DY=self.context.helper,
            )
        return templates.statements(
            spot,
            "def SET(VALUES):\n    nonlocal NONLOCALS\n    global GLOBALS\n    [*ITEMS] = VALUES\n    CAREFUL",
            SET=self.context.function("set"),
            VALUES=values,
            NONLOCALS=[name for name in plan.names if name not in plan.globals],
            GLOBALS=list(plan.globals),
            ITEMS=[templates.name(spot, name, "Store") for name in inner.values()],
            CAREFUL=careful,
        )

    def _careful_getter(self, spot: Any, plan: Plan, inner: Mapping[str, str]) -> list[Any]:
        """Make a `get` that gives placeholders for what does not exist."""
        reads: list[Any] = []
        for name in plan.foreign:
            reads += templates.statements(
                spot,
                "try:\n    HERE = NAME\nexcept NameError:\n    HERE = DY.undefined(TEXT)",
                HERE=inner[name],
                NAME=name,
                TEXT=templates.literal(spot, name),
                DY=self.context.helper,
            )
        return templates.statements(
            spot,
            "def GET():\n    READS\n    return (*ITEMS,)",
            GET=self.context.function("get"),
            READS=reads,
            ITEMS=_reads(spot, inner.values()),
        )

    def shown(self, spot: Any, plan: Plan) -> Any:
        """Make the tuple of names that errors may show."""
        return templates.literal(spot, tuple(self.context.labels.get(name, name) for name in plan.names))


def _reads(spot: Any, names: Iterable[str]) -> list[Any]:
    return [templates.name(spot, name) for name in names]


def walruses(node: Any) -> list[str]:
    """List the names that an expression assigns."""
    return list(dict.fromkeys(name.target.id for name in own(node) if type(name).__name__ == "NamedExpr"))
