"""From a function object to the tree of its source, as it stands in the user's file.

The whole file is parsed, so lines, columns, the class around a method and `from __future__` lines are right without
dedenting. What is found is compiled and compared with the function's code, so that the text of a file that was edited
after its import is refused, not converted.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
import types
import weakref
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from dy2st.errors import ConversionError
from dy2st.records import record

_FUTURE = sum({getattr(__future__, feature).compiler_flag for feature in __future__.all_feature_names})

Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Place = tuple[Node, ast.stmt, str | None]
"""A function, the top-level statement that it stands in, and the name of the innermost class around it."""


@record(frozen=True)
class FunctionSource:
    """The source of one function."""

    node: Node
    text: str
    file: str
    class_name: str | None


class ByCode:
    """Values kept for code objects, by identity (equal code may stand in two files), as long as those live."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[types.CodeType], Any]] = {}

    def get(self, code: types.CodeType) -> Any:
        found = self._kept.get(id(code))
        return found[1] if found is not None and found[0]() is code else None

    def put(self, code: types.CodeType, value: Any) -> None:
        key = id(code)

        def forget(gone: weakref.ref[types.CodeType]) -> None:
            if (found := self._kept.get(key)) is not None and found[0] is gone:
                del self._kept[key]

        self._kept[key] = weakref.ref(code, forget), value


_given = ByCode()


def give(code: types.CodeType, found: FunctionSource) -> None:
    """Say what the source is of code that was made from a part of a function."""
    _given.put(code, found)


def find(fn: types.FunctionType) -> FunctionSource:
    """Find the tree of a function in its file.

    Raises
    ------
    ConversionError
        There is no source, or it is not the source that the function was made from.
    """
    code = fn.__code__
    if (given := _given.get(code)) is not None:
        return given
    lines = source_lines(fn)
    if not lines:
        raise ConversionError(f"`{fn.__qualname__}` cannot be converted: {_why_no_source(code.co_filename)}")
    text = "".join(lines)
    try:
        file = _file(text, code.co_filename)
    except SyntaxError as error:
        raise _edited(fn, f"the file does not parse: {error.msg}") from None
    node, class_name = _match(fn, file)
    return FunctionSource(node, _segment(lines, node), code.co_filename, class_name)


