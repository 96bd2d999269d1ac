"""What can be changed in a source file, one change at a time: each is a rule that some test should hold.

sign        `+` and `-`, `neg` left out, and the ops `add` and `sub`, `max` and `min`, `gt` and `lt` exchanged
bound       `<` and `<=`, `>` and `>=`, an integer constant one larger
guard       an `if` that raises or returns early left out, a condition turned round, `and` for `or`
constant    `True` for `False`, a default argument of another truth
effect      a call whose result nobody takes left out
part        an element of a tuple or list of names left out

Left alone is what says or costs something and decides nothing (`_is_no_rule`):

1. Texts: docstrings, annotations, f-strings, `__repr__`, what a `raise` or a warning says; exported names; the samples
   of ops and the `domain` that they are taken from, which are data of tests.
2. What only chooses the quicker of two right ways. By the names that the code gives it: functions of cost, worth and
   pay; integers of the module with COST, MOST, LEAST, SMALL or the like in their names; and whether exactly such a
   number of something is still few. Arguments of `cache` and calls of `prefetch` likewise. That the choice is taken
   at all stays a rule.
3. `strict`, `frozen`, `slots`: they say what is so anyhow.
"""

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

EXCHANGED_OPS = {
    "add": "sub", "sub": "add", "max": "min", "min": "max", "gt": "ge", "ge": "gt", "lt": "le", "le": "lt",
    "sin": "cos", "cos": "sin", "mul": "div", "div": "mul", "logical_and": "logical_or", "logical_or": "logical_and",
    "scalar_add": "scalar_sub", "scalar_sub": "scalar_add", "zeros_like": "ones_like", "ones_like": "zeros_like",
}  # fmt: skip
EXCHANGED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SPEED = re.compile(r"cost|worth|pays|quick|cheap")
THRESHOLD = re.compile(
    r"_?[A-Z_]*(COST|MOST|LEAST|SMALL|SHORT|LARGE|FAR|ENOUGH|MANY|FEW|CHUNK|EVERY|KEPT|SIZE|LONG)[A-Z_]*"
)
NUMBER = re.compile(r"_?[A-Z][A-Z_]+")
SAID = ("warn", "warn_once", "cache", "lru_cache", "TypeVar", "ParamSpec")
HINTS = ("prefetch",)
CHECKS = ("strict", "frozen", "slots", "repr")
_TOLD = 24
"""So long a change needs no line to be known by."""
TEXTS = ("__repr__", "__str__", "__all__", "samples", "_examples", "domain")


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    kind: str
    line: int
    function: str
    """The function around it."""
    text: str
    """The line."""
    lines: tuple[int, int]
    """The first and last line of what a test must run to notice it."""
    before: str
    after: str
    source: str
    """The whole file with the change."""
    subject: str = ""
    """The outermost function or class around it as the ids of tests write it: `adaptive_avg_pool`."""

    def name(self, path: Path) -> str:
        """Return what the change is called, wherever the line stands."""
        place = f", in {self.text}" if len(self.before) < _TOLD else ""
        return f"{path} {self.function}: {self.before} -> {self.after}{place}"


def one_of(source: str, choose: Callable[[int], int]) -> Mutant | None:
    """Return a change of a file; `choose(n)` gives a number below n. None where there is none."""
    tree = ast.parse(source)
    changes = [*_all(tree)]
    while changes:
        made = _mutant(source, tree, *changes.pop(choose(len(changes))))
        if made is not None:
            return made
    return None


def named(source: str, path: Path, name: str) -> Mutant | None:
    """Return the change of a file that is called so; None where the code is another by now."""
    tree = ast.parse(source)
    made = (_mutant(source, tree, *change) for change in _all(tree))
    return next((one for one in made if one is not None and one.name(path) == name), None)


def _all(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[int, int], str, ast.AST]]:
    for node, lines in _rules(tree, (1, 1)):
        for kind, replacement in _changes(node):
            yield node, lines, kind, replacement


def _mutant(
    source: str, tree: ast.Module, node: ast.AST, lines: tuple[int, int], kind: str, by: ast.AST
) -> Mutant | None:
    made = _replaced(source, node, by)
    if made is None:
        return None
    line: int = node.lineno  # type: ignore[attr-defined]
    text = source.splitlines()[line - 1].strip()
    after = "(left out)" if isinstance(by, ast.Pass) else _first_line(ast.unparse(by))
    around = _around(tree, line)
    subject = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", around[0]).lower().strip("_") if around else ""
    function = around[-1] if around else "the module"
    return Mutant(kind, line, function, text, lines, _first_line(ast.unparse(node)), after, made, subject)


