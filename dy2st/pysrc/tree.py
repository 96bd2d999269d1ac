"""The typed face of gast: the tree that transformers see, one shape for every Python version.

gast loads at the first use of a node class (`tree.If`). Type checkers see the classes of the standard `ast`, which
gast's derive from. gast differs in two places: parameters, and the name of an exception handler, are `Name` nodes.
"""

# gast has no types: what it gives is cast here, once.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

if TYPE_CHECKING:
    from ast import If as If  # the classes that are read by name from this module
    from ast import Load as Load

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"


def __getattr__(name: str) -> Any:
    """Load gast, once, and keep the class under this module's name."""
    if name.startswith("__"):
        raise AttributeError(name)
    import gast

    found = getattr(gast, name)
    globals()[name] = found
    return found


def from_ast(node: ast.AST) -> ast.AST:
    """Turn a tree of the standard library into gast's."""
    import gast

    return cast(ast.AST, gast.ast_to_gast(node))


def to_ast(node: ast.AST) -> ast.AST:
    """Turn gast's tree into one that `compile` takes."""
    import gast

    return cast(ast.AST, gast.gast_to_ast(node))


def parse(text: str) -> list[ast.stmt]:
    """Parse source text into gast statements."""
    module = cast(ast.Module, from_ast(ast.parse(text)))
    return module.body


def is_function(node: object) -> TypeGuard[Function]:
    """Return whether a node is a `def` or an `async def`."""
    return type(node).__name__ in ("FunctionDef", "AsyncFunctionDef")


def is_comprehension(node: object) -> TypeGuard[Comprehension]:
    """Return whether a node is a comprehension or a generator expression."""
    return type(node).__name__ in ("ListComp", "SetComp", "DictComp", "GeneratorExp")


def is_compound(node: object) -> TypeGuard[ast.stmt]:
    """Return whether a node is a statement with statements of the same scope inside."""
    return type(node).__name__ in _COMPOUND


_COMPOUND = frozenset(["If", "For", "While", "With", "Try", "TryStar", "Match", "AsyncFor", "AsyncWith"])


def parameters(arguments: ast.arguments) -> list[ast.Name]:
    """List the parameters of a function in the order of their values in a call."""
    args: Any = arguments
    found = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [arg for arg in found if arg is not None]


def first_parameter(arguments: ast.arguments) -> ast.Name | None:
    """Return the first positional parameter (`self` in a method)."""
    args: Any = arguments
    found = [*args.posonlyargs, *args.args]
    return found[0] if found else None


def handler_name(handler: ast.ExceptHandler) -> ast.Name | None:
    """Return the node of `e` in `except E as e`."""
    return cast("ast.Name | None", handler.name)


def children(node: ast.AST) -> list[Any]:
    """List the nodes right inside a node, in source order, without operators and contexts."""
    found: list[Any] = []
    inside = node.__dict__
    kind = node.__class__
    for field in _FIELDS[kind] if kind in _FIELDS else _code_fields(kind):
        value = inside.get(field)
        if not value:  # most often: no annotation, no keywords
            continue
        if value.__class__ is list:
            found += [item for item in cast("list[object]", value) if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


_NO_CODE = frozenset(
    [
        *("ctx", "op", "ops"),
        *("asname", "attr", "conversion", "id", "is_async", "kind", "level", "module", "simple", "type_comment"),
    ]
)
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""By kind of node, the fields in which other nodes may stand."""


def _code_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = () if kind.__name__ == "Constant" else kind._fields
    return _FIELDS.setdefault(kind, tuple(field for field in fields if field not in _NO_CODE))


def walk(node: ast.AST) -> Iterator[Any]:
    """Yield a node and all nodes inside it, in source order."""
    waiting: list[Any] = [node]
    while waiting:
        here = waiting.pop()
        yield here
        inside = children(here)
        if inside:
            inside.reverse()
            waiting += inside


def functions(root: ast.AST) -> list[Any]:
    """List every `def` in a tree, outer before inner."""
    return [node for node in walk(root) if is_function(node)]


def methods(node: Any) -> list[Any]:
    """List the functions that stand in the body of a class."""
    return [item for item in node.body if is_function(item)]


def blocks(node: ast.AST) -> Iterator[tuple[Any, str]]:
    """Yield the (owner, field) of each list of statements of a compound statement that belongs to its scope."""
    for field in ("body", "orelse", "finalbody"):
        if isinstance(getattr(node, field, None), list):
            yield node, field
    for inner in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield inner, "body"


def new(node_class: str, /, **fields: Any) -> Any:
    """Make a node whose place is set later (see origin); templates are for everything bigger."""
    found = globals().get(node_class) or __getattr__(node_class)
    return found(**fields)
