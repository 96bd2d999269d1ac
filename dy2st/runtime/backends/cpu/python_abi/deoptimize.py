"""What ends a native run that cannot go on: the interpreter runs the Program from the start.

What the native run has done that is seen outside (printed, warned, called a Python function) is not done again: its
outcomes are given out in their order. This is right because the same inputs lead to the same effects in the same order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from dy2st.ir.clone import clone_program
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Program
from dy2st.records import record
from dy2st.runtime.interpreter.planned import compile_plan
from dy2st.runtime.interpreter.reference import single


@record(frozen=True)
class EffectOutcome:
    """What an effect gave, or the error that it raised."""

    results: tuple[Any, ...] = ()
    error: Exception | None = None

    @classmethod
    def of(cls, results: Iterable[Any]) -> EffectOutcome:
        """Return results as they are now: a Python function may write into its arrays again."""
        return cls(tuple(r.copy() if isinstance(r, np.ndarray) else r for r in results))

    def given(self) -> tuple[Any, ...]:
        """Return the results, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.results


def deoptimize(program: Program, inputs: Sequence[Any], done: Sequence[EffectOutcome]) -> list[Any]:
    """Run a Program on the interpreter, but for its first effects: `done` says what they gave."""
    copy, left = clone_program(program), deque(done)
    for operation in copy.walk():
        if operation.op.effect:
            operation.op = cast(OpDef, _DoneBefore(operation.op, left))
    return compile_plan(copy).run(inputs)


class _DoneBefore:
    """An op with an effect, which gives the outcome of the native run while there is one left."""

    saveable = False

    def __init__(self, op: OpDef, left: deque[EffectOutcome]):
        self._op, self._left = op, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._op, name)

    def compile(self, xp: Any, **attributes: Any) -> Callable[..., Any]:
        """Return a function of the operands."""
        run, left = self._op.compile(xp, **attributes), self._left  # type: ignore[attr-defined]
        return lambda *operands: single(left.popleft().given()) if left else run(*operands)
