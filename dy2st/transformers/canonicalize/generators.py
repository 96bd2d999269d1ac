r"""A generator gets a second form, which hands what it yields to a function: a loop over it then is loops of its own.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(xs):\n    for x in xs:\n        yield x * 2", "generators"))
def f(xs):
    def _pull(xs):
        for x in xs:
            yield (x * 2)
    def _push(_consumer, xs):
        for x in xs:
            if _consumer(x * 2):
                return
    return _dy.generated(_pull, _push, (xs,))

`for v in f(xs): BODY` runs the second form with BODY as the consumer, which says whether the loop was left. The first
form is for what pulls items itself (`next`). A generator stays as it is where a `yield` has a value, or stands in a
`try` or `with`, which would see what BODY raises.

A generator expression becomes a generator, unless a built-in runs through it at once (comprehensions.py).
"""

from __future__ import annotations

import copy
from typing import Any

from dy2st.pysrc import templates, tree
from dy2st.pysrc.scopes import own
from dy2st.transformers.core.context import Context

_YIELDS = ("Yield", "YieldFrom")
_GUARDED = ("Try", "TryStar", "With", "AsyncWith", "AsyncFor")


def transform(root: Any, context: Context) -> None:
    """Split every generator function in two."""
    for function in reversed(tree.functions(root)):
        is_bare = type(function).__name__ == "FunctionDef" and (function is root or not function.decorator_list)
        if is_bare and _can_push(function.body):
            split(function, context)


def _can_push(body: list[Any]) -> bool:
    """Return whether these are the statements of a generator all of whose yields are statements in plain control
    flow.
    """
    found = [node for stmt in body for node in own([stmt]) if type(node).__name__ in _YIELDS]
    return bool(found) and len(_statements(body)) == len(found)


def _statements(body: list[Any]) -> list[Any]:
    """List the yields that are statements in plain control flow."""
    found: list[Any] = []
    for stmt in body:
        if type(stmt).__name__ == "Expr" and type(stmt.value).__name__ in _YIELDS:
            found.append(stmt)
        elif type(stmt).__name__ not in _GUARDED and tree.is_compound(stmt):
            for owner, field in tree.blocks(stmt):
                found += _statements(getattr(owner, field))
    return found


def split(function: Any, context: Context) -> Any:
    """Replace the body of a generator function by the two forms, which take its parameters; return the first one."""
    doc: list[Any] = function.body[:1] if _is_text(function.body[0]) else []
    body = function.body[len(doc) :]
    consumer = context.function("consumer", shared=False)
    parameters = [name.id for name in tree.parameters(function.args)]
    spot = body[0]
    pull, push = context.function("pull", shared=False), context.function("push", shared=False)
    pulled = templates.statement(spot, "def NAME():\n    BODY", NAME=pull, BODY=copy.deepcopy(body))
    pushed = templates.statement(spot, "def NAME():\n    BODY", NAME=push, BODY=_pushing(body, consumer, context))
    for made, names in ((pulled, parameters), (pushed, [consumer, *parameters])):
        made.args.args = [templates.name(spot, name, "Param") for name in names]
    given = templates.literal(spot, ())
    given.elts = [templates.name(spot, name) for name in parameters]
    made = templates.statement(
        spot, "return DY.generated(PULL, PUSH, GIVEN)", DY=context.helper, PULL=pull, PUSH=push, GIVEN=given
    )
    function.body = [*doc, pulled, pushed, made]
    return pulled


def _pushing(body: list[Any], consumer: str, context: Context) -> list[Any]:
    """Return statements in which what was yielded goes to the consumer."""
    made: list[Any] = []
    for stmt in body:
        kind = type(stmt.value).__name__ if type(stmt).__name__ == "Expr" else ""
        if kind == "Yield":
            value = stmt.value.value or templates.literal(stmt, None)
            made += templates.statements(stmt, "if CONSUMER(VALUE):\n    return", CONSUMER=consumer, VALUE=value)
        elif kind == "YieldFrom":
            item = context.variable("item")
            made += templates.statements(
                stmt, "for ITEM in ITEMS:\n    if CONSUMER(HERE):\n        return",
                ITEM=templates.name(stmt, item, "Store"), ITEMS=stmt.value.value, CONSUMER=consumer,
                HERE=templates.name(stmt, item),
            )  # fmt: skip
        else:
            if tree.is_compound(stmt):
                for owner, field in tree.blocks(stmt):
                    setattr(owner, field, _pushing(getattr(owner, field), consumer, context))
            made.append(stmt)
    return made


def _is_text(stmt: Any) -> bool:
    return type(stmt).__name__ == "Expr" and isinstance(getattr(stmt.value, "value", None), str)
