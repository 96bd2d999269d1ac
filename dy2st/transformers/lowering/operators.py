r"""Operators and `*` in the code that runs: `a + b` asks the helper, as an operand may be an object of the user's.

This is done to the tree that is compiled, last; the text of the converted source shows operators as they were written.

>>> tree = ast.parse("def f(a, b): return g(-a + b, *a, **b)")
>>> print(ast.unparse(routed(tree, "_dy")))
def f(a, b):
    return g(_dy.binary('+', _dy.unary('-', a), b), *_dy.items(a), **_dy.items(b))
>>> print(ast.unparse(as_written(tree)))
def f(a, b):
    return g(-a + b, *a, **b)
"""

from __future__ import annotations

import ast
from typing import Any

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.USub: "-",
    ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip
OF_THE_FRAME = ("eval", "exec", "globals")
"""Functions that reach what no trace sees."""
_WRITTEN = "_as_written"


def routed(tree: Any, helper: str) -> Any:
    """Let operators and stars of a tree ask the helper; the tree is changed."""
    return _Routing(helper).visit(tree)


def as_written(tree: Any) -> Any:
    """Undo `routed`; the tree is changed."""
    return _Written().visit(tree)


class _Routing(ast.NodeTransformer):
    def __init__(self, helper: str):
        self.helper = helper

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        return self._call("binary", node, ast.Constant(SIGNS[type(node.op)]), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) or isinstance(node.operand, ast.Constant):
            return node
        return self._call("unary", node, ast.Constant(SIGNS[type(node.op)]), node.operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        sign = SIGNS.get(type(node.ops[0]))
        if sign is None or len(node.ops) > 1:
            return node
        return self._call("binary", node, ast.Constant(sign), node.left, node.comparators[0])

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in OF_THE_FRAME:
            node.func = self._call("of_frame", node.func, node.func)
        for word in node.keywords:
            if word.arg is None:
                word.value = self._call("items", word.value, word.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        pairs = zip(node.keys, node.values, strict=True)
        node.values = [self._call("items", v, v) if k is None else v for k, v in pairs]
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._call("items", node.value, node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        node.guard = None if node.guard is None else self.visit(node.guard)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def _call(self, name: str, node: Any, *args: Any) -> Any:
        function = ast.Attribute(ast.Name(self.helper, ast.Load()), name, ast.Load())
        made = ast.Call(function, list(args), [])
        for part in (made, function, function.value, *(x for x in args if isinstance(x, ast.Constant))):
            ast.copy_location(part, node)
        setattr(made, _WRITTEN, node)
        return made


class _Written(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        return self.generic_visit(getattr(node, _WRITTEN, node))
