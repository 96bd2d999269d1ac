"""What must stay Python's own statement, and why. Nothing changes in the tree; `context.native` is filled.

1. `yield` and `await` belong to their function's frame; `locals()`, `eval`, `exec` read it. What contains them stays.
2. A `return` in a function with (1), and any `return`, `break` or `continue` that leaves a `finally`, stays a jump,
   and so does everything between the jump and where it leads; but a `finally` that always returns is lowered (returns).
3. A loop that stays keeps its jumps.

A symbolic test of a statement that stays is an error of `helper.bool_`, with the line.
"""

from __future__ import annotations

from typing import Any

from dy2st.pysrc import tree
from dy2st.pysrc.scopes import own
from dy2st.transformers.core.context import Context

_SUSPENDS = frozenset(["Yield", "YieldFrom", "Await", "AsyncFor", "AsyncWith"])
_READS_FRAME = frozenset(["locals", "eval", "exec"])
_READS_FRAME_BARE = frozenset(["vars", "dir", "super"])  # without arguments
_DEFERRED = frozenset(
    ["BoolOp", "IfExp", "Compare", "Assert", "Raise", "ListComp", "SetComp", "DictComp", "GeneratorExp"]
)
_LOOPS = ("For", "While", "AsyncFor")


def transform(root: Any, context: Context) -> None:
    """Mark what stays in every function."""
    for function in tree.functions(root):
        _Function(function, context).mark()


def always_returns(stmts: list[Any]) -> bool:
    """Return whether a block ends in a `return` on each way through it."""
    last = stmts[-1] if stmts else None
    if type(last).__name__ == "If":
        both: Any = last
        return always_returns(both.body) and always_returns(both.orelse)
    return type(last).__name__ == "Return"


def is_pinned(node: Any) -> bool:
    """Return whether a node itself can only run in its function's own frame."""
    kind = type(node).__name__
    if kind in _SUSPENDS or (kind == "comprehension" and node.is_async):
        return True
    if kind != "Call" or type(node.func).__name__ != "Name":
        return False
    return node.func.id in _READS_FRAME or (node.func.id in _READS_FRAME_BARE and not node.args)


class _Function:
    def __init__(self, node: Any, context: Context):
        self.native = context.native
        # every simple statement and jump, with the compound statements around it and the block it stands in
        self.chains: list[tuple[Any, list[tuple[Any, str]]]] = []
        self.walk(node, [])

    def walk(self, node: Any, chain: list[tuple[Any, str]]) -> None:
        for owner, field in tree.blocks(node):
            for stmt in getattr(owner, field):
                inner = [*chain, (node, field)] if chain or tree.is_compound(node) else []
                self.chains.append((stmt, inner))
                if tree.is_compound(stmt):
                    self.walk(stmt, inner)

    def keep(self, chain: list[tuple[Any, str]]) -> None:
        self.native.update(owner for owner, _ in chain)

    def mark(self) -> None:
        pinned = False
        jumped_out = {owner for stmt, chain in self.chains for owner, _ in _way_to_loop(stmt, chain)}
        for stmt, chain in self.chains:
            if is_pinned(stmt) or any(is_pinned(node) for node in own(_headers(stmt))):
                pinned = True
                self.keep([*chain, (stmt, "")])
            self.expressions(stmt)
            if type(stmt).__name__ == "Return":
                finals = [owner for owner, field in chain if field == "finalbody"]
                pinned |= any(not always_returns(owner.finalbody) or owner in jumped_out for owner in finals)
        self.finally_jumps()
        while True:
            before = len(self.native)
            for stmt, chain in self.chains:
                if type(stmt).__name__ == "Return":
                    pinned |= any(owner in self.native and type(owner).__name__ in _LOOPS for owner, _ in chain)
                    self.keep(chain if pinned else [])
                elif (way := _way_to_loop(stmt, chain)) and way[0][0] in self.native:
                    self.keep(way)
            if len(self.native) == before:
                return

    def finally_jumps(self) -> None:
        for stmt, chain in self.chains:
            way = _way_to_loop(stmt, chain)
            if any(field == "finalbody" for _, field in way):
                self.keep(way)

    def expressions(self, stmt: Any) -> None:
        """Mark the expressions whose parts would move into functions and cannot."""
        for node in own([stmt] if not tree.is_compound(stmt) else _headers(stmt)):
            if type(node).__name__ in _DEFERRED and any(is_pinned(inner) for inner in own(node)):
                self.native.add(node)


def _way_to_loop(stmt: Any, chain: list[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """Return the statements that a break or continue leaves, its loop first."""
    if type(stmt).__name__ not in ("Break", "Continue"):
        return []
    for at in range(len(chain) - 1, -1, -1):
        owner, field = chain[at]
        if type(owner).__name__ in _LOOPS and field == "body":
            return chain[at:]
    return []


def _headers(stmt: Any) -> list[Any]:
    """List what a statement evaluates, without the statements inside it."""
    if not tree.is_compound(stmt):
        return [stmt]
    inside = {id(item) for owner, field in tree.blocks(stmt) for item in getattr(owner, field)}
    headers: list[Any] = []
    for part in tree.children(stmt):
        inner: Any = part
        if type(part).__name__ == "ExceptHandler":
            headers += [inner.type] if inner.type else []
        elif type(part).__name__ == "match_case":
            headers += [inner.guard] if inner.guard else []
        elif id(part) not in inside:
            headers.append(part)
    return headers
