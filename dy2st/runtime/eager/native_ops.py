"""Eager ops on large arrays, and their VJPs: a Program of one op, which becomes native code as any Program does.

NumPy makes an array for each step of what has no ufunc of its own, on one thread: gelu of four million numbers takes it
0.6 s, and native code 0.7 ms. There is a Program for each kind of call (`op_derivative.py`): one for all extents. Its
first run is NumPy's, unless that would take longer than making the code, which an earlier process may have left
(`executor/tiering.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st import config
from dy2st.dtypes import DType
from dy2st.errors import Dy2stError
from dy2st.ir.builder import Builder, Names
from dy2st.ir.context import current
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.tape.op_derivative import argument_types, shape_pattern
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.signal_delivery import comes_from_handler

_MOST_KINDS = 1024
_PLAIN = (bool, int, float, str, type(None), DType)
REFUSALS = (Dy2stError, MemoryError, ValueError, IndexError, TypeError)
"""What wrong operands raise, here in other words than `eval` has for it."""
_programs: dict[Any, Compiled | None] = {}
_MANY_DRAWS = 256
_draws: dict[Op, int] = {}


def are_large(operands: Sequence[Any]) -> bool:
    """Return whether one of the operands is an array of NumPy's that is worth native code."""
    least = current().process.native_from
    return any(x.__class__ is ndarray and x.size >= least for x in operands)


def run_natively(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Return the result of an op on large arrays, or a tuple of its results; None where `eval` is to make it.

    That is so as well where a run raises: `eval` says then what is wrong.
    """
    if op.random and "shape" in attributes:  # one Program draws numbers for all shapes of a rank
        dims = attributes["shape"]
        if None in dims or (math.prod(dims) < current().process.native_from and not _is_drawn_often(op)):
            return None
        operands, attributes = [*operands, *dims], {**attributes, "shape": (None,) * len(dims)}
    elif not are_large(operands) and not _is_drawn_often(op):
        return None
    compiled = _program_of(op, operands, attributes)
    if compiled is None:
        return None
    try:
        made = compiled.run(operands, np)
    except REFUSALS as error:
        if comes_from_handler(error):
            raise
        return None
    return made[0] if len(made) == 1 else tuple(made)


def _is_drawn_often(op: Op) -> bool:
    """Count a draw of few numbers, for which NumPy takes ten times as long as native code does."""
    if not op.draws_bits:
        return False
    number = _draws[op] = _draws.get(op, 0) + 1
    return number > _MANY_DRAWS and current().process.native_from != math.inf


def _program_of(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Compiled | None:
    """Return the Program of one op on operands of this kind, arrays and numbers; None where NumPy runs it."""
    if not all(map(_is_taken, operands)):
        return None
    key = op, repr(attributes), shape_pattern(operands)
    try:
        return _programs[key]
    except KeyError:
        if len(_programs) >= _MOST_KINDS:
            _programs.clear()
        program = op_program(op, key[2], attributes)
        found = _programs[key] = None if program is None else Compiled(program, whole=True)
        return found


def _is_taken(x: Any) -> bool:
    return x.__class__ in (ndarray, int, float)


def op_program(op: Op, pattern: tuple[Any, ...], attributes: dict[str, Any]) -> Program | None:
    """Return a Program of one op on arguments of a shape pattern; None where there is none."""
    if not all(map(is_plain, attributes.values())):
        return None
    types = argument_types(pattern)
    b = Builder(names=Names(sum(len(one[1]) for one in pattern if isinstance(one, tuple))))
    arguments = [b.argument(kind) for kind in types]
    try:
        results = b.apply(op, arguments, attributes)
    except REFUSALS as error:
        if comes_from_handler(error):
            raise
        return None
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if not all(isinstance(value.type, TensorType) for value in results):
        return None
    b.block.results = results
    return Program({"main": b.block})


def is_plain(x: Any) -> bool:
    """Return whether an attribute is a plain value, or a tuple of them."""
    return isinstance(x, _PLAIN) or (isinstance(x, tuple) and all(map(is_plain, x)))


if (_told := config.eager_native()) is not None:
    current().process.native_from = _told
