r"""A list, set or dict comprehension becomes a function with loops, so that those can be converted.

>>> from dy2st.transformers.preview import preview
>>> print(preview("def f(xs):\n    return [x * 2 for x in xs if x > 0]", "comprehensions"))
def f(xs):
    def _comprehension(_items):
        _result = []
        for x in _items:
            if x > 0:
                _result.append(x * 2)
        return _result
    return _comprehension(xs)

The first iterable is evaluated outside, the rest inside, as Python does. Inside lambdas, generator expressions and
class bodies there is no statement to put the function before: those stay.

A generator expression that a built-in runs through at once becomes a list in the same way; for `any` and `all`, which
stop asking where the answer is known, a list of that answer; for `next`, a list of one item at most. Others become
generators (generators.py).

>>> print(preview("def f(xs):\n    return any(x > 0 for x in xs)", "comprehensions"))
def f(xs):
    def _comprehension(_items):
        _result = [False]
        for x in _items:
            if x > 0:
                return [True]
        return _result
    return any(_comprehension(xs))
"""

from __future__ import annotations

import ast
from typing import Any

from dy2st.pysrc import templates, tree
from dy2st.pysrc.scopes import Scope, Scopes, own, parts_inside
from dy2st.transformers.canonicalize import generators, keep_native
from dy2st.transformers.core.context import Context

_APPEND = "RESULT.append(ELT)"
_CONSUMERS = {
    "any": ("[False]", "if ELT:\n    return [True]"),
    "all": ("[True]", "if not ELT:\n    return [False]"),
    "next": ("[]", "RESULT.append(ELT)\nreturn RESULT"),
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "sorted", "sum", "min", "max", "dict"), ("[]", _APPEND)),
}
"""Built-ins that run through a generator expression: what they get of it at first, and what each iteration does."""
_PLAIN = ("Name", "Constant")
_STORE = {
    "ListComp": ("[]", _APPEND),
    "SetComp": ("{*()}", "RESULT.add(ELT)"),
    "DictComp": ("{}", "KEY_NAME = KEY\nRESULT[KEY_NAME] = VALUE"),
}


def transform(root: Any, context: Context) -> None:
    """Lower the comprehensions of every function."""
    _Comprehensions(context, Scopes(root)).function(root)