def _segment(lines: list[str], node: Node) -> str:
    """Return the text of a function, without splitting the file again for each (`ast.get_source_segment` does)."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    parts = lines[node.lineno - 1 : node.end_lineno]
    parts[-1] = parts[-1].encode()[: node.end_col_offset].decode()
    first = parts[0].encode()
    before, parts[0] = first[: node.col_offset].decode(), first[node.col_offset :].decode()
    padding = "" if len(parts) == 1 else "".join(c if c in "\f\t" else " " for c in before)
    return padding + "".join(parts)


def source_lines(fn: types.FunctionType) -> list[str]:
    """Return the lines of the file, notebook cell, doctest or `exec` text that defines a function."""
    file = fn.__code__.co_filename
    if file.startswith("<frozen "):  # a module of the standard library that Python has in itself
        file = fn.__globals__.get("__file__", file)
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    if not lines and file == "<string>" and fn.__globals__.get("__name__") == "__main__":
        argv = sys.orig_argv  # `python -c TEXT`
        lines = argv[argv.index("-c") + 1].splitlines(keepends=True) if "-c" in argv[:-1] else []
    return lines


def future_flags(code: types.CodeType) -> int:
    """Return the `from __future__` features that a function was compiled with, for `compile`."""
    return code.co_flags & _FUTURE


def _why_no_source(file: str) -> str:
    if file == "<stdin>":
        return "its source is not kept by this prompt (use a file, a notebook or IPython)"
    if file.startswith("<"):
        return f"its source is not kept: it was made by `exec` or `eval` ({file}), with no entry in linecache"
    return f"its source file {file} cannot be read"


def _edited(fn: types.FunctionType, reason: str) -> ConversionError:
    return ConversionError(
        f"`{fn.__qualname__}` cannot be converted: its source is not the text that it was made from ({reason})",
        file=fn.__code__.co_filename,
        line=fn.__code__.co_firstlineno,
        hint="Import or run the file again after editing it.",
    )


class _File:
    """One parsed file, with what is asked about it more than once."""

    def __init__(self, text: str, name: str):
        self.tree, self.name = ast.parse(text), name

    def functions(self, line: int) -> list[_Place]:
        """List the functions in the top-level statements that stand on a line."""
        tops = [top for top in self.tree.body if _first_line(top) <= line <= (top.end_lineno or line)]
        return [found for top in tops for found in self._inside(top)]

    def _inside(self, top: ast.stmt) -> list[_Place]:
        if top not in self._functions:
            self._functions[top] = [(node, top, name) for node, name in _functions(top, None)]
        return self._functions[top]

    @cached_property
    def _functions(self) -> dict[ast.stmt, list[_Place]]:
        return {}

    @cached_property
    def imports(self) -> list[ast.stmt]:
        """Every import outside of functions and classes."""
        found: list[ast.stmt] = []

        def walk(node: ast.AST) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Import | ast.ImportFrom):
                    found.append(child)
                elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
                    walk(child)

        walk(self.tree)
        return sorted(found, key=lambda node: not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))

    def codes(self, top: ast.stmt, flags: int) -> list[types.CodeType]:
        """Compile one top-level statement and list all code objects in it."""
        if (top, flags) not in self._codes:
            module = ast.Module([*self.imports, top], [])  # the compiler treats calls of imported names apart
            code = compile(module, self.name, "exec", flags=flags, dont_inherit=True)
            self._codes[top, flags] = list(_nested(code))
        return self._codes[top, flags]

    @cached_property
    def _codes(self) -> dict[tuple[ast.stmt, int], list[types.CodeType]]:
        return {}


@lru_cache(maxsize=64)
def _file(text: str, name: str) -> _File:
    return _File(text, name)


def _functions(node: ast.AST, name: str | None) -> Iterator[tuple[Node, str | None]]:
    """Yield the functions in a tree, with the name of the innermost class around each."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield node, name
    inner = node.name if isinstance(node, ast.ClassDef) else name
    for child in ast.iter_child_nodes(node):
        yield from _functions(child, inner)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _match(fn: types.FunctionType, file: _File) -> tuple[Node, str | None]:
    """Return the function's node, and the name of the innermost class around it."""
    code = fn.__code__
    here = [found for found in file.functions(code.co_firstlineno) if _first_line(found[0]) == code.co_firstlineno]
    here = [found for found in here if getattr(found[0], "name", "<lambda>") == code.co_name]
    if not here:
        raise _edited(fn, f"no `{code.co_name}` starts on line {code.co_firstlineno}")
    if isinstance(here[0][0], ast.Lambda):
        here = _narrowest(here, code)
    flags = future_flags(code)
    for node, top, class_name in here:
        same_place = [
            other
            for other in file.codes(top, flags)
            if (other.co_name, other.co_firstlineno) == (code.co_name, code.co_firstlineno)
        ]
        if any(_same(other, code) for other in same_place):
            return node, class_name
    raise _edited(fn, f"the code on line {code.co_firstlineno} differs")


def _first_line(node: Node | ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _narrowest(here: list[_Place], code: types.CodeType) -> list[_Place]:
    """Keep the lambda whose body spans the columns of the code; all of them where columns are not known."""
    spans = [
        (start, column, end, end_column)
        for start, end, column, end_column in code.co_positions()
        if start and end and column is not None and end_column
    ]
    if not spans:
        return here if len(here) == 1 else []
    first, last = min(span[:2] for span in spans), max(span[2:] for span in spans)

    def width(node: Any) -> tuple[int, int]:
        return node.body.end_lineno - node.body.lineno, node.body.end_col_offset - node.body.col_offset

    around: list[_Place] = []
    for place in here:
        body: Any = place[0].body
        if (body.lineno, body.col_offset) <= first and last <= (body.end_lineno, body.end_col_offset):
            around.append(place)
    return sorted(around, key=lambda place: width(place[0]))[:1]


def _same(found: types.CodeType, code: types.CodeType) -> bool:
    if "@pytest_ar" in _all_names(code):  # pytest rewrote its asserts
        arguments = found.co_varnames[: found.co_argcount] == code.co_varnames[: code.co_argcount]
        return arguments and _all_names(found) <= _all_names(code)
    return found == code or _shape(found) == _shape(code)


def _all_names(code: types.CodeType) -> set[str]:
    return {
        name for one in _nested(code) for name in (*one.co_names, *one.co_varnames, *one.co_freevars, *one.co_cellvars)
    }


def _shape(code: types.CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it stands."""
    consts: list[tuple[Any, ...]] = [
        _shape(const) if isinstance(const, types.CodeType) else (type(const), repr(const)) for const in code.co_consts
    ]
    return (code.co_code, tuple(consts), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
