"""The pull-back of one eager op, derived once per kind of call and then run as a small Program.

A kind is that of the call (`op_derivative.py`), which operands want a cotangent and which results have one. The Program
takes what it uses of: operands, results, extents, cotangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dy2st.autodiff.reverse import pull_back
from dy2st.errors import AutodiffError
from dy2st.ops.core.base import Op
from dy2st.records import record
from dy2st.runtime.eager.tape.op_derivative import TEMPLATED, OpDerivation, Place, attribute_key, shape_pattern
from dy2st.runtime.executor.executable import Compiled

SMALL = 256  # elements


class Ghost:
    """What the pull-back of a linear op needs of an operand: its shape and dtype, not its elements."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape = shape
        self.dtype = dtype


def ghost(x: Any) -> Any:
    """Return shape and dtype of an array; numbers and lists as they are.

    A small array that owns its memory stays as well: to let go of it is not worth the time.
    """
    if x.__class__ is np.ndarray and x.size <= SMALL and x.base is None:
        return x
    return Ghost(x.shape, x.dtype) if hasattr(x, "shape") else x


@record(frozen=True)
class OpPullback:
    """`compiled` takes the arguments that `uses` names, then the cotangents; gives those of operands `found`."""

    compiled: Compiled
    uses: tuple[Place, ...]
    found: tuple[int, ...]


_CACHE: dict[Any, OpPullback] = {}


def op_pullback(
    op: Op, attributes: dict[str, Any], operands: Sequence[Any], wanted: tuple[int, ...], seeded: tuple[int, ...]
) -> OpPullback:
    """Return the pull-back for a call on these operands (arrays, ghosts, numbers)."""
    pattern = shape_pattern(operands)
    if op.name in TEMPLATED:
        attributes = {"shape": tuple(-1 if e == -1 else None for e in attributes["shape"])}
    key = (op.name, attribute_key(attributes), pattern, wanted, seeded)
    found = _CACHE.get(key)
    if found is None:
        found = _CACHE[key] = _derive(op, attributes, pattern, wanted, seeded)
    return found


def _derive(
    op: Op, attributes: dict[str, Any], pattern: tuple[Any, ...], wanted: tuple[int, ...], seeded: tuple[int, ...]
) -> OpPullback:
    call = OpDerivation(op, attributes, pattern)
    back, arguments, outs = call.builder, call.arguments, call.outs
    cts = [back.argument(outs[i].type) for i in seeded]
    given = dict(zip([outs[i] for i in seeded], cts, strict=True))
    pulled = pull_back(back, call.block, [arguments[i] for i in wanted], given)
    found = tuple(i for i in wanted if arguments[i] in pulled)
    if back.residuals:
        raise AutodiffError(f"the derivative of '{op.name}' needs a value that was not kept")
    back.block.results = [back.use(pulled[arguments[i]]) for i in found]
    return OpPullback(*call.close(cts), found)
