"""`Splitting`: a static function that cannot be one Program, as its parts with Python between.

It is cut at the line that was refused. A part that is refused in turn adds its line, one that does not pay stays as it
was written; the next call of the function then has it cut anew, with the parts that are still the same.
"""

from __future__ import annotations

import enum
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.errors import DebuggerCall, Dy2stError
from dy2st.ir.program import Program
from dy2st.jit.guards.call_signature import ContainerNode, FlatCall, StaticLeaf
from dy2st.jit.splitting.refused_lines import refused_lines
from dy2st.jit.splitting.routing import Routing
from dy2st.jit.tracing.trace import Traced
from dy2st.nn.layer import Layer
from dy2st.runtime.eager.device import Place
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import Const

MOST_LINES = 32
"""A function is cut at so many lines at most."""
LEAST_OPERATIONS = 3
"""A part with fewer operations stays Python: its call takes as long as these."""
_FIXED = (
    *(type(None), bool, int, float, complex, str, bytes, type, slice, range, types.ModuleType, np.generic, np.dtype),
    *(types.BuiltinFunctionType, type(Ellipsis), enum.Enum, DType, Layer, Place, Tensor),
)  # fmt: skip
"""What may be the same one after each call."""
MakePart = Callable[..., Any]


class Splitting:
    """The parts of one static function."""

    def __init__(self, function: types.FunctionType, instance: Any, make: MakePart):
        self._function, self._instance, self._make = function, instance, make
        self._lines: set[int] = set()
        self._plain: set[Any] = set()
        self._arrays: set[str] = set()
        self._known: dict[Any, Any] = {}
        self._called: weakref.WeakSet[Any] = weakref.WeakSet()
        """The static functions that Python between the parts calls."""
        self._stale = False
        self._current: Callable[..., Any] | None = None
        self.parts: list[Any] = []
        self.reasons: dict[int, str] = {}
        """Why each line stays Python."""

    # ---- what is noted ---------------------------------------------------------------------------------------------
    def note(self, error: Dy2stError) -> bool:
        """Note a refusal; return whether the function is cut there."""
        if isinstance(error, DebuggerCall) or len(self._lines) >= MOST_LINES:
            return False
        lines, called = refused_lines(error, self._function)
        new = lines - self._lines
        if not new:
            return False
        before = set(self._lines)
        self._lines |= new
        self._build()
        if self._current is None or not (self.parts or called):
            self._lines = before
            return False
        self.reasons[max(new)] = str(getattr(error, "reason", error))
        return True

    def leave(self, part: Any) -> None:
        """Let a part stay as it was written, from the next call on."""
        self._plain.add(part.key)
        self._stale = True

    def note_refused(self, part: Any, error: Dy2stError) -> None:
        """Cut a part at the line that was refused, from the next call on."""
        lines, _ = refused_lines(error, part.function)
        if not lines or lines <= self._lines or len(self._lines) >= MOST_LINES:
            self.leave(part)
            return
        self._lines |= lines
        self.reasons[max(lines)] = str(getattr(error, "reason", error))
        self._stale = True

    def note_arrays(self, part: Any, names: set[str]) -> None:
        """Let what reads NumPy arrays stay as it was written, from the next call on."""
        if names <= self._arrays:
            self.leave(part)
        self._arrays |= names
        self._stale = True

    # ---- what runs -------------------------------------------------------------------------------------------------
    def function(self) -> Callable[..., Any] | None:
        """Return the function with its parts."""
        if self._stale:
            self._build()
        return self._current

    @property
    def called(self) -> list[Any]:
        """The static functions that Python between the parts has called."""
        return list(self._called)

    def _build(self) -> None:
        self._stale = False
        function, divide = self._function, import_module("dy2st.transformers.splitting.divide")  # few processes need it
        names = function.__code__.co_varnames[:1] if self._instance is not None else ()
        first = names[0] if names else None
        cuts = divide.Cuts(frozenset(self._lines), frozenset(self._plain), frozenset(self._arrays), first)
        made = divide.divide(function, cuts)
        if made is None:
            self._current, self.parts = None, []
            return
        self.parts = [self._part(part, first) for part in made.parts]
        helper = types.SimpleNamespace(of=Routing(self._callee).of)
        helper.__dict__.update((f"part_{i}", part) for i, part in enumerate(self.parts))
        new = self._with_code(made.code, {made.helper: types.CellType(helper)})
        new.__defaults__, new.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        self._current = new if self._instance is None else types.MethodType(new, self._instance)

    def _part(self, part: Any, first: str | None) -> Any:
        known = self._known.get((part.key, part.takes, part.gives))
        if known is None:
            instance = self._instance if part.takes and part.takes[0] == first else None
            known = self._make(self._with_code(part.code, {}), instance, self)
            known.key = part.key
            self._known[part.key, part.takes, part.gives] = known
        return known

    def _callee(self, function: types.FunctionType, instance: Any) -> Any:
        made = self._make(function, instance, None)
        self._called.add(made)
        return made

    def _with_code(self, code: types.CodeType, more: dict[str, types.CellType]) -> types.FunctionType:
        fn = self._function
        cells = {**dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)), **more}
        closure = tuple(cells[name] for name in code.co_freevars)
        made = types.FunctionType(code, fn.__globals__, fn.__name__, None, closure)
        made.__qualname__, made.__module__ = fn.__qualname__, fn.__module__
        return made


def hands_over(traced: Traced, made: FlatCall) -> bool:
    """Return whether what a call leaves behind is made anew each time: not a library's object, an array or a function
    that the trace has made once.
    """
    known = {id(leaf.value) for leaf in _leaves(made.tree.values()) if isinstance(leaf, StaticLeaf)}
    waiting = [traced.output, *(aval for _, _, aval in traced.writes)]
    while waiting:
        found = waiting.pop()
        waiting += found.children
        x = found.object if isinstance(found, Const) else None
        if not (id(x) in known or id(x) in traced.outside or isinstance(x, _FIXED) or _has_no_variables(x)):
            return False
    return True


def _has_no_variables(x: Any) -> bool:
    """Return whether a function has no variables of its own."""
    return isinstance(x, types.FunctionType) and not x.__closure__


def _leaves(trees: Iterable[Any]) -> Iterator[Any]:
    for tree in trees:
        yield from _leaves(tree.items) if isinstance(tree, ContainerNode) and tree.index < 0 else (tree,)


def pays_as_part(program: Program) -> bool:
    """Return whether a part does enough for a Program of its own: a loop or a branch, or several operations."""
    found = 0
    for op in program.block.operations:
        if op.blocks:
            return True
        found += bool(op.operands)  # constants have none
    return found >= LEAST_OPERATIONS
