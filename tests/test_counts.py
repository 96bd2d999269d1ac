"""What is said of ops outside of their classes only becomes less: numbers here go down, never up."""

import ast

from tests import counts

MOST_TABLES = 9
MOST_COMPARISONS = 57


def test_no_new_table_of_op_names() -> None:
    found = counts.tables()
    assert len(found) <= MOST_TABLES, "a trait of the op class in place of:\n" + "\n".join(map(str, found))


def test_no_new_comparison_with_the_name_of_an_op() -> None:
    found = counts.comparisons()
    assert len(found) <= MOST_COMPARISONS, "a trait of the op class in place of:\n" + "\n".join(map(str, found))


def test_the_rules_themselves() -> None:
    tree = ast.parse(
        "A = ('add', 'mul')\nB = frozenset('add mul'.split())\nC = {'one': 1, 'add': 2, 'two': 3}\n"
        "D, E = op('add'), op('mul')\nF = (Add, Mul)\n"
        "if o.op.name == 'add' or name in ('a', 'mul') or dtype.name == 'add' or mode == 'mean': ...\n"
        "if o.name.startswith('scalar_'): ...\n"
        "match o.op.name:\n    case 'add' | 'mul': ...\n"
    )
    assert [text for _, text in counts.tables_of(tree)] == ["A: add mul", "B: add mul", "F: Add Mul"]
    assert sorted(line for line, _ in counts.comparisons_of(tree)) == [6, 6, 7, 9]
