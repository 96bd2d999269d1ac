"""Count what says something of ops by their names outside of `dy2st/ops`, where one class should say all of an op.

    python tests/counts.py          both numbers, and the files that have most
    python tests/counts.py --all    every table and comparison, with its line

A table is a collection of at least two names (or classes) of ops that a module or a class keeps. A comparison is a test
of a name against the literal name of an op: `==`, `in`, a `case`, a prefix. `tests/test_counts.py` holds the numbers.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dy2st import ops
from dy2st.ir.opdef import REGISTRY

ROOT = Path(__file__).parents[1]
OPS = ROOT / "dy2st" / "ops"
assert ops.__file__  # importing it fills the registry

# Modules whose names are names of something else that an op is called like, and what they are.
OTHER_NAMES = {
    "dy2st/shapes.py": "functions of extents",
    "dy2st/ir/traits.py": "ways to combine",
    "dy2st/functions/inplace.py": "public functions",
    "dy2st/nn/clip.py": "settings",
    "dy2st/paddle_files/legacy.py": "operators of PaddlePaddle's files",
    "dy2st/runtime/tracer/builtins/builtins.py": "Python's functions",
    "dy2st/runtime/tracer/builtins/container_methods.py": "methods of Python's containers",
    "dy2st/runtime/backends/cpu/libm/core/emitter.py": "instructions of LLVM",
    "dy2st/runtime/backends/cpu/libm/core/double_double_emitter.py": "instructions of LLVM",
}


@dataclass(frozen=True)
class Found:
    """A table or a comparison."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text}"


@cache
def names() -> frozenset[str]:
    """The names of all ops, and of their classes."""
    return frozenset(REGISTRY) | {type(op).__name__ for op in REGISTRY.values()}


@cache
def tables() -> tuple[Found, ...]:
    """Find the tables of op names."""
    return tuple(Found(path, line, text) for path, tree in _trees() for line, text in tables_of(tree))


@cache
def comparisons() -> tuple[Found, ...]:
    """Find the comparisons with literal op names."""
    return tuple(Found(path, line, text) for path, tree in _trees() for line, text in comparisons_of(tree))


def tables_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each table in one module."""
    classes = [inner for node in tree.body if isinstance(node, ast.ClassDef) for inner in node.body]
    for node in [*tree.body, *classes]:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if target.startswith("(") or target == "__all__":  # handles of ops, each with a name of its own
            continue
        words = list(_words(node.value))
        told = [word for word in words if word in names()]
        if len(told) >= 2 and 2 * len(told) >= len(words):
            yield node.lineno, f"{target}: {' '.join(told[:6])}"


def comparisons_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comparison in one module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            literal = [s for s in sides if isinstance(s, ast.Constant | ast.Tuple | ast.List | ast.Set)]
            if any(w in REGISTRY for s in literal for w in _words(s)) and any(_is_name(s) for s in sides):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Match) and _is_name(node.subject):
            for case in node.cases:
                if any(word in REGISTRY for word in _words(case.pattern)):
                    yield case.pattern.lineno, f"case {ast.unparse(case.pattern)}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            if _is_name(node.func.value) and any(n.startswith(w) for w in _words(node) for n in REGISTRY):
                yield node.lineno, ast.unparse(node)


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "dy2st").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if OPS not in path.parents and name not in OTHER_NAMES:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _words(tree: ast.AST) -> Iterator[str]:
    """Yield the strings below a node, those of `"a b".split()` one by one, and the names of classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split() or [node.value]
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in names() and name not in REGISTRY:
                yield name


def _is_name(side: ast.expr) -> bool:
    """Say whether an expression can be the name of an op: `operation.name`, `name`, but not `dtype.name` or `mode`."""
    if isinstance(side, ast.Attribute) and side.attr in ("name", "op"):
        return not ast.unparse(side.value).endswith("dtype")
    return isinstance(side, ast.Name) and side.id in ("name", "op")


def main() -> None:
    """Print what is found."""
    for title, found in (("tables", tables()), ("comparisons", comparisons())):
        if "--all" in sys.argv:
            print(*found, sep="\n")
        else:
            for path, count in Counter(one.path for one in found).most_common(12):
                print(f"{count:5} {path}")
        print(f"{len(found)} {title}\n")


if __name__ == "__main__":
    main()