def _rules(node: ast.AST, lines: tuple[int, int]) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """Yield the nodes that decide something, each with the lines that are run for it."""
    if _is_no_rule(node):
        return
    yield node, (_span(node.body[0]) if isinstance(node, ast.If) else lines)
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and name not in ("annotation", "returns"):
                yield from _rules(part, _run_for(part, node, lines))


def _run_for(node: ast.AST, parent: ast.AST, lines: tuple[int, int]) -> tuple[int, int]:
    """Return the lines that are run for what a node says: all of a class for its body, of a function for its head."""
    if not isinstance(node, ast.stmt):
        return lines
    body = getattr(node, "body", None)
    if isinstance(parent, ast.ClassDef) and not body:
        return _span(parent)
    if body and not isinstance(node, ast.FunctionDef):
        return node.lineno, max(node.lineno, body[0].lineno - 1)
    return _span(node)


def _span(node: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement. Where nothing runs what is below an `if`, leaving that out changes nothing."""
    return node.lineno, node.end_lineno or node.lineno


def _is_no_rule(node: ast.AST) -> bool:
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name in TEXTS or bool(SPEED.search(node.name))
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg in CHECKS
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _name(node.value.func) in HINTS
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in SAID
    if isinstance(node, ast.Assign):
        name = ast.unparse(node.targets[0])
        return name in TEXTS or bool(THRESHOLD.fullmatch(name))
    return False


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the kind of each change of a node and what stands in its place."""
    if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in EXCHANGED and not _is_text(node):
        kind = "guard" if isinstance(node, ast.BoolOp) else "sign"
        yield kind, _with(node, op=EXCHANGED[type(node.op)]())
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in EXCHANGED:
        is_bound = isinstance(node.ops[0], BOUNDS)
        if not (is_bound and any(NUMBER.fullmatch(_name(side)) for side in (node.left, *node.comparators))):
            yield "bound" if is_bound else "guard", _with(node, ops=[EXCHANGED[type(node.ops[0])]()])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield ("guard" if isinstance(node.op, ast.Not) else "sign"), node.operand
    if isinstance(node, ast.If):
        if isinstance(node.body[-1], (ast.Raise, ast.Return, ast.Continue)) and not node.orelse:
            yield "guard", ast.Pass()
    if isinstance(node, ast.Constant):
        yield from _constants(node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "effect", ast.Pass()
    if isinstance(node, (ast.Tuple, ast.Set)) and len(node.elts) > 2 and all(map(_is_name, node.elts)):
        yield "part", _with(node, elts=node.elts[:-1])


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "bound", ast.Constant(value + 1)
    elif isinstance(value, str) and value in EXCHANGED_OPS:
        yield "sign", ast.Constant(EXCHANGED_OPS[value])


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_text(node: ast.AST) -> bool:
    return any(isinstance(part, ast.JoinedStr) or _is_name(part) for part in ast.walk(node))


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replaced(source: str, node: ast.AST, replacement: ast.AST) -> str | None:
    """Return the source with the text of one node exchanged; None where that is no Python."""
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    text = "pass" if isinstance(replacement, ast.Pass) else ast.unparse(replacement)
    if isinstance(replacement, ast.expr) and not isinstance(replacement, (ast.Constant, ast.Name, ast.Tuple)):
        text = f"({text})"
    head = lines[first].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    tail = lines[last].encode()[node.end_col_offset :].decode()  # type: ignore[attr-defined]
    made = "".join([*lines[:first], head + text + tail, *lines[last + 1 :]])
    try:
        same = ast.dump(ast.parse(made)) == ast.dump(ast.parse(source))
    except SyntaxError:
        return None
    return None if same else made


def _around(tree: ast.Module, line: int) -> list[str]:
    """Return the names of the functions and classes around a line, the innermost last."""
    above = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.lineno <= line]
    return [n.name for n in sorted(above, key=lambda n: n.lineno) if (n.end_lineno or 0) >= line]


def _first_line(text: str) -> str:
    return text.splitlines()[0][:90]
