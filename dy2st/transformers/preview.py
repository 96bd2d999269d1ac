"""Source before and after, for docs and tests: `preview(text)` prints what the passes make of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dy2st.naming import Names
from dy2st.pysrc import tree, unparse
from dy2st.transformers.canonicalize import private_names
from dy2st.transformers.core.context import Context
from dy2st.transformers.pipeline import PASSES


def preview(
    text: str,
    only: str | None = None,
    *,
    modules: Iterable[str] = (),
    free: Iterable[str] = (),
    class_name: str | None = None,
) -> str:
    """Return the source of the one function in `text` after all passes, or after one.

    `modules` and `free` are what the function would find around it: names of modules, variables of outer functions.
    """
    (root,) = tree.parse(text)
    context = new_context(root, modules, free)
    if only == "private_names":
        private_names.transform(root, context, class_name)
    else:
        for name, transform in PASSES:
            if only in (None, name) or name == "pinned":
                transform(root, context)
    return unparse.plain(root)


def new_context(root: Any, modules: Iterable[str] = (), free: Iterable[str] = ()) -> Context:
    """Start a conversion of one function."""
    names = Names([*identifiers(root), *free])
    return Context(root, names, frozenset(free), frozenset(modules), helper=names.fresh("dy"))


def identifiers(root: Any) -> list[str]:
    """List every identifier in a tree."""
    found: list[str] = []
    for node in tree.walk(root):
        for field in node._fields:
            value = getattr(node, field, None)
            if type(node).__name__ != "Constant":
                found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]  # pyright: ignore[reportUnknownVariableType]
    return found
