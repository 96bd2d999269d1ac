"""Where a function that `to_static` meets leaves the Program, as far as its source tells.

Looked at are the `forward` methods, what `to_static` decorates, and what these call by name in the same file. A value
is taken for a tensor where it comes from an argument or from one of Paddle's functions; its extents and dtype are none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dy2st.project.names import ROOTS, bindings, dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
_ARRAYS = {"numpy": "an array", "tolist": "a list"}
_DEBUGGERS = ("breakpoint", "pdb.set_trace", "ipdb.set_trace")
_NO_TENSOR = {"shape", "ndim", "dtype", "name", "stop_gradient", "place"}
_KEPT = {"math", "random", "copy", "typing", "collections", "functools", "itertools", "operator", "einops"}
"""Modules whose functions are converted, or known to a trace."""


@dataclass(frozen=True)
class Split:
    """A line where Python needs what a Program computes."""

    function: str
    line: int
    what: str


def splits(tree: ast.Module) -> Iterator[Split]:
    """Yield the lines of a file where functions leave the Program."""
    known = bindings(tree)
    for name, function in _converted(tree, known):
        tensors = _tensors(function, known)
        for node in ast.walk(function):
            what = _reason(node, tensors, known)
            if what:
                yield Split(name, getattr(node, "lineno", function.lineno), what)


def _reason(node: ast.AST, tensors: set[str], known: dict[str, str]) -> str:
    if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
        return "waits: coroutines run eagerly"
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _ARRAYS and not node.args:
        if _is_tensor(node.func.value, tensors, known):
            return f".{node.func.attr}() needs the numbers: {_ARRAYS[node.func.attr]} exists only after a run"
        return ""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    name = known.get(name, name) if name else dotted(node.func, known)
    first = name.partition(".")[0]
    if name in _DEBUGGERS:
        return f"{name}() stops in Python: the call runs eagerly"
    if name in ("eval", "exec", "input"):
        return f"{name}() runs what no trace can see"
    foreign = "." in name and first not in (*ROOTS, *_KEPT) and first in {v.partition(".")[0] for v in known.values()}
    if foreign and first in ("numpy", "scipy", "sklearn", "cv2", "PIL") and _takes(node, tensors, known):
        return f"{name}() takes a tensor: code of {first} runs on its numbers"
    return ""


def _takes(call: ast.Call, tensors: set[str], known: dict[str, str]) -> bool:
    return any(_is_tensor(a, tensors, known) for a in (*call.args, *(k.value for k in call.keywords)))


def _is_tensor(node: ast.AST, tensors: set[str], known: dict[str, str]) -> bool:
    """Return whether an expression is computed from tensors; extents and dtypes of them are not."""
    waiting: list[ast.AST] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Attribute) and one.attr in _NO_TENSOR:
            continue
        if isinstance(one, ast.Call):
            if isinstance(one.func, ast.Name) and one.func.id in ("len", "isinstance", "type", "range", "str"):
                continue
            if isinstance(one.func, ast.Attribute) and one.func.attr in (*_ARRAYS, "item", "dim"):
                continue
            if dotted(one.func, known).partition(".")[0] in ROOTS:
                return True
        if isinstance(one, ast.Name) and one.id in tensors:
            return True
        waiting += ast.iter_child_nodes(one)
    return False


def _tensors(function: Function, known: dict[str, str]) -> set[str]:
    """Return the names of a function that may hold tensors: arguments without a default, and what comes from them."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    plain = plain[: len(plain) - len(a.defaults)]
    found = {arg.arg for arg in plain if arg.arg not in ("self", "cls") and not _says_python(arg.annotation)}
    while True:
        before = len(found)
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.NamedExpr)) and _is_tensor(node.value, found, known):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        if len(found) == before:
            return found


def _says_python(annotation: ast.AST | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "str", "bool")


def _converted(tree: ast.Module, known: dict[str, str]) -> list[tuple[str, Function]]:
    """Return the functions that a Program is made of, with their names, in the order of the source."""
    every: list[tuple[str, Function]] = []
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{prefix}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    every.append((inner, child))
            waiting.append((inner, child))
    every.sort(key=lambda one: one[1].lineno)
    met = [one for one in every if one[1].name == "forward" or _is_decorated(one[1], known)]
    by_name: dict[str, list[tuple[str, Function]]] = {}
    for one in every:
        by_name.setdefault(one[1].name, []).append(one)
    seen = {id(function) for _, function in met}
    for _, function in met:  # it grows
        for called in _calls(function):
            for one in by_name.get(called, []):
                if id(one[1]) not in seen:
                    seen.add(id(one[1]))
                    met.append(one)
    return sorted(met, key=lambda one: one[1].lineno)


def _calls(function: Function) -> Iterator[str]:
    """Yield the names of what a function calls: `f(...)`, `self.f(...)`."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "self":
                yield node.func.attr


def _is_decorated(function: Function, known: dict[str, str]) -> bool:
    for decorator in function.decorator_list:
        name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator, known)
        if name.partition(".")[0] in ROOTS and name.endswith("to_static") and not name.endswith("not_to_static"):
            return True
    return False
