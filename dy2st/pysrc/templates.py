r"""Code from source templates: the words in CAPITALS are placeholders.

A placeholder takes an expression, a name (a string), or a list: of statements where it stands as a statement, of
names in `nonlocal NAMES`, of expressions in `f(*ARGS)` and `(*ITEMS,)`. A placeholder without a value, and a value
without a placeholder, are errors. Nodes that come from the template get the place of `origin`; nodes that were put in
keep their own.

>>> from dy2st.pysrc import templates, tree, unparse
>>> user = tree.parse("x > 0")[0].value
>>> made = templates.statements(user, "if TEST:\n    BODY", TEST=user, BODY=tree.parse("print(1)"))
>>> print(unparse.source(made[0]))
if x > 0:
    print(1)
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any, cast

from dy2st.pysrc import origin as origins
from dy2st.pysrc import tree

_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def statements(origin: Any, template: str, **values: Any) -> list[ast.stmt]:
    """Build statements from a template."""
    return _Build(template, origins.place(origin), values).run()


def statement(origin: Any, template: str, **values: Any) -> Any:
    """Build exactly one statement."""
    (made,) = statements(origin, template, **values)
    return made


def expression(origin: Any, template: str, **values: Any) -> Any:
    """Build an expression from a template."""
    return statement(origin, template, **values).value


def literal(origin: Any, value: Any) -> Any:
    """Build the display of a constant, or of a tuple of constants."""
    if isinstance(value, tuple):
        elts = [literal(origin, item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        node = tree.new("Tuple", elts=elts, ctx=tree.Load())
    else:
        node = tree.new("Constant", value=value, kind=None)
    origins.put(node, origin)
    return node


def name(origin: Any, identifier: str, ctx: str = "Load") -> Any:
    """Build a name."""
    node = tree.new("Name", id=identifier, ctx=tree.new(ctx), annotation=None, type_comment=None)
    origins.put(node, origin)
    return node


def as_target(node: Any, ctx: str = "Store") -> Any:
    """Make an expression the target of an assignment (or of `del`)."""
    if hasattr(node, "ctx"):
        node.ctx = tree.new(ctx)
    for item in getattr(node, "elts", []):
        as_target(item, ctx)
    if type(node).__name__ == "Starred":
        as_target(node.value, ctx)
    return node


@cache
def _parsed(template: str) -> list[ast.stmt]:
    return tree.parse(template)


@cache
def _varying(node: ast.AST) -> tuple[str, ...]:
    """Return the fields of a template's node that are not the same in all that is built: code and placeholders."""
    if type(node).__name__ == "Constant":  # text, not a placeholder
        return ()
    inside = node.__dict__
    return tuple(field for field in node._fields if field in inside and _varies(inside[field]))


def _varies(value: Any) -> bool:
    if isinstance(value, ast.AST):
        return bool(value._fields or value._attributes)
    return isinstance(value, list) or (isinstance(value, str) and bool(_PLACEHOLDER.match(value)))


class _Build:
    def __init__(self, template: str, place: origins.SourceSpan, values: dict[str, Any]):
        self.template, self.place, self.values = template, place, values
        self.used: set[str] = set()

    def run(self) -> list[ast.stmt]:
        made = self.items(_parsed(self.template))
        unused = [key for key in self.values if key not in self.used]
        if unused:
            raise ValueError(f"template has no placeholder {', '.join(unused)}: {self.template!r}")
        return made

    def value(self, key: str) -> Any:
        if key not in self.values:
            raise ValueError(f"template placeholder {key} has no value: {self.template!r}")
        self.used.add(key)
        return self.values[key]

    def build(self, node: Any) -> Any:
        """Copy a node of the template, or what stands in one."""
        if isinstance(node, list):
            return self.items(node)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(node, str) and _PLACEHOLDER.match(node):
            return self.value(node)
        if not isinstance(node, ast.AST):
            return node
        if (key := _key(node)) and not isinstance(self.values.get(key), str):
            put_in = self.value(key)
            assert isinstance(put_in, ast.AST), f"{key} must be an expression here"
            return as_target(put_in, type(cast(Any, node).ctx).__name__) if _stores(node) else put_in
        made = cast(Any, type(node)).__new__(type(node))
        fields: dict[str, Any] = made.__dict__
        fields.update(node.__dict__)
        for field in _varying(node):
            fields[field] = self.build(fields[field])
        origins.put(made, self.place)
        return made

    def items(self, nodes: list[Any]) -> list[Any]:
        made: list[Any] = []
        for node in nodes:
            many = self.splice(node)
            made.extend([self.build(node)] if many is None else many)
        return [node for node in made if not _is_empty_declaration(node)]

    def splice(self, node: Any) -> list[Any] | None:
        """Return the list that takes this item's place, if it is a placeholder for a list."""
        inner = getattr(node, "value", None) if type(node).__name__ in ("Expr", "Starred") else node
        key = node if isinstance(node, str) else _key(inner)
        if key is None or not _PLACEHOLDER.match(key) or not isinstance(self.values.get(key), list):
            return None
        return self.value(key)


def _key(node: Any) -> str | None:
    if type(node).__name__ == "Name" and _PLACEHOLDER.match(node.id):
        return node.id
    return None


def _stores(node: Any) -> bool:
    return type(node.ctx).__name__ in ("Store", "Del")


def _is_empty_declaration(node: Any) -> bool:
    return type(node).__name__ in ("Nonlocal", "Global") and not node.names
