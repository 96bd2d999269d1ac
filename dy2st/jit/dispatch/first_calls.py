"""A setting for debugging: the first calls of every kind also run eagerly, and both ways are compared.

It is for tests and for the first day of a new model: such a call takes three times as long as an eager one.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dy2st import config
from dy2st.ir.context import current, replaced
from dy2st.kinds import is_int
from dy2st.records import replace


def verify_first_calls(count: int = 2) -> None:
    """Let `jit.verify` run beside the first calls of each Program of the process; 0 ends that.

    The environment variable `DY2ST_VERIFY_CALLS` sets the number at import. Where a call differs from eager mode,
    Mismatch is raised with the differences and the line; everything is as it was before the call then.

    >>> import dy2st as paddle
    >>> paddle.jit.verify_first_calls(2)
    >>> double = paddle.jit.to_static(lambda x: x * 2)
    >>> float(double(paddle.to_tensor(3.0)))
    6.0
    >>> paddle.jit.verify_first_calls(0)
    """
    if not is_int(count) or isinstance(count, bool) or count < 0:
        raise ValueError(f"verify_first_calls takes a number of calls, not {count!r}")
    current().process.verified_calls = count


def verified(function: Callable[..., Any], calls: int, args: Any, keywords: Any) -> bool:
    """Compare a call with eager mode if it is one of the first `calls`; return whether the next one may be, too."""
    process = current().process
    if calls >= process.verified_calls:
        return False
    with replaced(process=replace(process, verified_calls=0)):  # the Programs of `verify` itself are not verified
        import_module("dy2st.jit.verifying.verify").verify(function, *args, calls=4, **keywords).check()
    return calls + 1 < process.verified_calls


current().process.verified_calls = config.verified_calls()
