"""A Program as panels: one node an operation, panels inside for branches, loops and called functions.

What only serves shapes and constants (plumbing) is left out unless `details` is asked for: a constant is written
into the node that uses it, `broadcast` and its like are passed through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.literals import is_array
from dy2st.ir.location import Location
from dy2st.ir.opdef import OpDef
from dy2st.ir.printer import label, operation_to_text, value_names
from dy2st.ir.program import Block, Operation, Program, Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.control.optional import VariantCast, VariantNew
from dy2st.ops.core.constant import Detach
from dy2st.ops.shape.shape import Broadcast, BroadcastExtent, DimOf
from dy2st.records import field, record
from dy2st.viz.layers import arrange
from dy2st.viz.panels import Edge, Node, Panel, count

MOST_NODES = 4000
"""Past so many nodes called functions are not drawn where they are called."""
KINDS = {
    "matmul": "product", "conv": "product", "conv_transpose": "product", "embedding": "product", "cond": "flow",
    "while_loop": "flow", "counted_while": "flow", "call": "flow", "print": "effect", "assert": "effect",
    "raise": "effect", "warn": "effect", "log_record": "effect",
}  # fmt: skip
_HIDDEN_ATTRIBUTES = {"carried", "types", "type", "tags", "message", "template"}
_LONGEST_TEXT = 34


@record
class Names:
    """What people call the arguments and results of a block."""

    results: list[str] = field(default_factory=list[str])
    state: set[Value] = field(default_factory=set[Value])
    """The arguments that are parameters and other state."""
    arguments: dict[Value, str] = field(default_factory=dict[Value, str])


def _passes_on(op: OpDef) -> bool:
    """Return whether the result of an op is, for a reader, its first operand."""
    return isinstance(op, (Broadcast, Detach, VariantNew, VariantCast))


def _is_plumbing(op: OpDef) -> bool:
    """Return whether an op only serves shapes and constants."""
    return op.is_constant or _passes_on(op) or isinstance(op, (DimOf, BroadcastExtent))


def panels_of(program: Program, names: dict[str, Names] | None = None, details: bool = False) -> list[Panel]:
    """Return a panel for the entry and for every function that it does not call, arranged in rows."""
    drawer = _Drawer(program, details)
    called = {o.attributes["function"] for o in program.walk() if o.op.is_call}
    shown = [program.entry, *(f for f in program.functions if f != program.entry and f not in called)]
    made: list[Panel] = []
    for function in shown:
        known = (names or {}).get(function, Names())
        title = "" if len(shown) == 1 else function
        made.append(drawer.function(function, title, known))
    count(made)
    return made


class _Drawer:
    """Makes panels of blocks."""

    def __init__(self, program: Program, details: bool):
        self.program, self.details = program, details
        self.nodes = 0

    def function(self, name: str, title: str, known: Names, stack: tuple[str, ...] = ()) -> Panel:
        block = self.program.functions[name]
        return self.block(block, title, value_names(block), known, (*stack, name))

    def block(self, block: Block, title: str, texts: dict[Value, str], known: Names, stack: tuple[str, ...]) -> Panel:
        made = _PanelOfBlock(self, block, Panel(title), texts, stack)
        made.draw(known)
        arrange(made.panel)
        return made.panel


class _PanelOfBlock:
    """Draws one block into one panel."""

    def __init__(self, drawer: _Drawer, block: Block, panel: Panel, texts: dict[Value, str], stack: tuple[str, ...]):
        self.drawer, self.source, self.panel, self.texts, self.stack = drawer, block, panel, texts, stack
        self.made: dict[Value, tuple[int, float]] = {}
        """Where each value comes from: a node and a place on its lower side."""
        self.written: dict[Value, str] = {}
        """Constants, as text."""
        self.shown = self._needed()

    def _needed(self) -> set[Operation]:
        """Return the operations to draw: all but plumbing whose values no drawn operation needs as values."""
        if self.drawer.details:
            return set(self.source.operations)
        shown = {o for o in self.source.operations if not _is_plumbing(o.op)}
        used = {v for o in shown for v in o.operands} | set(self.source.results)
        return shown | {o for o in self.source.operations if isinstance(o.op, DimOf) and used.intersection(o.results)}

    def draw(self, known: Names) -> None:
        for argument in self.source.arguments:
            self._argument(argument, known)
        for operation in self.source.operations:
            if operation in self.shown:
                self._operation(operation)
            else:
                self._plumbing(operation)
        for at, value in enumerate(self.source.results):
            name = known.results[at] if at < len(known.results) else "result"
            node = self._add(Node(name, [_kind_text(value)], "result", f"{name}: {value.type}"))
            self._connect(node, [value], "")
        self._drop_unused()

    # ---- nodes -----------------------------------------------------------------------------------------------------
    def _add(self, node: Node) -> int:
        self.drawer.nodes += 1
        self.panel.nodes.append(node)
        return len(self.panel.nodes) - 1

    def _argument(self, value: Value, known: Names) -> None:
        name = known.arguments.get(value) or value.name or f"%{self.texts.get(value, '')}"
        kind = "state" if value in known.state else "argument"
        number = self._add(Node(_cut(name), [_kind_text(value)], kind, f"{name}: {value.type}"))
        self.made[value] = number, 0.5

    def _operation(self, operation: Operation) -> None:
        node = Node(_title(operation), self._lines(operation), KINDS.get(operation.name, "op"), self._tip(operation))
        for at, inner in enumerate(operation.blocks):
            names = self._names_inside(operation, inner)
            node.panels.append(self.drawer.block(inner, label(operation, at), self.texts, names, self.stack))
        if operation.op.is_call:
            self._open_call(operation, node)
        number = self._add(node)
        self._connect(number, operation.operands, "")
        for at, value in enumerate(operation.results):
            self.made[value] = number, _spread(at, len(operation.results))

    def _names_inside(self, operation: Operation, block: Block) -> Names:
        """Return what enters and leaves a sub-block by the names that it has outside."""
        loop = operation.op.is_loop
        first = 1 if operation.op.is_counted else 0
        carried = operation.attributes["carried"] if loop else 0
        results = [f"next {i}" for i in range(carried)]
        found = Names(["repeat if", *results] if loop and not operation.op.is_counted else results)
        for at, argument in enumerate(block.arguments):
            if at < first:
                found.arguments[argument] = "turn"
                continue
            operand = operation.operands[at + 1 - first]
            if at - first < carried:
                found.arguments[argument] = argument.name or f"carried {at - first}"
            elif operand in self.made:
                source = self.panel.nodes[self.made[operand][0]]
                found.arguments[argument] = argument.name or source.title
                if source.kind == "state":
                    found.arguments[argument] = source.title
                    found.state.add(argument)
            else:
                found.arguments[argument] = self.written.get(operand, "")
        return found

    def _open_call(self, operation: Operation, node: Node) -> None:
        """Draw the called function inside the call, folded, unless it is being drawn already."""
        name = operation.attributes["function"]
        if name in self.stack:
            node.lines.append("(recursive)")
        elif name in self.drawer.program.functions and self.drawer.nodes < MOST_NODES:
            node.panels = [self.drawer.function(name, "", Names(), self.stack)]
            node.folded = True

    def _plumbing(self, operation: Operation) -> None:
        """Take note of what a hidden operation gives: the text of a constant, or where its operand comes from."""
        if operation.op.is_constant:
            self.written[operation.results[0]] = _value_text(operation.attributes["value"])
        elif _passes_on(operation.op) and operation.operands:
            source, result = operation.operands[0], operation.results[0]
            if source in self.made:
                self.made[result] = self.made[source]
            elif source in self.written:
                self.written[result] = self.written[source]

    def _connect(self, number: int, operands: Sequence[Value], tip: str) -> None:
        reached = [v for v in operands if v in self.made]
        known: set[tuple[int, float]] = set()
        wanted = [v for v in reached if not (self.made[v] in known or known.add(self.made[v]))]
        for at, value in enumerate(wanted):
            start, start_at = self.made[value]
            tip = f"%{self.texts.get(value, '')}: {value.type}"
            self.panel.edges.append(Edge(start, number, start_at, _spread(at, len(wanted)), tip))
        missing = [v for v in operands if v not in self.made and v in self.written]
        node = self.panel.nodes[number]
        if missing:
            node.lines.insert(0, _cut("with " + ", ".join(self.written[v] for v in missing)))

    def _drop_unused(self) -> None:
        """Take away arguments that nothing in the block uses."""
        used = {edge.start for edge in self.panel.edges}
        kept = [n for n, node in enumerate(self.panel.nodes) if n in used or node.kind not in ("argument", "state")]
        new = {old: at for at, old in enumerate(kept)}
        self.panel.nodes = [self.panel.nodes[n] for n in kept]
        for edge in self.panel.edges:
            edge.start, edge.end = new[edge.start], new[edge.end]

    # ---- text ------------------------------------------------------------------------------------------------------
    def _lines(self, operation: Operation) -> list[str]:
        shown = [f"{k}={_value_text(v)}" for k, v in operation.attributes.items() if _is_telling(k, v)]
        lines = [_cut(", ".join(shown))] if shown else []
        if len(operation.results) == 1:
            lines.append(_kind_text(operation.results[0]))
        return lines

    def _tip(self, operation: Operation) -> str:
        """Return what is shown on hover: the user's line, then types, then the operation's text."""
        at = operation.location
        lines = [_source_text(at)] if at is not None else []
        lines += [f"{_cut(v.name or '%' + self.texts.get(v, ''), 60)}: {v.type}" for v in operation.results]
        text = operation_to_text(operation, self.texts)
        lines.append(text if len(text) <= 400 else text[:397] + "...")
        return "\n".join(lines)


def _title(operation: Operation) -> str:
    if operation.op.is_call:
        return _cut(f"call {operation.attributes['function']}")
    return operation.name


def _source_text(at: Location) -> str:
    function = f" in {at.function}" if at.function else ""
    file = at.file.replace("\\", "/").rpartition("/")[2]
    line = at.source()
    return f"{file}:{at.line}{function}" + (f"\n    {line}" if line else "")


def _kind_text(value: Value) -> str:
    if isinstance(value.type, TensorType):
        return _cut(str(value.type))
    return value.type.kind if isinstance(value.type, ScalarType) else _cut(str(value.type))


def _is_telling(name: str, value: Any) -> bool:
    """Return whether an attribute is worth a place in the picture: what is unusual about this operation."""
    return not (name.startswith("_") or name in _HIDDEN_ATTRIBUTES or value is None or value is False)


def _value_text(value: Any) -> str:
    if is_array(value):
        array = np.asarray(value if isinstance(value, np.ndarray) else value.get())
        return f"{array.item():.6g}" if array.size == 1 and array.dtype.kind == "f" else (
            str(array.item()) if array.size == 1 else f"{array.dtype.name}{list(array.shape)}"
        )  # fmt: skip
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_value_text, value)) + ("," if len(value) == 1 else "") + ")"
    return f"{value:.6g}" if isinstance(value, float) else "…" if value is None else str(value)


def _cut(text: str, most: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _spread(at: int, of: int) -> float:
    """Return where on a side of a node number `at` of `of` edges stands."""
    return 0.5 + (at - (of - 1) / 2) * min(0.14, 0.8 / of)
