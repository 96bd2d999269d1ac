r"""`and`, `or`, `not`, the ternary, comparison in chains and of shapes, `is` and `in` become calls, with thunks
for what may not run.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(a, b):\n    return (a and not b) or (a if b else a is b)"))
def f(a, b):
    return _dy.or_(_dy.and_(a, lambda: _dy.not_(b)), lambda: _dy.if_exp(b, lambda: a, lambda: _dy.is_(a, b, False)))
>>> print(preview("def f(a, b):\n    return 0 < a <= b"))
def f(a, b):
    return _dy.compare(0, ('<', '<='), lambda: a, lambda: b)
>>> print(preview("def f(a, b):\n    return a.shape == b.shape"))
def f(a, b):
    return _dy.equal(_dy.attr(a, 'shape'), _dy.attr(b, 'shape'), False)

A walrus in a thunk assigns the variable of the function around, so the thunk is a function with `nonlocal`.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import templates
from dy2st.transformers.lowering.rewriter import Rewriter, walruses

_OPS = {
    "Lt": "<",
    "LtE": "<=",
    "Eq": "==",
    "NotEq": "!=",
    "Gt": ">",
    "GtE": ">=",
    "Is": "is",
    "IsNot": "is not",
    "In": "in",
    "NotIn": "not in",
}


def lower_bool_op(rw: Rewriter, node: Any) -> Any:
    """Lower `and` and `or`."""
    if not rw.can_defer(node.values[1:]):
        return rw.children(node)
    word = "and_" if type(node.op).__name__ == "And" else "or_"
    first, assigns = rw.expr(node.values[0]), any(walruses(value) for value in node.values[1:])
    more: dict[str, Any] = {"ASSIGNED": rw.assigned(node.values[1:])} if assigns else {}
    template = f"DY.{word}(FIRST, *REST, assigned=ASSIGNED)" if assigns else f"DY.{word}(FIRST, *REST)"
    return rw.make(node, template, FIRST=first, REST=[rw.thunk(value) for value in node.values[1:]], **more)


def lower_not(rw: Rewriter, node: Any) -> Any:
    """Lower `not`; other unary operators stay."""
    if type(node.op).__name__ != "Not":
        return rw.children(node)
    return rw.make(node, "DY.not_(VALUE)", VALUE=rw.expr(node.operand))


def lower_if_exp(rw: Rewriter, node: Any) -> Any:
    """Lower the ternary."""
    if not rw.can_defer([node.body, node.orelse]):
        return rw.children(node)
    test, parts = rw.expr(node.test), [node.body, node.orelse]
    if not any(map(walruses, parts)):
        return rw.make(node, "DY.if_exp(TEST, A, B)", TEST=test, A=rw.thunk(node.body), B=rw.thunk(node.orelse))
    assigned = rw.assigned(parts)
    a, b = map(rw.thunk, parts)
    return rw.make(node, "DY.if_exp(TEST, A, B, assigned=ASSIGNED)", TEST=test, A=a, B=b, ASSIGNED=assigned)


def _has_items(node: Any) -> bool:
    """Return whether an expression looks as if it gave a list or tuple: a display, `x.shape`, a part of these."""
    kind = type(node).__name__
    if kind == "Subscript":
        return type(node.slice).__name__ == "Slice" and _has_items(node.value)
    if kind == "Call":
        return type(node.func).__name__ == "Name" and node.func.id in ("list", "tuple")
    return kind in ("List", "Tuple") or (kind == "Attribute" and node.attr == "shape")


def lower_compare(rw: Rewriter, node: Any) -> Any:
    """Lower chains, `is`, `in`, and what compares shapes, lists or tuples; other comparisons stay operators."""
    ops = [_OPS[type(op).__name__] for op in node.ops]
    if len(ops) > 1:
        if not rw.can_defer(node.comparators):
            return rw.children(node)
        first = rw.expr(node.left)
        rest = [rw.thunk(value) for value in node.comparators]
        signs = templates.literal(node, tuple(ops))
        return rw.make(node, "DY.compare(FIRST, OPS, *REST)", FIRST=first, OPS=signs, REST=rest)
    of_items = ops[0] in ("==", "!=") and any(map(_has_items, (node.left, *node.comparators)))
    rw.children(node)
    if of_items:
        word = "equal"
    elif ops[0] in ("is", "is not", "in", "not in"):
        word = "is_" if ops[0].startswith("is") else "in_"
    else:
        return node
    negate = templates.literal(node, ops[0] in ("!=", "is not", "not in"))
    return rw.make(node, f"DY.{word}(A, B, NEGATE)", A=node.left, B=node.comparators[0], NEGATE=negate)
