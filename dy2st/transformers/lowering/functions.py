"""Functions, lambdas and classes inside: their bodies are converted with the function around them.

>>> from dy2st.transformers.preview import preview
>>> print(preview('''
... def f(x):
...     def g(y=h(x)):
...         return y and x
...     return lambda z: g(z)
... '''))
def f(x):
    def g(y=_dy.call(h)(x)):
        return _dy.and_(y, lambda: x)
    return lambda z: _dy.call(g)(z)

`global` and `nonlocal` move to the top of their function, with the placeholders of variables that may be read, or
handed to the helper, before they are assigned. The own statements of a class body stay, its methods are converted.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.pysrc.scopes import parts_inside
from dy2st.transformers.lowering.rewriter import Rewriter


def lower_function(rw: Rewriter, node: Any) -> list[Any]:
    """Lower a `def`."""
    node.decorator_list = _decorators(rw, node)
    _defaults(rw, node)
    lower_body(rw, node)
    return [node]


def _decorators(rw: Rewriter, node: Any) -> list[Any]:
    """Lower the decorators of a function or class: what is the user's is called in its converted form."""
    return [rw.make(one, "DY.decorator(MADE)", MADE=rw.expr(one)) for one in node.decorator_list]


def lower_body(rw: Rewriter, node: Any) -> None:
    """Lower the body of a `def`."""
    scope, context = rw.scopes.of[node], rw.context
    doc: list[Any] = node.body[:1] if _is_text(node.body[0]) else []
    start = templates.statements(
        node,
        "global GLOBALS\nnonlocal NONLOCALS",
        GLOBALS=sorted(scope.globals),
        NONLOCALS=sorted(scope.nonlocals),
    )
    for name in context.placeholders.get(node, []):
        text = templates.literal(node, context.labels.get(name, name))
        unset = rw.make(node, "DY.undefined(TEXT)", TEXT=text)
        start += templates.statements(node, "NAME = UNSET", NAME=name, UNSET=unset)
    with rw.inside(scope, hoistable=True):
        body = rw.block(node.body[len(doc) :])
    node.body = [*doc, *start, *body]


def lower_lambda(rw: Rewriter, node: Any) -> Any:
    """Lower the user's own lambda."""
    _defaults(rw, node)
    with rw.inside(rw.scopes.of[node], hoistable=False):
        node.body = rw.expr(node.body)
    return node


def lower_comprehension(rw: Rewriter, node: Any) -> Any:
    """Lower what is inside a comprehension or generator expression that stays."""
    first = node.generators[0]
    first.iter = rw.expr(first.iter)
    inside = {id(part) for part in parts_inside(node)}
    with rw.inside(hoistable=False):
        for generator in node.generators:
            generator.ifs = [rw.expr(test) for test in generator.ifs]
            generator.iter = rw.expr(generator.iter) if id(generator.iter) in inside else generator.iter
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, rw.expr(getattr(node, field)))
    return rw.make(node, "DY.generator(MADE)", MADE=node) if type(node).__name__ == "GeneratorExp" else node


def lower_class(rw: Rewriter, node: Any) -> list[Any]:
    """Lower the methods of a class; that it was made here is noted before any decorator of its own sees it."""
    node.decorator_list = [*_decorators(rw, node), rw.make(node, "DY.made_class")]
    node.bases = [rw.expr(base) for base in node.bases]
    for word in node.keywords:
        word.value = rw.expr(word.value)
    with rw.inside(hoistable=False, plain=True):
        node.body = rw.block(node.body)
    return [node]


def lower_declaration(rw: Rewriter, node: Any) -> list[Any]:
    """Drop `global` and `nonlocal`, which `lower_body` puts at the top."""
    return []


def lower_handler(rw: Rewriter, node: Any) -> Any:
    """Lower `except E as e`, at whose end Python unsets `e`, where `e` is a variable that has a placeholder."""
    name = tree.handler_name(node)
    node.type = None if node.type is None else rw.expr(node.type)
    node.body = rw.block(node.body)
    if name is None or not _has_placeholder(rw, name.id):
        return node
    spot = origin.header(node.body[0])  # the name has no place of its own
    caught = rw.context.variable("caught")
    unset = rw.make(spot, "DY.undefined(TEXT)", TEXT=templates.literal(spot, name.id))
    node.body = templates.statements(
        spot,
        "NAME = CAUGHT\ntry:\n    BODY\nfinally:\n    NAME = UNSET",
        NAME=name.id,
        CAUGHT=caught,
        BODY=node.body,
        UNSET=unset,
    )
    node.name = templates.name(spot, caught, "Store")
    return node


def _has_placeholder(rw: Rewriter, name: str) -> bool:
    owner = rw.scope.resolve(name)
    return owner is not None and name in rw.context.unset.get(owner.node, ())


def _defaults(rw: Rewriter, node: Any) -> None:
    args = node.args
    args.defaults = [rw.expr(default) for default in args.defaults]
    args.kw_defaults = [None if default is None else rw.expr(default) for default in args.kw_defaults]


def _is_text(node: Any) -> bool:
    value: Any = getattr(node, "value", None)
    return type(node).__name__ == "Expr" and type(value).__name__ == "Constant" and isinstance(value.value, str)
