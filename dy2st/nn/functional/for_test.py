"""What testing computes instead, told to a hand-built Program, whose `clone(for_test=True)` asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dy2st.ir.context import current
from dy2st.runtime.eager.tensor import Tensor


def unless_testing(out: Tensor, tested: Callable[[], Tensor], written: Sequence[Tensor] = ()) -> None:
    """Say that a Program for testing has `tested()` in place of `out`, and leaves `written` as it was.

    Only a hand-built Program asks; eagerly and under to_static, `training` has said already which of both it is.
    """
    trace = current().trace
    if trace is not None and hasattr(trace, "in_test"):
        trace.in_test(out, tested, written)
