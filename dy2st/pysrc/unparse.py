"""From tree to text: astor's layout where it reads back as the same tree, else `ast.unparse`."""

# astor has no types: what it gives is cast here, once.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import ast
import warnings
from typing import cast

from dy2st.pysrc import tree


def source(node: ast.AST) -> str:
    """Print a statement (gast's or the standard library's) as text that reads back as the same tree."""
    standard = cast(ast.stmt, node if type(node).__module__ in ("ast", "_ast") else tree.to_ast(node))
    for child in ast.walk(standard):
        if isinstance(child, ast.Constant):
            child.kind = None
    module = ast.Module([standard], [])
    text = _by_astor(module)
    if text is None or _dump(text) != ast.dump(module):
        text = ast.unparse(module)
    return text.rstrip("\n")


def plain(node: ast.AST) -> str:
    """Print a gast node by `ast.unparse` alone, without empty lines: for examples in docs."""
    standard = tree.to_ast(node)
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
