"""What every operation gave, in order: of eager mode, seen from outside, and of a Program, by calls put into it.

Eager mode is watched with a profile function that sees the two functions through which every op goes return; nothing
in them pays for it. A Program is watched by a `host_call` behind each operation, so that any way to run it can be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from dy2st.ir.clone import clone_program
from dy2st.ir.location import Location, user_location
from dy2st.ir.opdef import lookup
from dy2st.ir.program import Block, Operation, Program
from dy2st.ir.types import TensorType
from dy2st.kinds import is_tuple
from dy2st.ops.control.host_call import Host
from dy2st.ops.control.optional import Unreachable
from dy2st.ops.core.base import Op
from dy2st.records import field, record
from dy2st.runtime.eager import binary_fast_path, dispatch
from dy2st.runtime.eager.tensor import Tensor

LARGEST = 1 << 22
"""Results of more elements than this are remembered by every so many elements."""


@record(frozen=True)
class Event:
    """One operation that ran: the user's line, the op's name, and copies of its results that are tensors."""

    location: Location | None
    op: str
    arrays: tuple[np.ndarray, ...]


@record
class EagerEvents:
    """A `with` that notes every operation of eager mode in this thread.

    `made` has the tensor of each event, where it has one, and `consumers` the events that used a tensor, by its id.
    `returned_at` is the line where a call of `code` returned last.
    """

    code: CodeType | None = None
    returned_at: Location | None = None
    events: list[Event] = field(default_factory=list[Event])
    made: list[Tensor | None] = field(default_factory=list["Tensor | None"])
    consumers: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def __enter__(self) -> EagerEvents:
        self._before = sys.getprofile()
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _profile(self, frame: FrameType, what: str, result: Any) -> None:
        if what != "return":
            return
        if frame.f_code is self.code:
            self.returned_at = Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        if frame.f_code not in _WATCHED or result is None or result is binary_fast_path.ELSEWHERE:
            return
        names = frame.f_locals
        operands = names["operands"] if "operands" in names else (names["x"], names["y"])
        self.note(names["op"], operands, result)

    def note(self, op: Op, operands: Any, result: Any) -> None:
        """Note one operation."""
        results: tuple[Any, ...] = result if is_tuple(result) else (result,)
        arrays = tuple(copied(t.payload) for t in results if isinstance(t, Tensor))
        for t in operands:
            self.consumers.setdefault(id(t), []).append(len(self.events))
        self.events.append(Event(user_location(), op.name, arrays))
        self.made.append(result if isinstance(result, Tensor) else None)


def _codes_of(function: Callable[..., Any]) -> list[CodeType]:
    """List the code of a function and of those inside of it."""
    inner = [c for c in function.__code__.co_consts if isinstance(c, CodeType)]
    return [function.__code__, *inner]


_WATCHED = frozenset((dispatch.apply.__code__, dispatch.view.__code__, *_codes_of(binary_fast_path.short_way)[1:]))


def copied(array: Any) -> np.ndarray:
    """Return a copy of an array on the CPU; of a very large one, some of the elements."""
    if array.size > LARGEST:
        array = array.reshape(-1)[:: array.size // LARGEST + 1]
    return np.array(array.get() if hasattr(array, "get") else array)


def watched(program: Program, events: list[Event]) -> Program:
    """Return a copy of a Program that appends an event for each operation with tensors as results."""
    copy = clone_program(program)
    for block in copy.functions.values():
        _watch(block, events)
    return copy


def _watch(block: Block, events: list[Event]) -> None:
    operations: list[Operation] = []
    for operation in block.operations:
        operations.append(operation)
        for inner in operation.blocks:
            _watch(inner, events)
        seen = [v for v in operation.results if isinstance(v.type, TensorType)]
        if seen and not operation.blocks and not operation.op.is_call and not isinstance(operation.op, Unreachable):
            host = Host(_Noting(operation, events))
            operations.append(Operation(lookup("host_call"), seen, {"host": host, "types": ()}, [], operation.location))
    block.operations[:] = operations


class _Noting:
    """The Python function of a `host_call` that notes what an operation gave."""

    __name__ = "note"

    def __init__(self, operation: Operation, events: list[Event]):
        self.place, self.op, self.events = operation.location, operation.name, events

    def __call__(self, *arrays: Any) -> None:
        self.events.append(Event(self.place, self.op, tuple(map(copied, arrays))))
