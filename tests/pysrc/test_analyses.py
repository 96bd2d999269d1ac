"""Scopes, definite assignment and liveness on small functions."""

from typing import Any

import pytest

from dy2st.pysrc import tree, unparse
from dy2st.pysrc.definite import Definite, entry_states
from dy2st.pysrc.liveness import Liveness
from dy2st.pysrc.scopes import Scopes, bound


def parsed(text: str) -> tuple[Any, Scopes]:
    (root,) = tree.parse(text)
    assert tree.is_function(root)
    return root, Scopes(root)


def doubtful(text: str) -> list[str]:
    _, scopes = parsed(text)
    return [f"{node.id}:{node.lineno}" for node in Definite(scopes, scopes.root).unproven]  # pyright: ignore[reportAttributeAccessIssue]


def test_what_a_block_binds_in_order() -> None:
    text = "import a.b, c as d\nfor (e, *f) in g: h += 1\ndef i(): j = 1\nclass k: l = 1\n[m for m in n if (o := m)]"
    text += "\nwith p as q: del r\ntry: pass\nexcept s as t: pass\nmatch u:\n    case [v, *w] | {**w}: pass"
    assert bound(tree.parse(text)) == list("adefhikoqrtvw")


def test_scopes_follow_python() -> None:
    root, scopes = parsed(
        "def f(a):\n    b = 1\n    def g():\n        nonlocal b\n        global c\n        b = c = a\n"
        "    h = [x for x in a if (w := x)]\n    k = (y for y in b)\n    del h"
    )
    top = scopes.root
    assert list(top.local) == ["a", "b", "g", "h", "w", "k"]
    assert (scopes.captured[top], scopes.rebound[top], scopes.deleted[top]) == ({"a", "b"}, {"b"}, {"h"})
    assert root in scopes.of


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("if a: x = 1\nx", ["x:3"]),
        ("if a: x = 1\nelse: x = 2\nx", []),
        ("if a: x = 1\nelse: raise E\nx", []),
        ("while True:\n  x = 1\n  if a: break\nx", []),
        ("while a:\n  x = 1\nx", ["x:4"]),
        ("for x in a: pass\nelse: x = 1\nx", []),
        ("for i in a:\n  if i: x = 1; break\nelse: x = 2\nx", []),
        ("try: x = f()\nexcept E: x = 1\nx", []),
        ("try: x = f()\nexcept E: pass\nx", ["x:4"]),
        ("try: y\nfinally: x = 1\nx", []),
        ("try: pass\nexcept E as e: e\ne", ["e:4"]),
        ("with a: x = 1\nx", ["x:3"]),
        ("x = 1\ndel x\nx", ["x:4"]),
        ("a and (x := 1)\nx", ["x:3"]),
        ("(x := 1) and x\nx", []),
        ("x = 1 if a else x", ["x:2"]),
        ("x += 1", ["x:2"]),
        ("[x for i in a]\nx = 1", ["x:2"]),
        ("match a:\n  case 1: x = 1\n  case _: x = 2\nx", []),
        ("class C: v = x\nx = 1", ["x:2"]),
        ("lambda: x\nx = 1", []),
        ("x: int\nx", ["x:3"]),
    ],
)
def test_reads_that_may_find_nothing(body: str, want: list[str]) -> None:
    text = "def f(a):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    found = doubtful(text)
    assert [name for name in found if name[0] in "xe"] == want


def test_entry_states() -> None:
    root, scopes = parsed("def f(a):\n    b = 1\n    for c in a:\n        if b: d = 1\n    while a: del b")
    states = entry_states(scopes)
    assert states[root.body[1]] == {"a", "b"}
    assert states[root.body[1].body[0]] == {"a", "b", "c"}
    assert states[root.body[2]] == {"a"}


def test_liveness() -> None:
    root, scopes = parsed(
        "def f(a):\n    x = y = z = 0\n    for i in a:\n        t = i\n        x = x + t\n        y = 1\n"
        "    if x:\n        y = 2\n        z = 3\n    return y"
    )
    live = Liveness(scopes, scopes.root)
    loop, branch = root.body[1], root.body[2]
    assert live.head[loop] == {"x", "y"}
    assert live.after[branch] == {"y"}
    assert "z" not in live.before[branch]


def test_handlers_keep_variables_alive() -> None:
    root, scopes = parsed(
        "def f(a):\n    try:\n        if a:\n            x = 1\n        g()\n    except E:\n        return x"
    )
    branch = root.body[0].body[0]
    assert "x" in Liveness(scopes, scopes.root).after[branch]


def test_print_falls_back_where_astor_fails() -> None:
    (stmt,) = tree.parse("match x:\n    case [1, *_]:\n        pass")
    assert unparse.source(stmt).startswith("match x:")
    text = "try:\n    f()\nexcept* ValueError:\n    pass"
    assert unparse.source(tree.parse(text)[0]) == text


@pytest.mark.parametrize("text", ["y = f'{x!r:>{w}}'", "y = f'{{{x}}}'", "y = f'a\\n{x}'"])
def test_f_strings_print_as_they_read(text: str) -> None:
    (stmt,) = tree.parse(text)
    assert unparse.source(stmt) == text
