"""What is said of the tracer without types only becomes less: numbers here go down, never up."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dy2st.runtime.tracer.values import abstract, shared_objects
from dy2st.runtime.tracer.values.abstract_value import AbstractValue

ROOT = Path(__file__).parents[1]
MOST_UNTYPED = 5
"""The context's trace, which stands below all that a trace is made of; recorders of views and of static variables."""
MOST_CHECKS_OF_VARIANTS = 115
MOST_CHECKS_OF_TEMPLATES = 160
CLASSES = {**vars(abstract), **vars(shared_objects)}.items()
TEMPLATES = {name for name, x in CLASSES if isinstance(x, type) and issubclass(x, AbstractValue)}


@cache
def trees() -> dict[str, ast.Module]:
    paths = sorted((ROOT / "dy2st").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def untyped(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of parameters that are a trace, a part of one or a builder, of any type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in ("trace", "recorder", "builder", "log", "loans", "aliases"):
            if isinstance(node.annotation, ast.Name) and node.annotation.id == "Any":
                yield node.lineno


def checks(tree: ast.Module, classes: set[str]) -> Iterator[int]:
    """Yield the lines of `isinstance(x, ...)` that names one of the classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            if any(isinstance(part, ast.Name) and part.id in classes for part in ast.walk(node.args[1])):
                yield node.lineno


def test_no_trace_without_a_type() -> None:
    found = [f"{path}:{line}" for path, tree in trees().items() for line in untyped(tree)]
    assert len(found) <= MOST_UNTYPED, "name its type (Trace, ValueTrace, Recording) in:\n" + "\n".join(found)


def test_no_new_check_of_what_an_abstract_value_is() -> None:
    variants = [f"{path}:{line}" for path, tree in trees().items() for line in checks(tree, {"Variant"})]
    templates = [f"{path}:{line}" for path, tree in trees().items() for line in checks(tree, TEMPLATES)]
    assert len(variants) <= MOST_CHECKS_OF_VARIANTS, "a method in place of:\n" + "\n".join(variants)
    assert len(templates) <= MOST_CHECKS_OF_TEMPLATES, "a method in place of:\n" + "\n".join(templates)


def test_the_rules_themselves() -> None:
    tree = ast.parse("def f(trace: Any, builder: Builder, x: Any):\n    return isinstance(x, (Variant, Items))\n")
    assert list(untyped(tree)) == [1]
    assert list(checks(tree, {"Variant"})) == list(checks(tree, TEMPLATES)) == [2]
