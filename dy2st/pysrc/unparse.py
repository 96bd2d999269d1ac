"""From tree to text: astor's layout where it reads back as the same tree, else `ast.unparse`."""

from __future__ import annotations

import ast
import warnings
from typing import Any, cast

from dy2st.pysrc import origin, tree


def source(node: ast.AST) -> str:
    """Print a gast node as Python text that reads back as the same tree."""
    standard = tree.to_ast(node)
    origin.fill(standard, origin.Place(1, 0, 1, 0))
    body = cast("list[ast.stmt]", standard.body) if isinstance(standard, ast.Module) else [cast(Any, standard)]
    for child in ast.walk(standard):
        if isinstance(child, ast.Constant):
            child.kind = None
    want = ast.dump(ast.Module(body, []))
    text = _by_astor(ast.Module(body, []))
    if text is None or _dump(text) != want:
        text = ast.unparse(ast.Module(body, []))
    return text.rstrip("\n")


def plain(node: ast.AST) -> str:
    """Print a gast node by `ast.unparse` alone, without empty lines: for examples in docs."""
    standard = tree.to_ast(node)
    origin.fill(standard, origin.Place(1, 0, 1, 0))
    return "\n".join(line for line in ast.unparse(standard).splitlines() if line.strip())


def _by_astor(module: ast.Module) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # astor reads names that newer Pythons call deprecated
        try:
            import astor

            return cast(str, astor.to_source(module))
        except Exception:  # astor 0.8.1 fails in many ways on what it does not know; unparse takes over
            return None


def _dump(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return None
