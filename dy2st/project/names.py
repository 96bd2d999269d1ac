"""Paddle's names in a file, `F.relu` after `import paddle.nn.functional as F` being `paddle.nn.functional.relu`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

ROOTS = ("paddle", "dy2st")


def bindings(tree: ast.Module) -> dict[str, str]:
    r"""Return what each name that a file imports stands for, as a dotted name.

    >>> bindings(ast.parse("import numpy as np, paddle.nn\nfrom paddle.nn import functional as F"))
    {'np': 'numpy', 'paddle': 'paddle', 'F': 'paddle.nn.functional'}
    """
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names if one.name != "*"}
    return found


def used(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield Paddle's names that a file imports or looks up, with the line of each."""
    known = bindings(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [node.module if one.name == "*" else f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            found = [dotted(node, known)]
        else:
            continue
        for name in found:
            if name.partition(".")[0] in ROOTS:
                yield "paddle" + name[name.find(".") :] if "." in name else "paddle", getattr(node, "lineno", 0)


def dotted(node: ast.AST, known: dict[str, str]) -> str:
    """Return the dotted name that an expression is, "" where it begins with no imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    first = known.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join([first, *reversed(parts)]) if first else ""


def missing(name: str) -> str:
    """Return the part of a name that is not here, "" where all of it is.

    >>> missing("paddle.nn.Linear.forward.anything"), missing("paddle.nn.Quux.forward")
    ('', 'paddle.nn.Quux')
    """
    here: Any = import_module(ROOTS[1])
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        if not inspect.ismodule(here) and not inspect.isclass(here):
            return ""  # of a function or a value: what it has is known when it is there
        found = _below(here, part)
        if found is None:
            return ".".join(parts[:i])
        here = found[0]
    return ""


def _below(here: Any, part: str) -> tuple[Any] | None:
    """Return a name of a module or class in a tuple, None where there is none."""
    if part.startswith("__"):  # never a module of ours that does something when it is imported
        return (None,) if hasattr(here, part) else None
    try:
        return (getattr(here, part),)
    except AttributeError:
        if not isinstance(here, ModuleType) or not hasattr(here, "__path__"):
            return None
    except RuntimeError:
        return (None,)  # it is there, and asks for a device, or for static mode
    try:
        return (import_module(f"{here.__name__}.{part}"),)
    except ModuleNotFoundError:
        return None
