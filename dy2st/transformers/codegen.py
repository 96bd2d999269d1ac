"""From the rewritten tree to a code object that looks like the user's.

The tree itself is compiled, under the name of the user's file, so lines and columns are the user's. Generated
functions get the name of the function they are part of, so that a traceback shows no name that the user never wrote.
"""

from __future__ import annotations

import ast
import types
from functools import cached_property
from typing import Any

from dy2st.pysrc import templates, tree, unparse
from dy2st.transformers.core.context import Context
from dy2st.transformers.lowering.operators import as_written, routed


class LazyText:
    """The text of a tree, printed when somebody asks."""

    def __init__(self, root: ast.FunctionDef, mark: str):
        self._root, self._mark = root, mark

    def __call__(self) -> str:
        """Print the tree once."""
        return self._text

    @cached_property
    def _text(self) -> str:
        as_written(self._root)
        for node in ast.walk(self._root):
            if isinstance(node, ast.Lambda) and node.args.vararg and node.args.vararg.arg == self._mark:
                node.args.vararg = None
        return unparse.source(self._root)


def compile_function(
    context: Context, code: types.CodeType, flags: int, *, converted: bool = True
) -> tuple[types.CodeType, LazyText]:
    """Compile the root of a conversion; its free variables are those of `code` and the helper.

    Where the function is not `converted`, its operators and stars stay Python's.
    """
    mark = context.names.fresh("thunk")
    for thunk in tree.walk(context.root):  # a parameter that nobody passes tells generated lambdas from the user's
        if thunk in context.thunks:
            thunk.args.vararg = templates.name(thunk, mark, "Param")
    root = tree.to_ast(context.root)
    assert isinstance(root, ast.FunctionDef)
    if converted:
        root.body = [routed(statement, context.helper) for statement in root.body]
    inner = ast.copy_location(_bare(root, context.names.fresh("function")), root)  # its own name is not bound in there
    outer = ast.copy_location(_bare(root, context.names.fresh("factory")), root)
    outer.args = _arguments(args=[ast.arg(name) for name in [*sorted(context.free), context.helper]])
    for arg in outer.args.args:
        ast.copy_location(arg, root)
    outer.body = [inner]
    made = compile(ast.Module([outer], []), code.co_filename, "exec", flags=flags, dont_inherit=True)
    for _ in range(2):
        made = next(const for const in made.co_consts if isinstance(const, types.CodeType))
    renamed = _renamed(made, code.co_name, code.co_qualname, frozenset(context.functions), mark)
    return renamed, LazyText(root, mark)


def _bare(root: ast.FunctionDef, name: str) -> ast.FunctionDef:
    """Copy a function without what its `def` evaluates: that happened when the user's `def` ran."""
    args = root.args
    arguments = _arguments(
        posonlyargs=[_bare_parameter(param) for param in args.posonlyargs],
        args=[_bare_parameter(param) for param in args.args],
        vararg=_bare_parameter(args.vararg) if args.vararg else None,
        kwonlyargs=[_bare_parameter(param) for param in args.kwonlyargs],
        kw_defaults=[None for _ in args.kw_defaults],
        kwarg=_bare_parameter(args.kwarg) if args.kwarg else None,
    )
    fields: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
    return ast.FunctionDef(name=name, args=arguments, body=root.body, decorator_list=[], **fields)


def _arguments(**given: Any) -> ast.arguments:
    empty: dict[str, Any] = {"posonlyargs": [], "args": [], "kwonlyargs": [], "kw_defaults": [], "defaults": []}
    fields: dict[str, Any] = {"vararg": None, "kwarg": None, **empty, **given}
    return ast.arguments(**fields)


def _bare_parameter(param: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(param.arg), param)


def _renamed(code: types.CodeType, name: str, qualname: str, generated: frozenset[str], mark: str) -> types.CodeType:
    """Name a code object, and those inside it: generated ones as the function around, others as Python would."""
    is_class = not code.co_flags & 0x02  # CO_NEWLOCALS: only class bodies lack it here
    consts: list[Any] = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            made_up = const.co_name in generated or (const.co_name == "<lambda>" and mark in const.co_varnames)
            if made_up:
                consts.append(_renamed(const, name, qualname, generated, mark))
                continue
            prefix = (
                "" if const.co_qualname == const.co_name else f"{qualname}." if is_class else f"{qualname}.<locals>."
            )
            consts.append(_renamed(const, const.co_name, prefix + const.co_name, generated, mark))
        else:
            consts.append(qualname if is_class and const == code.co_qualname else const)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(consts))
