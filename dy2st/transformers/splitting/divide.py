r"""`divide(fn, lines)`: a function cut at lines that cannot be in a Program.

What stands between them becomes functions of its own, the parts; the rest stays Python and calls them. A part takes
the variables that it reads and returns those that are wanted after it. Compound statements with such a line inside
stay, and their blocks are cut in turn, so `break`, `continue` and `return` stay where they are; a part whose last
statement is a `return` may have more of them.

    def f(x):                           def f(x):
        y = exp(x) * 2                      y = _split.part_0(x)        # def part_0(x): y = exp(x) * 2; return y
        k = y.numpy().argmax()      ->      k = _split.of(_split.of(y.numpy)().argmax)()
        z = sin(y) + k                      return _split.part_1(k, y)  # def part_1(k, y): z = sin(y) + k; return ...
        return z * y

Where it is in doubt whether a variable is bound, or who else sees it, statements stay as they are.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from dy2st.pysrc import origin, source, templates, tree
from dy2st.pysrc.scopes import Scopes, bound
from dy2st.records import record
from dy2st.transformers.canonicalize import private_names
from dy2st.transformers.codegen import compile_function
from dy2st.transformers.conversion import definition_of
from dy2st.transformers.convert import outside
from dy2st.transformers.core.context import Context
from dy2st.transformers.preview import new_context
from dy2st.transformers.splitting.facts import Assigned, Captures, Wanted, can_be_cut, leaves, work_of

LEAST_WORK = 2
"""A part has so many operations at least, as far as its source tells."""
Key = tuple[int, int, int, int]
"""Where a part stands: its first line and column, and its last."""
_APPENDS = frozenset(("append", "extend", "insert", "add", "update"))
_STAYS = frozenset(("Global", "Nonlocal", "Import", "ImportFrom", "Delete", "ClassDef", "Pass"))


@record(frozen=True)
class Part:
    """A part of a function, as a function."""

    key: Key
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    code: types.CodeType


@record(frozen=True)
class Divided:
    """A function that calls its parts by the helper, which is a variable of it."""

    code: types.CodeType
    helper: str
    parts: tuple[Part, ...]


@record(frozen=True)
class Cuts:
    """Where a function is cut."""

    lines: frozenset[int]
    """Lines that stay Python."""
    plain: frozenset[Key] = frozenset()
    """Parts that stay as they are."""
    arrays: frozenset[str] = frozenset()
    """Variables that hold NumPy arrays: what reads them stays Python, as a Program takes them for tensors."""
    first: str | None = None
    """The variable that parts are methods of."""


def divide(fn: types.FunctionType, cuts: Cuts) -> Divided | None:
    """Cut a function; None where that cannot be done."""
    found = source.find(fn)
    root: Any = definition_of(found.node)
    if isinstance(found.node, ast.Lambda | ast.AsyncFunctionDef) or not can_be_cut(root):
        return None
    context = new_context(root, (), fn.__code__.co_freevars)
    private_names.transform(root, context, found.class_name)
    return _Divider(fn, root, context, cuts, found).run()


class _Divider:
    def __init__(self, fn: types.FunctionType, root: Any, context: Context, cuts: Cuts, found: source.FunctionSource):
        self.fn, self.root, self.context, self.cuts, self.found = fn, root, context, cuts, found
        self.scopes = Scopes(root)
        self.wanted = Wanted(self.scopes, self._is_quiet)
        self.assigned = Assigned(self.scopes, self._is_quiet)
        self.captures = Captures(self.scopes)
        self.parts: list[Part] = []
        self.flags = source.future_flags(fn.__code__)

    def run(self) -> Divided:
        self.root.body = self._block(self.root.body, last=True)
        code, _ = compile_function(self.context, self.fn.__code__, self.flags, converted=False)
        return Divided(code, self.context.helper, tuple(self.parts))

    def _is_quiet(self, manager: Any) -> bool:
        """Return whether a context manager is one of this package's, which let exceptions pass."""
        at = manager.func if type(manager).__name__ == "Call" else manager
        while type(at).__name__ == "Attribute":
            at = at.value
        found = outside(self.fn, at.id) if type(at).__name__ == "Name" else None
        name = found.__name__ if isinstance(found, types.ModuleType) else getattr(found, "__module__", None)
        return (name or "").partition(".")[0] == __name__.partition(".")[0]

    # -- statements

    def _block(self, nodes: list[Any], *, last: bool = False) -> list[Any]:
        """Cut a block; behind the `last` one of the function nothing follows."""
        made: list[Any] = []
        run: list[Any] = []
        for i, node in enumerate(nodes):
            if self._is_solid(node, returns=False):
                run.append(node)
                continue
            rest = nodes[i - len(run) :]
            ends = last or type(rest[-1]).__name__ == "Return"
            if ends and all(self._is_solid(item, returns=True) for item in rest):
                tail = self._run(rest, ends=True)
                if tail is not None:
                    return made + tail
            made += self._parts_of(run)
            run = []
            made += self._stays(node)
        return made + (self._run(run, ends=last) or self._parts_of(run))

    def _is_solid(self, node: Any, *, returns: bool) -> bool:
        """Return whether a statement can be in a part."""
        kind = type(node).__name__
        if kind in _STAYS or leaves(node, returns=returns) or self._has_line(node) or self._grows_list(node):
            return False
        if any(type(inner).__name__ == "Delete" for inner in tree.walk(node)):
            return False
        if not self.cuts.arrays.isdisjoint(self.wanted.reads(node)):
            return False
        return tree.is_compound(node) or self.captures.allow([node], bound(node))

    def _has_line(self, node: Any) -> bool:
        return any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in self.cuts.lines)

    def _grows_list(self, node: Any) -> bool:
        """Return whether a statement is `xs.append(x)`: a part that takes `xs` would be traced for each length."""
        call: Any = getattr(node, "value", None) if type(node).__name__ == "Expr" else None
        func: Any = getattr(call, "func", None)
        if type(func).__name__ != "Attribute" or func.attr not in _APPENDS:
            return False
        return type(func.value).__name__ == "Name" and self.scopes.owner(func.value) is self.scopes.root

    def _stays(self, node: Any) -> list[Any]:
        """Return a statement that stays Python: its blocks are cut, its own calls ask the helper what to call."""
        inner: list[Any] = []
        if tree.is_compound(node):
            for owner, field in tree.blocks(node):
                block = getattr(owner, field)
                inner += block
                setattr(owner, field, self._block(block) if block else block)
                inner += getattr(owner, field)
        if not tree.is_function(node) and type(node).__name__ != "ClassDef":
            self._route(node, {id(statement) for statement in inner})
        return [node]

    def _route(self, node: Any, done: set[int]) -> None:
        for child in tree.children(node):
            if id(child) in done or type(child).__name__ in ("Lambda", "GeneratorExp"):
                continue
            self._route(child, done)
        func = node.func if type(node).__name__ == "Call" else None
        if func is None or (type(func).__name__ == "Name" and func.id in ("super", "print", "isinstance", "len")):
            return
        node.func = templates.expression(func, "HELPER.of(FUNCTION)", HELPER=self.context.helper, FUNCTION=func)

    # -- parts

    def _parts_of(self, run: list[Any]) -> list[Any]:
        """Return what takes the place of statements: one part, or several where that would be in doubt."""
        made = self._run(run)
        if made is not None:
            return made
        if len(run) > 1:
            return self._parts_of(run[: len(run) // 2]) + self._parts_of(run[len(run) // 2 :])
        return [item for node in run for item in self._stays(node)]

    def _run(self, run: list[Any], *, ends: bool = False) -> list[Any] | None:
        """Return statements with the call of a part in their middle; None where there can be no such part."""
        start, stop = 0, len(run)
        while start < stop and not (work_of(run[start : start + 1]) or tree.is_function(run[start])):
            start += 1
        while stop > start and not work_of(run[stop - 1 : stop]) and not any(
            leaves(node, returns=False) for node in run[start : stop - 1]
        ):  # fmt: skip
            stop -= 1
        kept = run[start:stop]
        if work_of(kept) < LEAST_WORK or _key(kept) in self.cuts.plain:
            returns = any(leaves(node, returns=False) for node in run)
            return None if ends and returns else [item for node in run for item in self._stays(node)]
        made = self._part(kept, ends=ends and stop == len(run))
        if made is None:
            return None
        before, after = ([x for n in nodes for x in self._stays(n)] for nodes in (run[:start], run[stop:]))
        return [*before, made, *after]

    def _part(self, run: list[Any], *, ends: bool) -> Any:
        """Return the call of a new part; None where it would be in doubt whether that is the same."""
        first, final = run[0], run[-1]
        spot = origin.place(first)
        key = _key(run)
        names = bound(run)
        declared = self.scopes.root.globals | self.scopes.root.nonlocals
        mine = [name for name in names if name not in declared]
        if not self.captures.allow(run, mine):
            return None
        returns = any(leaves(node, returns=False) for node in run)
        gives = [] if ends or returns else [name for name in mine if name in self.wanted.after[final]]
        if not self.wanted.raised[first].isdisjoint(mine):
            return None
        root = self._definition(run, spot, gives, names)
        takes = self._takes(root, run)
        sure = self.assigned.before[first]
        if sure is None or not (sure & self.wanted.before[first]).issuperset(takes):
            return None
        self._finish(root, takes, gives, key)
        given = takes[1:] if takes and takes[0] == self.cuts.first else takes
        template = "return HELPER.PART(*ARGS)" if ends or returns else "HELPER.PART(*ARGS)"
        if gives:
            template = "TARGETS = HELPER.PART(*ARGS)"
        names_of = [templates.name(first, name) for name in given]
        values: dict[str, Any] = {
            "HELPER": self.context.helper,
            "PART": f"part_{len(self.parts) - 1}",
            "ARGS": names_of,
        }
        if gives:
            targets = [templates.name(first, name, "Store") for name in gives]
            values["TARGETS"] = targets[0] if len(targets) == 1 else _tuple(first, targets, "Store")
        return templates.statement(first, template, **values)

    def _definition(self, run: list[Any], spot: Any, gives: list[str], names: list[str]) -> Any:
        """Return a part as a function, its parameters not known yet."""
        scope = self.scopes.root
        body = list(run)
        for kind, declared in (("Global", scope.globals), ("Nonlocal", scope.nonlocals)):
            if held := sorted(declared.intersection(names)):
                node = tree.new(kind, names=held)
                origin.put(node, spot)
                body.insert(0, node)
        if gives:
            found = [templates.name(run[-1], name) for name in gives]
            value = found[0] if len(found) == 1 else _tuple(run[-1], found, "Load")
            body.append(templates.statement(run[-1], "return VALUE", VALUE=value))
        return templates.statement(spot, "def NAME():\n    BODY", NAME=self.root.name, BODY=body)

    def _takes(self, root: Any, run: list[Any]) -> list[str]:
        """Return which variables a part needs, `self` first."""
        scope = self.scopes.root
        named = (x for node in run for x in tree.walk(node) if type(x).__name__ == "Name" and x in self.scopes.where)
        read = [x.id for x in named if self.scopes.owner(x) is scope]
        every = dict.fromkeys((*read, *(name for name in bound(run) if scope.resolve(name) is scope)))
        root.args = _parameters(root, list(every))
        scopes = Scopes(root)
        needed = Wanted(scopes, self._is_quiet).before[root.body[0]]
        first = tree.first_parameter(self.root.args)
        takes = [name for name in every if name in needed]
        supers = any(type(x).__name__ == "Name" and x.id == "super" for node in run for x in tree.walk(node))
        if first is not None and (first.id in takes or supers):
            takes = [first.id, *(name for name in takes if name != first.id)]
        return takes

    def _finish(self, root: Any, takes: list[str], gives: list[str], key: Key) -> None:
        """Compile a part, and say what its source is."""
        root.args = _parameters(root, takes)
        context = new_context(root, (), self.fn.__code__.co_freevars)
        code, _ = compile_function(context, self.fn.__code__, self.flags, converted=False)
        node: Any = tree.to_ast(root)
        source.give(code, source.FunctionSource(node, self.found.text, self.found.file, None))
        self.parts.append(Part(key, tuple(takes), tuple(gives), code))


def _key(run: list[Any]) -> Key:
    return run[0].lineno, run[0].col_offset, run[-1].end_lineno, run[-1].end_col_offset


def _parameters(root: Any, names: list[str]) -> Any:
    args = [templates.name(root, name, "Param") for name in names]
    return tree.new(
        "arguments", posonlyargs=[], args=args, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )


def _tuple(spot: Any, items: list[Any], ctx: str) -> Any:
    node = tree.new("Tuple", elts=items, ctx=tree.new(ctx))
    origin.put(node, spot)
    return node
