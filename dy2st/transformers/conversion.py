"""The conversion of one function: its source is found, taken through the passes and compiled."""

from __future__ import annotations

import ast
import types
import weakref
from typing import Any

from dy2st.errors import ConversionError
from dy2st.pysrc import origin, source, templates, tree
from dy2st.transformers.canonicalize import private_names
from dy2st.transformers.codegen import compile_function
from dy2st.transformers.convert import Conversion, Converted, modules_among, remember
from dy2st.transformers.pipeline import PASSES
from dy2st.transformers.preview import new_context

_texts: dict[Any, Conversion] = {}
"""The last conversions, by source text and equal code: a cell or module that runs again is not converted again."""
MOST_TEXTS = 512


def conversion_of(fn: types.FunctionType) -> Conversion:
    """Convert a function, unless that was done for an equal one."""
    found = source.find(fn)
    if isinstance(found.node, ast.AsyncFunctionDef):
        raise ConversionError(
            f"`{fn.__qualname__}` cannot be converted: an `async def` runs on an event loop, which a Program has not",
            file=found.file,
            line=found.node.lineno,
            hint="Convert the functions that it awaits or calls instead.",
        )
    key = found.file, found.text, found.class_name, fn.__code__
    known = _texts.get(key)
    if known is not None and modules_among(fn, known.asked) == known.modules:
        return known
    made = _transform(fn, found)
    _texts[key] = made
    while len(_texts) > MOST_TEXTS:
        del _texts[next(iter(_texts))]
    return made


def _transform(fn: types.FunctionType, found: source.FunctionSource) -> Conversion:
    root: Any = definition_of(found.node)
    asked = _roots(root)
    modules = modules_among(fn, asked)
    context = new_context(root, modules, fn.__code__.co_freevars)
    if isinstance(found.node, ast.Lambda):
        root.name = context.names.fresh("lambda")
    private_names.transform(root, context, found.class_name)
    for _, transform in PASSES:
        transform(root, context)
    code, text = compile_function(context, fn.__code__, source.future_flags(fn.__code__))
    remember(code)
    first = fn.__code__.co_firstlineno
    converted = Converted(found.text, found.file, first, code, context.helper, text, weakref.ref(fn))
    return Conversion(converted, asked, modules)


def definition_of(node: source.Node) -> Any:
    """Return a function as a `def` without decorators; a lambda becomes a `def` that returns its value."""
    made: Any = tree.from_ast(node)
    if not isinstance(node, ast.Lambda):
        made.decorator_list = []
        return made
    spot = origin.place(node)
    function = templates.statement(spot, "def NAME():\n    return VALUE", NAME="name", VALUE=made.body)
    function.args = made.args
    return function


def _roots(root: Any) -> frozenset[str]:
    """List the names that dotted paths start with."""
    found: set[str] = set()
    for node in tree.walk(root):
        value: Any = getattr(node, "value", None)
        if type(node).__name__ == "Attribute" and type(value).__name__ == "Name":
            found.add(value.id)
    return frozenset(found)
