"""Which rule lowers which node in the last pass."""

from __future__ import annotations

from typing import Any

from dy2st.transformers.core.context import Context
from dy2st.transformers.lowering import (
    assert_raise,
    assignments,
    attributes,
    boolean_ops,
    calls,
    fstrings,
    functions,
    if_,
    loops,
    reads,
    stars,
    try_,
    with_,
)
from dy2st.transformers.lowering.rewriter import Rewriter, Rule

EXPRESSIONS: dict[str, Rule] = {
    "Attribute": attributes.lower_attribute,
    "BinOp": fstrings.lower_percent,
    "BoolOp": boolean_ops.lower_bool_op,
    "Call": calls.lower_call,
    "Compare": boolean_ops.lower_compare,
    "Dict": stars.lower_dict,
    "DictComp": functions.lower_comprehension,
    "ExceptHandler": functions.lower_handler,
    "GeneratorExp": functions.lower_comprehension,
    "IfExp": boolean_ops.lower_if_exp,
    "JoinedStr": fstrings.lower_joined_str,
    "Lambda": functions.lower_lambda,
    "ListComp": functions.lower_comprehension,
    "Name": reads.lower_name,
    "Set": stars.lower_gathering,
    "SetComp": functions.lower_comprehension,
    "Slice": attributes.lower_slice,
    "Subscript": attributes.lower_subscript,
    "Tuple": stars.lower_gathering,
    "UnaryOp": boolean_ops.lower_not,
}
STATEMENTS: dict[str, Rule] = {
    "AnnAssign": assignments.lower_ann_assign,
    "Assert": assert_raise.lower_assert,
    "Assign": assignments.lower_assign,
    "AsyncFunctionDef": functions.lower_function,
    "AsyncWith": with_.lower_with,
    "AugAssign": assignments.lower_aug_assign,
    "ClassDef": functions.lower_class,
    "Delete": assignments.lower_delete,
    "For": loops.lower_for,
    "FunctionDef": functions.lower_function,
    "Global": functions.lower_declaration,
    "If": if_.lower_if,
    "Nonlocal": functions.lower_declaration,
    "Raise": assert_raise.lower_raise,
    "Try": try_.lower_try,
    "TryStar": try_.lower_try_star,
    "While": loops.lower_while,
    "With": with_.lower_with,
}


def transform(root: Any, context: Context) -> None:
    """Rewrite the body of the outermost function."""
    functions.lower_body(Rewriter(context, EXPRESSIONS, STATEMENTS), root)
