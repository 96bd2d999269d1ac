"""Variables of the user's that outlive a call: cells of closures and globals.

A converted function gets cells and globals of the trace in their place, so that nothing real is rebound while tracing.
What they hold in the end is written back by each run; what they held at first is state or a guard.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dy2st.jit.guards.guards import GlobalGuard, GlobalSlot, Guard, StateSlot
from dy2st.naming import is_plain_module
from dy2st.runtime.gc_pause import while_it_lives
from dy2st.runtime.tracer.effects.code_names import contents_of, names_of
from dy2st.runtime.tracer.values.sentinels import MISSING

if TYPE_CHECKING:
    from dy2st.jit.tracing.external_reads import ExternalReads

PLAIN = (type, types.ModuleType, types.BuiltinFunctionType)


class ReboundVariables:
    """The cells and globals that stand for real ones in one trace."""

    def __init__(self, trace: ExternalReads):
        self.trace = trace
        self.cells: dict[int, tuple[Any, Any, Any]] = {}
        """By id of the real cell: it, the one of the trace, and what that held at first."""
        self.globals: dict[int, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {}
        """By id of the real dict: it, the one of the trace, and what the names that are assigned held at first."""
        self._outside: dict[int, tuple[types.FunctionType, types.FunctionType]] = {}
        """By id of a function that the trace made: it, and the one that leaves in its place."""

    def of_trace(self, function: types.FunctionType, made: types.FunctionType) -> types.FunctionType:
        """Return a converted function with cells and globals of the trace."""
        names, assigned = _globals_of(function.__code__)
        real = function.__globals__
        seen = {name: self._note_global(real, name, real[name]) for name in names if name in real}
        named, read = _names_in(function.__code__), [real[name] for name in names if name in real]
        for x in (*read, *contents_of(function)):
            self._note_library(x, named, set())
        scope = self._scope(real, assigned)  # also where it assigns none: what it calls may
        before = self.globals[id(real)][2]
        scope.update((name, x) for name, x in seen.items() if x is not real[name] and name not in before)
        ours = {id(cell) for cell in function.__closure__ or ()}
        closure = tuple(self._cell(c) if id(c) in ours else c for c in made.__closure__ or ())
        twin = types.FunctionType(made.__code__, scope, made.__name__, made.__defaults__, closure)
        twin.__kwdefaults__ = made.__kwdefaults__
        twin.__qualname__, twin.__module__ = made.__qualname__, made.__module__
        twin.__dict__.update(made.__dict__)
        return twin

    def is_from_outside(self, function: types.FunctionType) -> bool:
        """Return whether a function was there before: one that the trace made has globals of the trace."""
        return all(function.__globals__ is not ours for _, ours, _ in self.globals.values())

    def outside(self, function: types.FunctionType) -> types.FunctionType:
        """Return a function that the trace made as it is outside: with the real cells and globals."""
        real = next((real for real, ours, _ in self.globals.values() if ours is function.__globals__), None)
        if real is None:
            return function
        if id(function) in self._outside:
            return self._outside[id(function)][1]
        cells = {id(made): cell for cell, made, _ in self.cells.values()}
        closure = tuple(cells.get(id(cell), cell) for cell in function.__closure__ or ())
        made = types.FunctionType(function.__code__, real, function.__name__, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        made.__dict__.update(function.__dict__)
        self._outside[id(function)] = function, made
        return made

    def _note_global(self, scope: dict[str, Any], name: str, value: Any) -> Any:
        if isinstance(value, PLAIN) or name.startswith("__"):
            self.trace.note_plain_global(GlobalGuard(scope, name, value))
            return value
        return self.trace.note_outside(GlobalSlot(scope, name), GlobalGuard(scope, name, value), value)

    def _note_library(self, module: Any, names: Iterable[str], met: set[int]) -> None:
        """Note what code that has these names may read of a library's module, and of the modules in it."""
        if not isinstance(module, types.ModuleType) or not is_plain_module(module.__name__) or id(module) in met:
            return
        met.add(id(module))
        for name in names:
            if name in vars(module):
                self.trace.note_library(module, name)
                self._note_library(vars(module)[name], names, met)

    def _scope(self, real: dict[str, Any], assigned: tuple[str, ...]) -> dict[str, Any]:
        """Return the globals of the trace that stand for a module's."""
        _, ours, before = self.globals.setdefault(id(real), (real, dict(real), {}))
        for name in assigned:
            if name not in before:
                value = real.get(name, MISSING)
                seen = value if value is MISSING else self._note_global(real, name, value)
                before[name] = seen
                if seen is not MISSING:
                    ours[name] = seen
        return ours

    def _cell(self, real: types.CellType) -> types.CellType:
        """Return the cell of the trace that stands for a real one."""
        known = self.cells.get(id(real))
        if known is not None:
            return known[1]
        try:
            value = real.cell_contents
        except ValueError:  # not assigned yet
            made, seen = types.CellType(), MISSING
        else:
            self.trace.log.keep(real)
            guard = Guard(real, "cell_contents", value)
            seen = self.trace.note_outside(StateSlot(real, "cell_contents"), guard, value)
            made = types.CellType(seen)
        self.cells[id(real)] = (real, made, seen)
        return made

    def is_rebound(self) -> bool:
        """Return whether anything was rebound."""
        with self.trace.log.fork() as overlay:
            self.write()
        return bool(overlay)

    def write(self) -> None:
        """Put what was rebound into the side-effect log."""
        for real, ours, before in self.cells.values():
            try:
                now = ours.cell_contents
            except ValueError:
                continue
            if now is not before:
                self.trace.log.set(("cell", id(real)), real, now)
        for real, ours, first in self.globals.values():
            for name, before in first.items():
                now = ours.get(name, MISSING)
                if now is not before and now is not MISSING:
                    self.trace.log.set(("global", id(real), name), real, now)


@while_it_lives
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in a function and the functions inside of it."""
    inside = (_names_in(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return tuple(dict.fromkeys((*code.co_names, *itertools.chain.from_iterable(inside))))


@while_it_lives
def _globals_of(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the global names that a function and the functions inside of it read, and those that they assign."""
    read = dict.fromkeys(names_of(code, "LOAD_GLOBAL", "LOAD_NAME"))
    assigned = dict.fromkeys(names_of(code, "STORE_GLOBAL", "DELETE_GLOBAL"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more, stored = _globals_of(constant)
            read.update(dict.fromkeys(more))
            assigned.update(dict.fromkeys(stored))
    return tuple(n for n in read if n not in assigned), tuple(assigned)
