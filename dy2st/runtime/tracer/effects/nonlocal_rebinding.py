"""Variables of other functions that a call rebinds inside of a branch or loop, through `nonlocal` and `global`.

A branch hands over the variables of its own function that it may rebind, those that closures rebind included, and a
loop carries them. What a function that is called there rebinds of yet another function is found when it is called
(`check_carried`): the branch or loop is then traced again with that variable among its own (`carrying_more`).
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from dy2st.errors import TraceError
from dy2st.ir.location import user_location
from dy2st.records import record
from dy2st.runtime.gc_pause import while_it_lives
from dy2st.runtime.tracer.effects.code_names import does
from dy2st.runtime.tracer.effects.trace import Trace
from dy2st.runtime.tracer.values.unbound import UnboundLocal

T = TypeVar("T")
Get = Callable[[], Any]
Set = Callable[[Any], None]


@record(frozen=True, eq=False)
class VariableLocation:
    """Where a variable is kept: in a cell, or under its name in the globals of a module."""

    name: str
    holder: Any

    def same(self, other: Any) -> bool:
        """Return whether two places are one."""
        return self.holder is other.holder and self.name == other.name

    def read(self) -> Any:
        """Return the variable; Undefined where it is not set."""
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:
                return UnboundLocal(self.name)
        return self.holder.get(self.name, UnboundLocal(self.name))

    def write(self, value: Any) -> None:
        """Set the variable."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.name] = value


class NotCarried(TraceError):
    """A variable is rebound inside of a branch or loop that does not hand it over."""

    def __init__(self, function: str, place: VariableLocation):
        self.place, at = place, user_location()
        super().__init__(
            f"`{function}` rebinds `{place.name}` of another function where that is not handed over",
            file=at.file if at else None,
            line=at.line if at else None,
            hint=f"return the new value, or keep `{place.name}` in a list, a dict or an attribute",
        )


class OneMoreVariable:
    """`get_state` and `set_state` of a branch or loop, with one variable more."""

    def __init__(self, get_state: Get, set_state: Set, place: VariableLocation):
        self.inner, self._set, self.place = get_state, set_state, place

    def get(self) -> tuple[Any, ...]:
        return (*self.inner(), self.place.read())

    def set(self, values: Sequence[Any]) -> None:
        self._set(tuple(values[:-1]))
        self.place.write(values[-1])


def carrying_more(
    trace: Trace, run: Callable[[Get, Set, list[str]], T], get_state: Get, set_state: Set, names: Sequence[str]
) -> T:
    """Trace a branch or loop, again with more variables as long as calls inside of it rebind some."""
    before, mark = get_state(), trace.checkpoint()
    try:
        return run(get_state, set_state, list(names))
    except NotCarried as lost:
        set_state(before)
        if _carries(get_state, lost.place):  # it is one further out that does not
            raise
        trace.rollback(mark)
        more = OneMoreVariable(get_state, set_state, lost.place)
    return carrying_more(trace, run, more.get, more.set, [*names, more.place.name])


def check_carried(trace: Trace, made: Any, owner: Any = None) -> None:
    """Raise NotCarried where a converted function rebinds what a branch or loop around its call does not hand over.

    `owner` is the builder in which the variables are known to live.
    """
    if trace.builder.parent is None or not isinstance(made, FunctionType):
        return
    free, outer = _stored(made.__code__)
    cells = dict(zip(made.__code__.co_freevars, made.__closure__ or (), strict=True))
    for name in free:
        _check(trace, made, VariableLocation(name, cells[name]), owner)
    for name in outer:
        _check(trace, made, VariableLocation(name, made.__globals__), owner)


def _check(trace: Trace, made: FunctionType, place: VariableLocation, owner: Any) -> None:
    builder, owner = trace.builder, owner or _owner(trace, made, place.name)
    while builder is not owner and builder.parent is not None:
        get = trace.carried.get(id(builder))
        if get is None or not _carries(get, place):
            raise NotCarried(made.__name__, place)
        builder = builder.parent


def _owner(trace: Trace, made: FunctionType, name: str) -> Any:
    """Return the builder in which the function runs whose variable `name` is; None where it does not run any more."""
    for active in reversed(trace.active):
        f = active.function
        if made.__qualname__.startswith(f"{f.__qualname__}.<locals>.") and name in f.__code__.co_cellvars:
            return active.builder
    return None


def _carries(get_state: Any, place: VariableLocation) -> bool:
    """Return whether what reads the variables of a branch or loop reads this one."""
    if isinstance(get_state, MethodType) and isinstance(get_state.__self__, OneMoreVariable):
        return get_state.__self__.place.same(place) or _carries(get_state.__self__.inner, place)
    if not isinstance(get_state, FunctionType):
        return False
    if isinstance(place.holder, CellType):
        found = any(cell is place.holder for cell in get_state.__closure__ or ())
    else:
        found = get_state.__globals__ is place.holder and place.name in get_state.__code__.co_names
    return found or any(
        _carries(cell.cell_contents, place) for cell in get_state.__closure__ or () if _is_function(cell)
    )


def _is_function(cell: CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, (FunctionType, MethodType))
    except ValueError:  # not set yet
        return False


@while_it_lives
def _stored(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the free variables and the globals that a function, or a branch of it, assigns."""
    free: dict[str, None] = {}
    outer: dict[str, None] = {}
    for one in _parts(code):
        if not does(one, "STORE_DEREF", "STORE_GLOBAL"):
            continue
        for instruction in dis.get_instructions(one):
            if instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars:
                free[instruction.argval] = None
            elif instruction.opname == "STORE_GLOBAL":
                outer[instruction.argval] = None
    return tuple(free), tuple(outer)


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a converted function, and that of its branches and loop bodies."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType) and const.co_qualname == code.co_qualname:
            yield from _parts(const)
