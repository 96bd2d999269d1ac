"""Make a program that differs small: statements are left out, bodies put in place of what holds them, expressions in
place of what they are part of, as long as the program still differs.

A candidate runs in a process of its own (it may crash), in the way in which the program was found.
"""

import ast
import contextlib
import itertools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.generator.outcomes import Call, calls_of, difference
from tests.generator.statements import program_of
from tests.generator.ways import Way, environment

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0
"""So long a program is made smaller."""
TOGETHER = 8
"""So many candidates are tried in one process."""


def shrink(seed: int, way: Way, seconds: float = SECONDS) -> str:
    """Return the smallest program found that still differs, with how it does; empty where the whole does not alone."""
    text, end = program_of(seed), time.monotonic() + seconds
    kind, told = differing([text], seed, way)[0]
    while kind and time.monotonic() < end:
        smaller = _first_of_kind(text, kind, seed, way, end)
        if smaller is None:
            break
        text, told = smaller
    return told


def _first_of_kind(text: str, kind: str, seed: int, way: Way, end: float) -> tuple[str, str] | None:
    """Return the first smaller program that differs in the same way, and how."""
    candidates = smaller_programs(text)
    while time.monotonic() < end and (some := list(itertools.islice(candidates, TOGETHER))):
        for candidate, found in zip(some, differing(some, seed, way), strict=True):
            if found[0] == kind:
                return candidate, found[1]
    return None


def differing(texts: list[str], seed: int, way: Way) -> list[tuple[str, str]]:
    """Return the kind of the difference of each program, at the calls of that seed, and its text; empty where none."""
    folder = tempfile.mkdtemp(prefix="dy2st-shrinking-")
    command = [sys.executable, "-m", "tests.generator.shrinking", str(seed)]
    variables = environment(way, str(Path(folder) / "cache"))
    given = json.dumps(texts)
    try:
        for _ in range(2 if way.after else 1):  # the second process finds the cache of the first
            done = subprocess.run(command, cwd=ROOT, env=variables, input=given, capture_output=True, text=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    if len(told) < len(texts):
        told.append((f"died {done.returncode}", f"the process ended with {done.returncode}\n{texts[len(told)]}"))
    return [*told, *[("", "")] * (len(texts) - len(told))]


def smaller_programs(text: str) -> Iterator[str]:
    """Yield programs that are smaller by one step: first with a statement less, then with a smaller expression."""
    for kind in (_Statements, _Expressions):
        step = 0
        while True:
            change = kind(step)
            tree = ast.fix_missing_locations(change.visit(ast.parse(text)))
            if not change.done:
                break
            with contextlib.suppress(SyntaxError, ValueError):  # a step that leaves no program
                candidate = ast.unparse(tree) + "\n"
                ast.parse(candidate)
                if "def program(" in candidate and len(candidate) < len(text):
                    yield candidate
            step += 1


class _Steps(ast.NodeTransformer):
    """Applies the step of a number, in the order in which nodes are met."""

    def __init__(self, step: int) -> None:
        self._left = step
        self.done = False

    def is_turn(self) -> bool:
        """Return whether this is the step to apply."""
        if self.done:
            return False
        self.done = self._left == 0
        self._left -= 1
        return self.done


class _Statements(_Steps):
    """Leaves a statement out, or puts its body in its place."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("body", "orelse", "finalbody"):
            lines = getattr(node, name, None)
            if isinstance(lines, list) and not self.done:
                setattr(node, name, self._fewer(lines, may_be_empty=name == "orelse"))
        return node if self.done else super().generic_visit(node)

    def _fewer(self, lines: list[ast.stmt], *, may_be_empty: bool) -> list[ast.stmt]:
        for k, line in enumerate(lines):
            if self.is_turn():
                kept = [*lines[:k], *lines[k + 1 :]]
                return kept or ([] if may_be_empty else [ast.Pass()])
            for inner in ("body", "orelse"):
                if isinstance(line, ast.stmt) and getattr(line, inner, None) and self.is_turn():
                    return [*lines[:k], *getattr(line, inner), *lines[k + 1 :]]
        return lines


class _Expressions(_Steps):
    """Puts a part of an expression in its place, or leaves out an element."""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Tuple) and len(node.elts) > 1:
            for k in range(len(node.elts)):
                if self.is_turn():
                    return ast.Tuple([*node.elts[:k], *node.elts[k + 1 :]], node.ctx)
        if isinstance(node, (ast.BinOp, ast.Call, ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Subscript)):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr) and self.is_turn():
                    return part
        return node if self.done else super().visit(node)


def main() -> None:
    """Read programs; write for each of what kind its difference is, and the difference."""
    out, sys.stdout = sys.stdout, sys.stderr
    calls = calls_of(int(sys.argv[1]))
    for text in json.load(sys.stdin):
        signal.alarm(30)  # ends the process
        print(json.dumps(_told(text, calls)), file=out, flush=True)


def _told(text: str, calls: Sequence[Call]) -> tuple[str, str]:
    try:
        found = difference(text, calls)
    except Exception as error:
        return type(error).__name__, f"{type(error).__name__}: {error}\n{text}"
    if found is None or "refused" in found.static:
        return "", ""
    return " ".join(found.kind), str(found)


if __name__ == "__main__":
    main()
