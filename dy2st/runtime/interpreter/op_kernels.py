"""What a plan calls for an operation: the bare ufunc where `eval` is no more than that, else what `Op.compile` gives.

Whether `eval` is one ufunc is found out by running it once on marks that stand for arrays: `Add.eval` calls
`xp.add(x, y)` on exactly its operands and returns what that gives, so its kernel is `np.add`. An `eval` that looks
into its operands, or calls anything else, is left alone. (Turning 0-D scalars into arrays does not count.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation
from dy2st.ops.core.base import Op
from dy2st.ops.core.rounded import is_low, meaning


def bare_ufunc(op: OpDef, xp: Any, arity: int, attributes: dict[str, Any]) -> Callable[..., Any] | None:
    """Return the ufunc that `op.eval` calls on its operands and does nothing else, or None."""
    if not isinstance(op, Op) or not op.elementwise or type(op).compile is not Op.compile:
        return None
    operands = [_Mark() for _ in range(arity)]
    recorder = _Recorder(xp)
    try:
        result = op.eval(recorder, *operands, **attributes)
    except (_LooksInside, TypeError, AttributeError):
        return None  # not a failure: this eval needs real arrays
    if len(recorder.calls) != 1:
        return None
    function, given, made = recorder.calls[0]
    exactly = len(given) == arity and all(a is b for a, b in zip(given, operands, strict=True))
    return function if made is result and exactly and function.nin == arity and function.nout == 1 else None


def kernel(operation: Operation, xp: Any) -> Callable[..., Any]:
    """Return a function of the run-time operands that does what `eval` does."""
    if is_low(operation):
        return meaning(operation, xp)
    return operation.op.compile(xp, **operation.attributes)  # type: ignore[attr-defined]


class _LooksInside(Exception):
    """An `eval` asked a mark for something that only an array has."""


class _Mark:
    """Stands for an array; anything that is asked of it ends the trial."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise _LooksInside

    __getattr__ = __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __len__ = __iter__ = _refuse
    __getitem__ = __array__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class _Recorder:
    """Stands for the array module; remembers the ufuncs that are called with positional operands only."""

    def __init__(self, xp: Any):
        self.xp = xp
        self.calls: list[tuple[Any, tuple[Any, ...], _Mark]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "ndarray":
            return _Mark
        if name == "asarray":
            return _unchanged
        function = getattr(self.xp, name)
        if not isinstance(function, self.xp.ufunc):
            raise _LooksInside

        def record(*operands: Any) -> _Mark:
            made = _Mark()
            self.calls.append((function, operands, made))
            return made

        return record


def _unchanged(mark: _Mark) -> _Mark:
    """Stand for `xp.asarray` of what is an array."""
    return mark


def _takes_ellipsis() -> bool:
    """Return whether this NumPy knows `out=...`, which keeps 0-D results arrays (2.3 and later)."""
    try:
        return isinstance(np.add(1.0, 1.0, out=...), np.ndarray)
    except TypeError:
        return False


ELLIPSIS_OUT = _takes_ellipsis()
