"""The steps of a plan: small closures over slots of a register list, one form for each arity and need.

A step takes the registers of its frame, reads its operands, calls its kernel and stores the result. What can be decided
when the plan is made is decided here, so that a step costs little more than its NumPy call:

- `ufunc_step`   a ufunc; `into` is the slot of an operand whose buffer takes the result; `rank0` keeps 0-D results
                 arrays
- `store_step`   any other op with one result; `array` is xp.asarray where NumPy may give a scalar for a 0-D tensor
- `several_step` an op with several results, or none
- `counted_step` does another one and counts what it made (budget.py)
- `clear_step`   forgets registers whose values are dead, so that their memory is free for what follows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from dy2st.runtime.interpreter.op_kernels import ELLIPSIS_OUT
from dy2st.runtime.memory_budget import here

Registers = list[Any]
Step = Callable[[Registers], None]


def take(slots: Sequence[int]) -> Callable[[Registers], tuple[Any, ...]]:
    """Return a function that reads these registers as a tuple."""
    if len(slots) > 1:
        return itemgetter(*slots)
    if not slots:
        return lambda r: ()
    (a,) = slots
    return lambda r: (r[a],)


def ufunc_step(f: Callable[..., Any], slots: Sequence[int], out: int, into: int | None, rank0: bool) -> Step:
    """Return the step of a ufunc of one or two operands, or of more."""
    if into is not None:
        return _ufunc_into(f, slots, out, into)
    if rank0:
        return _ufunc_rank0(f, slots, out)
    return _stored(f, slots, out)


def _by_name(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` with its last operand as `out`: NumPy 2.4 takes it by name only in maximum and minimum."""
    return lambda *operands: f(*operands[:-1], out=operands[-1])


def _ufunc_into(f: Callable[..., Any], slots: Sequence[int], out: int, into: int) -> Step:
    if f in (np.maximum, np.minimum):
        f = _by_name(f)
    if len(slots) == 1:

        def unary(r: Registers) -> None:
            x = r[into]
            r[out] = f(x, x)

        return unary
    if len(slots) == 2:
        a, b = slots

        def first(r: Registers) -> None:
            x = r[a]
            r[out] = f(x, r[b], x)

        def second(r: Registers) -> None:
            y = r[b]
            r[out] = f(r[a], y, y)

        return first if into == a else second
    read = take(slots)

    def several(r: Registers) -> None:
        r[out] = f(*read(r), r[into])

    return several


def _ufunc_rank0(f: Callable[..., Any], slots: Sequence[int], out: int) -> Step:
    if not ELLIPSIS_OUT:
        return _stored(lambda *operands: f(*operands)[...], slots, out)
    if len(slots) == 1:
        (a,) = slots

        def unary(r: Registers) -> None:
            r[out] = f(r[a], out=...)

        return unary
    if len(slots) == 2:
        a, b = slots

        def binary(r: Registers) -> None:
            r[out] = f(r[a], r[b], out=...)

        return binary
    read = take(slots)

    def several(r: Registers) -> None:
        r[out] = f(*read(r), out=...)

    return several


def store_step(f: Callable[..., Any], slots: Sequence[int], out: int, array: Any = None) -> Step:
    """Return the step of any op with one result; `array` is the array module when the result is a 0-D tensor."""
    if array is None:
        return _stored(f, slots, out)
    read, kind, asarray = take(slots), array.ndarray, array.asarray

    def step(r: Registers) -> None:
        made = f(*read(r))
        r[out] = made if isinstance(made, kind) else asarray(made)

    return step


def _stored(f: Callable[..., Any], slots: Sequence[int], out: int) -> Step:
    if len(slots) == 1:
        (a,) = slots

        def unary(r: Registers) -> None:
            r[out] = f(r[a])

        return unary
    if len(slots) == 2:
        a, b = slots

        def binary(r: Registers) -> None:
            r[out] = f(r[a], r[b])

        return binary
    if len(slots) == 3:
        a, b, c = slots

        def ternary(r: Registers) -> None:
            r[out] = f(r[a], r[b], r[c])

        return ternary
    read = take(slots)

    def several(r: Registers) -> None:
        r[out] = f(*read(r))

    return several


def several_step(f: Callable[..., Any], slots: Sequence[int], outs: Sequence[int], rank0: Sequence[bool],
                 xp: Any) -> Step:  # fmt: skip
    """Return the step of an op with several results, or none."""
    read = take(slots)
    if not outs:

        def effect(r: Registers) -> None:
            f(*read(r))

        return effect

    def step(r: Registers) -> None:
        for out, point, made in zip(outs, rank0, f(*read(r)), strict=True):
            r[out] = xp.asarray(made) if point else made

    return step


def counted_step(made: Step, outs: Sequence[int]) -> Step:
    """Return a step that looks at what another one has stored; MemoryError where a run may not hold it."""

    def step(r: Registers) -> None:
        made(r)
        meter = here.meter
        if meter is not None:
            for out in outs:
                meter.look(r[out])

    return step


def clear_step(slots: Sequence[int]) -> Step:
    """Return a step that forgets registers."""
    if len(slots) == 1:
        (a,) = slots

        def one(r: Registers) -> None:
            r[a] = None

        return one

    def several(r: Registers) -> None:
        for a in slots:
            r[a] = None

    return several
