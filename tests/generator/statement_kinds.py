"""The kinds of statements and expressions that a program has, read from its text."""

import ast
from collections.abc import Iterator

PLAIN: dict[type[ast.AST], str] = {
    ast.If: "if", ast.While: "while", ast.For: "for", ast.Match: "match", ast.Break: "break",
    ast.Continue: "continue", ast.Return: "return", ast.Raise: "raise", ast.Assert: "assert", ast.Delete: "delete",
    ast.Nonlocal: "nonlocal", ast.Global: "global", ast.Lambda: "lambda", ast.IfExp: "conditional",
    ast.ListComp: "list-comprehension", ast.DictComp: "dict-comprehension", ast.GeneratorExp: "generator",
    ast.NamedExpr: "walrus", ast.BoolOp: "and-or", ast.JoinedStr: "f-string", ast.Starred: "starred",
    ast.AugAssign: "augmented",
}  # fmt: skip
TARGETS: dict[type[ast.AST], str] = {ast.Attribute: "attribute", ast.Subscript: "item", ast.Tuple: "unpacked"}
CALLED = ("print", "append", "pop", "grad", "isinstance", "hasattr", "sorted", "map", "zip", "enumerate", "Point")
KINDS = (
    *PLAIN.values(), *TARGETS.values(), *CALLED, "in-place", "chained", "loop-else", "nested-loop", "return-in-loop",
    "raise-in-loop", "while-in-branch", "try-except", "try-finally", "no_grad", "manager", "function", "view",
)  # fmt: skip


def kinds_of(text: str) -> set[str]:
    """Return the kinds of a program; those of KINDS, and no others."""
    program = ast.parse(text).body[0]
    assert isinstance(program, ast.FunctionDef)
    return {kind for line in program.body[:-1] for kind in _kinds(line, frozenset())}


def _kinds(node: ast.AST, around: frozenset[str]) -> Iterator[str]:
    own = set(_of_node(node))
    yield from own
    loops, leaves = own & {"while", "for"}, own & {"return", "raise"}
    if "loop" in around:
        yield from (f"{name}-in-loop" for name in leaves)
        yield from ["nested-loop"] * bool(loops)
    if "branch" in around and "while" in own:
        yield "while-in-branch"
    inside = around | ({"loop"} if loops else set()) | ({"branch"} if own & {"if", "match"} else set())
    for child in ast.iter_child_nodes(node):
        yield from _kinds(child, inside)


def _of_node(node: ast.AST) -> Iterator[str]:
    """Yield what one node is."""
    if type(node) in PLAIN:
        yield PLAIN[type(node)]
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        yield "loop-else"
    if isinstance(node, ast.Try):
        yield from ["try-except"] * bool(node.handlers) + ["try-finally"] * bool(node.finalbody)
    if isinstance(node, ast.With):
        yield "no_grad" if "no_grad" in ast.unparse(node.items[0]) else "manager"
    if isinstance(node, ast.FunctionDef):
        yield "function"
    if isinstance(node, ast.Assign):
        yield from (TARGETS[type(target)] for target in node.targets if type(target) in TARGETS)
        yield from ["chained"] * (len(node.targets) > 1)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield "view"
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        yield from [name] * (name in CALLED) + ["in-place"] * name.endswith("_")
