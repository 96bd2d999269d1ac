"""From the rewritten tree to a code object that looks like the user's.

The tree itself is compiled, under the name of the user's file, so lines and columns are the user's. Generated
functions get the name of the function they are part of, so that a traceback shows no name that the user never wrote.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.transformers.context import Context


def compile_function(context: Context, code: types.CodeType, flags: int) -> types.CodeType:
    """Compile the root of a conversion; its free variables are those of `code` and the helper."""
    root: Any = context.root
    mark = context.names.fresh("thunk")
    for thunk in ast.walk(root):  # a parameter that nobody passes tells generated lambdas from the user's
        if thunk in context.thunks:
            generated: Any = thunk
            generated.args.vararg = templates.name(generated, mark, "Param")
    factory = templates.statement(root, "def FACTORY():\n    0", FACTORY=context.names.fresh("factory"))
    factory.args.args = [templates.name(root, name, "Param") for name in [*sorted(context.free), context.helper]]
    factory.body = [_bare(root, context.names.fresh("function"))]  # its own name is not bound in there
    module: Any = tree.to_ast(tree.new("Module", body=[factory], type_ignores=[]))
    origin.fill(module.body, origin.Place(root.lineno, 0, root.lineno, 0))
    made = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    outer = next(const for const in made.co_consts if isinstance(const, types.CodeType))
    inner = next(const for const in outer.co_consts if isinstance(const, types.CodeType))
    return _renamed(inner, code.co_name, code.co_qualname, frozenset(context.functions), mark)


def _bare(root: Any, name: str) -> Any:
    """Copy a function without what its `def` evaluates: that happened when the user's `def` ran."""
    args = root.args
    params = [_bare_parameter(param) for param in args.args]
    arguments = tree.new(
        "arguments",
        args=params,
        posonlyargs=[_bare_parameter(param) for param in args.posonlyargs],
        vararg=_bare_parameter(args.vararg),
        kwonlyargs=[_bare_parameter(param) for param in args.kwonlyargs],
        kw_defaults=[None for _ in args.kw_defaults],
        kwarg=_bare_parameter(args.kwarg),
        defaults=[],
    )
    made = tree.new(
        "FunctionDef",
        name=name,
        args=arguments,
        body=root.body,
        decorator_list=[],
        returns=None,
        type_comment=None,
        type_params=[],
    )
    origin.put(made, root)
    return made


def _bare_parameter(param: Any) -> Any:
    return None if param is None else templates.name(param, param.id, "Param")


def _renamed(
    code: types.CodeType, name: str, qualname: str, generated: frozenset[str], mark: str
) -> types.CodeType:
    """Name a code object, and those inside it: generated ones as the function around, others as Python would."""
    is_class = not code.co_flags & 0x02  # CO_NEWLOCALS: only class bodies lack it here
    consts: list[Any] = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            made_up = const.co_name in generated or (const.co_name == "<lambda>" and mark in const.co_varnames)
            if made_up:
                consts.append(_renamed(const, name, qualname, generated, mark))
                continue
            prefix = "" if const.co_qualname == const.co_name else f"{qualname}." if is_class else f"{qualname}.<locals>."
            consts.append(_renamed(const, const.co_name, prefix + const.co_name, generated, mark))
        else:
            consts.append(qualname if is_class and const == code.co_qualname else const)
    return code.replace(co_name=name, co_qualname=qualname, co_consts=tuple(consts))
