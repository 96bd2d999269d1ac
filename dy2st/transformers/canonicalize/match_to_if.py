"""`match` becomes `if`s. Values, `None`/`True`/`False`, captures, `|` of values, and guards are compared one by one.

>>> from dy2st.transformers.preview import preview
>>> print(preview('''
... def f(x):
...     match x:
...         case 1 | 2:
...             return 'few'
...         case n if n > 9:
...             return 'many'
... ''', "matches"))
def f(x):
    _subject = x
    if _subject == 1 or _subject == 2:
        return 'few'
    else:
        n = _subject
        if n > 9:
            return 'many'

Sequences, mappings and classes are matched by Python, in a function that the helper asks for each thing that the
subject may be; only the bodies, and values inside of patterns, become `if`s. The helper is told how many items the
pattern takes from the front of a sequence, and from its back behind a star:

>>> print(preview('''
... def f(x):
...     match x:
...         case [a, b]:
...             return a + b
... ''', "matches"))
def f(x):
    _subject = x
    def _match(_here):
        match _here:
            case [a, b]:
                return (True, a, b)
            case _:
                return (False, _dy.undefined('a'), _dy.undefined('b'))
    _found = _dy.match(_match, _subject, (2, 0))
    if _found[0]:
        a = _found[1]
        b = _found[2]
        return a + b
"""

from __future__ import annotations

import ast
from typing import Any

from dy2st.pysrc import origin, templates, tree
from dy2st.pysrc.scopes import bound
from dy2st.transformers.core.context import Context


def transform(root: Any, context: Context) -> None:
    """Replace every `match` outside of class bodies' own statements."""
    _Matches(context).blocks(root)


class _Matches:
    def __init__(self, context: Context):
        self.context = context

    def blocks(self, node: Any) -> None:
        for owner, field in tree.blocks(node):
            setattr(owner, field, [made for stmt in getattr(owner, field) for made in self.statement(stmt)])

    def statement(self, node: Any) -> list[Any]:
        if type(node).__name__ == "ClassDef":
            for method in tree.methods(node):
                self.blocks(method)
            return [node]
        self.blocks(node)
        return self.lower(node) if type(node).__name__ == "Match" else [node]

    def lower(self, node: Any) -> list[Any]:
        subject = self.context.variable("subject")
        first = templates.statements(node.subject, "SUBJECT = VALUE", SUBJECT=subject, VALUE=node.subject)
        return first + self.chain(node.cases, subject)

    def chain(self, cases: list[Any], subject: str) -> list[Any]:
        """Lower the first case, with the others where it does not match."""
        if not cases:
            return []
        case, rest = cases[0], self.chain(cases[1:], subject)
        spot = origin.place(case.pattern)
        if (simple := _simple(case.pattern, subject)) is None:
            asked, test, captures = self.by_python(case, subject, spot)
            return [*asked, *self.tested(case, test, captures, rest, spot)]
        test, captures = simple
        if test is None and case.guard is None:
            return [*captures, *case.body]
        if test is None:
            return [*captures, _if(spot, case.guard, case.body, rest)]
        if case.guard is None:
            return [_if(spot, test, [*captures, *case.body], rest)]
        if not captures:
            both = templates.expression(spot, "TEST and GUARD", TEST=test, GUARD=case.guard)
            return [_if(spot, both, case.body, rest)]
        return self.tested(case, test, captures, rest, spot)

    def tested(self, case: Any, test: Any, captures: list[Any], rest: list[Any], spot: origin.SourceSpan) -> list[Any]:
        """Lower a case with a test and captures, which the guard may read."""
        if case.guard is None:
            return [_if(spot, test, [*captures, *case.body], rest)]
        matched = self.context.variable("matched")
        found = templates.statements(
            spot,
            "MATCHED = False\nif TEST:\n    CAPTURES\n    MATCHED = GUARD",
            MATCHED=matched,
            TEST=test,
            CAPTURES=captures,
            GUARD=case.guard,
        )
        return [*found, _if(spot, templates.name(spot, matched), case.body, rest)]

    def by_python(self, case: Any, subject: str, spot: origin.SourceSpan) -> tuple[list[Any], Any, list[Any]]:
        """Let Python match; return what asks it, the test, and the captures."""
        here, found = self.context.variable("here"), self.context.variable("found")
        own = bound(case.pattern)
        values = self.values_apart(case.pattern)
        names = [*own, *values]
        unset = [self.ask(spot, "DY.undefined(NAME)", NAME=templates.literal(spot, name)) for name in names]
        made = templates.statement(
            spot,
            "def ASK():\n"
            "    match HERE:\n"
            "        case 0:\n            return (True, *NAMES)\n"
            "        case _:\n            return (False, *UNSET)",
            ASK=self.context.function("match"),
            HERE=here,
            NAMES=[templates.name(spot, name) for name in names],
            UNSET=unset,
        )
        made.args.args = [templates.name(spot, here, "Param")]
        made.body[0].cases[0].pattern = case.pattern
        ask = templates.name(spot, self.context.function("match"))
        ends = _ends(case.pattern)
        if ends is None:
            asked = self.ask(spot, "DY.match(ASK, SUBJECT)", ASK=ask, SUBJECT=subject)
        else:
            counts = templates.literal(spot, ends)
            asked = self.ask(spot, "DY.match(ASK, SUBJECT, ENDS)", ASK=ask, SUBJECT=subject, ENDS=counts)
        captures: list[Any] = []
        start = templates.statements(spot, "FOUND = ASKED", FOUND=found, ASKED=asked)
        for i, name in enumerate(names, 1):
            taken = templates.statements(
                spot, "NAME = FOUND[AT]", NAME=name, FOUND=found, AT=templates.literal(spot, i)
            )
            (captures if name in own else start).extend(taken)
        tests = [test for test, _ in filter(None, (_simple(values[name], name) for name in values))]
        first = templates.expression(spot, "FOUND[0]", FOUND=found)
        return [made, *start], _all(spot, [first, *tests]), captures

    def values_apart(self, pattern: Any) -> dict[str, Any]:
        """Let captures stand for the values in a pattern, which are compared afterwards; return what each stands for.

        Only the run may tell a value, and Python compares at once. What stands in `|` stays, but for values alone.
        """
        values: dict[str, Any] = {}
        if type(pattern).__name__ == "MatchOr":
            return values

        def apart(part: Any) -> Any:
            if part is None or not _is_value(part):
                values.update({} if part is None else self.values_apart(part))
                return part
            name = self.context.variable("part")
            values[name] = part
            capture = tree.new("MatchAs", pattern=None, name=name)
            origin.put(capture, part)
            return capture

        for field in ("patterns", "kwd_patterns"):
            parts: list[Any] = getattr(pattern, field, [])
            parts[:] = map(apart, parts)
        if type(pattern).__name__ == "MatchAs":
            pattern.pattern = apart(pattern.pattern)
        return values

    def ask(self, spot: origin.SourceSpan, template: str, **values: Any) -> Any:
        """Build a call of the helper, which later passes leave as it is."""
        made = templates.expression(spot, template, DY=self.context.helper, **values)
        self.context.native.update((made, made.func))
        return made


