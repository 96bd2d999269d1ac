"""What reverse mode keeps of the iterations of a loop: the attribute `checkpoint` of loops, and the current choice.

"all"     what it needs of every iteration
"sqrt"    the carried values at about sqrt(2 t) of t iterations; the iterations between run again
n         the carried values at every n-th iteration; the iterations between run again
"""

from __future__ import annotations

from typing import Any

KEEP_ALL = "all"
SQRT = "sqrt"


def wrong_checkpoint(policy: Any) -> str | None:
    """Say why something is no such choice, None where it is one."""
    if (type(policy) is str and policy in (KEEP_ALL, SQRT)) or (type(policy) is int and policy > 0):
        return None
    return f'checkpoint is "all", "sqrt" or the number of turns between checkpoints, not {policy!r}'
