"""Templates refuse what does not fit, and keep the user's places."""

import pytest

from dy2st.pysrc import templates, tree, unparse

PLACE = tree.parse("\n\n     \nx = (y +\n z)")[0]


def test_missing_value() -> None:
    with pytest.raises(ValueError, match="template placeholder TEST has no value"):
        templates.statements(PLACE, "if TEST: pass")


def test_unused_value() -> None:
    with pytest.raises(ValueError, match="template has no placeholder OTHER"):
        templates.statements(PLACE, "pass", OTHER="x")


def test_generated_nodes_get_the_place_and_inserted_ones_keep_theirs() -> None:
    (inner,) = tree.parse("\n\n\n\n\n\n\ndeep")
    made = templates.statement(PLACE, "f(VALUE)", VALUE=inner.value)  # pyright: ignore[reportAttributeAccessIssue]
    assert (made.lineno, made.value.func.lineno, made.value.args[0].lineno) == (4, 4, 8)


def test_lists_names_and_targets() -> None:
    value = tree.parse("a.b, c")[0].value  # pyright: ignore[reportAttributeAccessIssue]
    made = templates.statements(
        PLACE, "def F(A):\n    nonlocal N\n    global G\n    T = f(*XS)\n    BODY", F="g", A="p", N=["q"], G=[],
        T=value, XS=[templates.literal(PLACE, (1, "s"))], BODY=tree.parse("return 1"),
    )  # fmt: skip
    assert unparse.plain(made[0]) == "def g(p):\n    nonlocal q\n    a.b, c = f((1, 's'))\n    return 1"