def _if(spot: origin.SourceSpan, test: Any, body: list[Any], orelse: list[Any]) -> Any:
    if not orelse:
        return templates.statement(spot, "if TEST:\n    BODY", TEST=test, BODY=body)
    return templates.statement(spot, "if TEST:\n    BODY\nelse:\n    ORELSE", TEST=test, BODY=body, ORELSE=orelse)


def _is_value(pattern: Any) -> bool:
    """Return whether a pattern is a value, or several with `|`."""
    if type(pattern).__name__ == "MatchOr":
        return all(_is_value(part) for part in pattern.patterns)
    return type(pattern).__name__ in ("MatchValue", "MatchSingleton")


def _all(spot: origin.SourceSpan, tests: list[Any]) -> Any:
    """Join tests by `and`."""
    if len(tests) == 1:
        return tests[0]
    made = templates.expression(spot, "A and B", A=tests[0], B=tests[1])
    made.values += tests[2:]
    return made


def _ends(pattern: Any) -> tuple[int, int] | None:
    """Return the most items that a pattern takes from the front of a sequence, and from its back behind a star."""
    found: list[tuple[int, int]] = []
    for node in tree.walk(pattern):
        if type(node).__name__ == "MatchSequence":
            parts: list[Any] = node.patterns
            star = next((i for i, part in enumerate(parts) if type(part).__name__ == "MatchStar"), None)
            found.append((len(parts), 0) if star is None else (star, len(parts) - star - 1))
    return (max(front for front, _ in found), max(back for _, back in found)) if found else None


def _simple(pattern: Any, subject: str) -> tuple[Any, list[ast.stmt]] | None:
    """Return the test of a pattern (None: it always matches) and its captures; None for what Python must match."""
    kind, spot = type(pattern).__name__, origin.place(pattern)
    if kind == "MatchValue":
        return templates.expression(spot, "SUBJECT == VALUE", SUBJECT=subject, VALUE=pattern.value), []
    if kind == "MatchSingleton":
        value = templates.literal(spot, pattern.value)
        return templates.expression(spot, "SUBJECT is VALUE", SUBJECT=subject, VALUE=value), []
    if kind == "MatchAs":
        always: tuple[Any, list[ast.stmt]] = (None, [])
        inner = _simple(pattern.pattern, subject) if pattern.pattern is not None else always
        if inner is None or pattern.name is None:
            return inner
        capture = templates.statements(spot, "NAME = SUBJECT", NAME=pattern.name, SUBJECT=subject)
        return inner[0], [*inner[1], *capture]
    if kind != "MatchOr":
        return None
    parts = [_simple(part, subject) for part in pattern.patterns]
    tests = [part[0] for part in parts if part is not None and part[0] is not None and not part[1]]
    if len(tests) < len(parts):
        return None
    made = templates.expression(spot, "A or B", A=tests[0], B=tests[1])
    made.values += tests[2:]
    return made, []