class _Comprehensions:
    def __init__(self, context: Context, scopes: Scopes):
        self.context, self.scopes = context, scopes
        self.scope = scopes.root
        self.before: list[Any] = []

    def function(self, node: Any) -> None:
        outer, self.scope = self.scope, self.scopes.of.get(node, self.scope)
        self.blocks(node)
        self.scope = outer

    def blocks(self, node: Any) -> None:
        for owner, field in tree.blocks(node):
            setattr(owner, field, [made for stmt in getattr(owner, field) for made in self.statement(stmt)])

    def statement(self, node: Any) -> list[Any]:
        outer, self.before = self.before, []
        inside = {id(item) for owner, field in tree.blocks(node) for item in getattr(owner, field)}
        if type(node).__name__ == "ClassDef":
            for inner in tree.methods(node):
                self.function(inner)
        self.children(node, inside)
        before, self.before = self.before, outer
        if tree.is_function(node):
            self.function(node)
        elif type(node).__name__ != "ClassDef":
            self.blocks(node)
        return [*before, node]

    def children(self, node: Any, skip: set[int]) -> None:
        """Replace comprehensions in what a node evaluates, in place."""
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                setattr(node, field, [self.replaced(item, skip) for item in value])  # pyright: ignore[reportUnknownVariableType]
            elif isinstance(value, ast.AST):
                setattr(node, field, self.replaced(value, skip))

    def replaced(self, node: Any, skip: set[int]) -> Any:
        if not isinstance(node, ast.AST) or id(node) in skip or type(node).__name__ == "Lambda":
            return node
        if type(node).__name__ in _STORE and node not in self.context.native:
            return self.lower(node, *_STORE[type(node).__name__])
        consumer = self.consumer(node)
        if consumer is not None:
            call: Any = node
            made = self.lower(call.args[0], *consumer)
            is_next = call.func.id == "next"
            call.args[0] = templates.expression(node, "iter(MADE)", MADE=made) if is_next else made
        if self.becomes_generator(node):
            return self.lower_generator(node)
        if tree.is_comprehension(node):  # what stays: only its first iterable runs out here
            first: Any = node.generators[0]
            first.iter = self.replaced(first.iter, skip)
            return node
        self.children(node, skip)
        return node

    def consumer(self, node: Any) -> tuple[str, str] | None:
        """Return what a call's generator expression becomes, where a built-in runs through it."""
        if type(node).__name__ != "Call" or type(node.func).__name__ != "Name" or not node.args:
            return None
        name = node.func.id
        if type(node.args[0]).__name__ != "GeneratorExp" or self.scope.resolve(name) is not None:
            return None
        if name == "next" and (self.scope.resolve("iter") is not None or not _is_plain(node.args[1:])):
            return None
        return _CONSUMERS.get(name)

    def becomes_generator(self, node: Any) -> bool:
        """Return whether a node is a generator expression that can be a function which yields."""
        if type(node).__name__ != "GeneratorExp" or node in self.context.native:
            return False
        return not any(generator.is_async for generator in node.generators) and not _walruses(node)

    def lower_generator(self, node: Any) -> Any:
        """Return the call of a generator that takes the place of a generator expression."""
        context = self.context
        items, name = context.variable("items"), context.function("generator", shared=False)
        body = templates.statements(node, "yield ELT", ELT=node.elt)
        loops = _loops(node, body, items)
        made = templates.statement(node, "def NAME(ITEMS):\n    LOOPS", NAME=name, ITEMS=items, LOOPS=loops)
        keep_native.transform(generators.split(made, context), context)
        first = self.replaced(node.generators[0].iter, set())
        self.blocks(made)
        self.before.append(made)
        return templates.expression(node, "NAME(FIRST)", NAME=name, FIRST=first)

    def lower(self, node: Any, empty: str, store: str) -> Any:
        context, kind = self.context, type(node).__name__
        result = context.variable("result")
        values: dict[str, Any] = {"RESULT": result} if "RESULT" in store else {}
        if kind == "DictComp":
            values |= {"KEY": node.key, "VALUE": node.value, "KEY_NAME": context.variable("key")}
        else:
            values["ELT"] = node.elt
        items = context.variable("items")
        walrus = [name.target.id for name in _walruses(node)]
        nonlocals, globals_ = _declared(list(dict.fromkeys(walrus)), self.scope)
        body = templates.statements(node, store, **values)
        name = context.function("comprehension", shared=False)
        made = templates.statement(
            node,
            "def NAME(ITEMS):\n    nonlocal NONLOCALS\n    global GLOBALS\n"
            "    RESULT = EMPTY\n    LOOPS\n    return RESULT",
            NAME=name,
            ITEMS=items,
            NONLOCALS=nonlocals,
            GLOBALS=globals_,
            RESULT=result,
            EMPTY=templates.expression(node, empty),
            LOOPS=_loops(node, body, items),
        )
        context.comprehensions[name] = made
        first = self.replaced(node.generators[0].iter, set())
        self.blocks(made)
        self.before.append(made)
        return templates.expression(node, "NAME(FIRST)", NAME=name, FIRST=first)


def _loops(node: Any, body: list[Any], items: str) -> list[Any]:
    """Return the loops of a comprehension around what each iteration does; the outermost runs over `items`."""
    generators: list[Any] = node.generators
    for iteration, generator in reversed(list(enumerate(generators))):
        for test in reversed(generator.ifs):
            body = templates.statements(test, "if TEST:\n    BODY", TEST=test, BODY=body)
        source = generator.iter if iteration else templates.name(generator.iter, items)
        body = templates.statements(
            generator.target, "for TARGET in ITEMS:\n    BODY", TARGET=generator.target, ITEMS=source, BODY=body
        )
    return body


def _is_plain(expressions: list[Any]) -> bool:
    """Return whether expressions may be evaluated behind others: names and constants."""
    return all(type(getattr(part, "operand", part)).__name__ in _PLAIN for part in expressions)


def _walruses(node: Any) -> list[Any]:
    """List the assignment expressions of a comprehension, which assign around it."""
    return [name for part in parts_inside(node) for name in own(part) if type(name).__name__ == "NamedExpr"]


def _declared(names: list[str], scope: Scope) -> tuple[list[str], list[str]]:
    """Split names into those that a function inside declares nonlocal, and global."""
    outer = [name for name in names if name in scope.globals]
    return [name for name in names if name not in outer], outer
