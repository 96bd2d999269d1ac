"""Eager ops that a process calls often run native code through a thin call, however small their operands are.

An op on a few numbers is what stands around it: NumPy's state of errors, its choice of a loop, the tensor that is made.
Machine code does all of that in a fraction of the time (jit/dispatch/op_code.py): tensors in, tensors out. There is a
Program of one op for each kind of call, as for large arrays (native_ops.py). Its code is made on a thread beside when a
kind was met some hundred times, and waited for at a later call: the number of the call says what runs it, never time.

Ops of which NumPy is as fast on large arrays are called in this way with small ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from dy2st import config
from dy2st.forks import Locked
from dy2st.ir.context import Process, current
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.native_ops import REFUSALS, is_plain, op_program
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tape.op_derivative import shape_pattern
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.signal_delivery import comes_from_handler

Code = tuple[Callable[..., Any], Callable[..., Any], Any]
"""The thin call; what it calls; and whose `ended` says what a number stands for that it gave."""
_TENSORS = (Tensor, Parameter)
_MOST_KEYS, _MOST_CODE, _MOST_KINDS = 1024, 4, 16
_SMALL = 4096
"""Elements of an operand, of an op that is NumPy's on large arrays. Sums are so until they are called often: NumPy's
take two to four times as long, but are added up in another order, and a few calls shall have the same bits.
"""
_SEEN = 2
"""How often a kind of call is looked at before its code is made."""


class Calls(Locked):
    """The calls of one op with one set of attributes."""

    def __init__(self, op: Op, attributes: dict[str, Any]):
        super().__init__()
        self._op, self._attributes = op, attributes
        self.ready: tuple[Code, ...] = ()
        self.most = None if op.native_in_eager or op.monoid == "add" else _SMALL
        """The elements up to which an operand is taken; None: any number."""
        self.open = not (op.effect or op.random or op.blocks) and all(map(_is_told, attributes.values()))
        """Whether there may be more code."""
        self._misses = 0
        self._kinds: dict[Any, Any] = {}
        """By kind of call: how often it was looked at, or what makes its code; None where that is done."""

    def run(self, operands: Sequence[Any]) -> Any:
        """Return the result, or a list of them, of a call that there is code for; None for any other."""
        most = self.most
        if most is not None:
            for t in operands:
                if t.__class__ not in _TENSORS or t.payload.size > most:
                    return None
        for call, code, plan in self.ready:
            made = call(code, *operands)
            if made is not None:
                return made if made.__class__ is not int else ended(plan, made, operands)
        return None

    def note(self, process: Process, operands: Sequence[Any]) -> None:
        """Count a call that there was no code for, and look at one of many."""
        self._misses += 1
        if self._misses % (process.looks_at_op or 1) == 0:
            with self._lock:
                self._look(process, operands)

    def _look(self, process: Process, operands: Sequence[Any]) -> None:
        kinds = self._kinds
        kind = _kind_of(self._op, operands, self.most)
        if kind is None:
            return
        found = kinds.get(kind, 0)
        if found is None:
            return
        now = process.looks_at_op == 0
        if found.__class__ is int:
            found += 1
            if found >= _SEEN or now:
                program = op_program(self._op, kind[1], self._attributes)
                found = None if program is None else process.op_code(program, operands)
            kinds[kind] = found
            if not now:
                return
        if found is not None:
            kinds[kind], code = None, found.made()
            if code is not None:
                self.ready = (*self.ready, code)
        self.open = len(self.ready) < _MOST_CODE and len(kinds) < _MOST_KINDS


def calls_of(table: dict[Any, Calls], key: Any, op: Op, attributes: dict[str, Any]) -> Calls:
    """Return what is known of calls that were not met before."""
    if len(table) >= _MOST_KEYS:
        table.clear()
    return table.setdefault(key, Calls(op, attributes))


def _kind_of(op: Op, operands: Sequence[Any], most: int | None) -> tuple[Any, Any] | None:
    """Return what one Program, and one thin call, serve: classes, dtypes and shapes; None where none is made."""
    classes = tuple([t.__class__ for t in operands])
    if not classes or not all(c in _TENSORS for c in classes):
        return None
    arrays = [t.payload for t in operands]
    if any(a.__class__ is not ndarray or (most is not None and a.size > most) for a in arrays):
        return None
    shape = arrays[0].shape
    if op.elementwise and all(a.shape == shape for a in arrays):
        return classes, tuple((a.dtype, tuple(range(a.ndim))) for a in arrays)
    return classes, shape_pattern(arrays)


def _is_told(x: Any) -> bool:
    """Return whether an attribute is told from others by what it is equal to: 0.0 is to -0.0, and 1.0 to 1."""
    if x.__class__ is tuple:
        return all(map(_is_told, x))
    return is_plain(x) and not (x.__class__ is float and x.is_integer())


def ended(plan: Any, made: int, operands: Sequence[Any]) -> Any:
    """Return what a run gave that did not end well; None where `eval` is to say what is wrong."""
    try:
        results = plan.ended(made, [t.payload for t in operands])
    except REFUSALS as error:
        if comes_from_handler(error):
            raise
        return None
    return Tensor(results[0]) if len(results) == 1 else [*map(Tensor, results)]


if (_told := config.eager_native()) is None or _told == 0:
    current().process.ops = {}
    current().process.looks_at_op = 128 if _told is None else 0
