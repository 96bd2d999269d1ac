"""bfloat16: what an op computes, it computes in float32 and rounds once, to the nearest number, of two the even one.

No op knows of this: it is done here, around `eval`, in every tier that calls it; `passes/lowering/decompose.py` writes
the same casts into a Program for native code. An op that only moves elements gets them as they are, so that views stay
views; so do random ops, whose numbers are of as many bits as the dtype has, and containers, which take any element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from dy2st.dtypes import bfloat16, float32
from dy2st.ir.opdef import OpDef
from dy2st.ir.program import Operation
from dy2st.ir.types import ScalarType, TensorType, Type

KIND = "V"
"""The kind of bfloat16 as NumPy writes it, which knows it as a dtype of somebody else's; no other tensor has it."""
TANGENT = "fc" + KIND
"""The kinds of arrays that have a derivative."""


def is_low(operation: Operation) -> bool:
    """Return whether an operation computes in float32 and rounds to bfloat16."""
    types = [v.type for v in (*operation.operands, *operation.results)]
    return (
        any(map(_is_low, types))
        and all(isinstance(t, (TensorType, ScalarType)) for t in types)
        and _rounds(operation.op)
    )


def meaning(operation: Operation, xp: Any) -> Callable[..., Any]:
    """Return what an operation does with its operands."""
    op: Any = operation.op
    if not is_low(operation):
        return partial(op.eval, xp, **operation.attributes)
    wide = _wide(operation.attributes)
    low = [_is_low(v.type) for v in operation.results]

    def run(*operands: Any) -> Any:
        made = op.eval(xp, *map(_widened, operands), **wide)
        if isinstance(made, tuple):
            several = cast("tuple[Any, ...]", made)
            return tuple(_narrowed(xp, m) if is_low else m for m, is_low in zip(several, low, strict=True))
        return _narrowed(xp, made) if low[0] else made

    return run


def evaluate(op: Any, xp: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Return what `eval` gives for arrays and numbers whose shapes need not be those of the IR."""
    made_low = attributes.get("dtype") is bfloat16
    if not _rounds(op) or not (made_low or any(map(has_low, operands))):
        return op.eval(xp, *operands, **attributes)
    if "dtype" not in attributes:
        made_low = next(has_low(x) for x in operands if hasattr(x, "dtype") and (has_low(x) or x.dtype.kind in "fc"))
    made = op.eval(xp, *map(_widened, operands), **_wide(attributes))
    if not made_low:
        return made
    if isinstance(made, tuple):
        return tuple(_narrowed(xp, m) if _is_wide(m) else m for m in cast("tuple[Any, ...]", made))
    return _narrowed(xp, made) if _is_wide(made) else made


def _rounds(op: OpDef) -> bool:
    """Return whether an op computes elements, of numbers that are not drawn."""
    moves = op.is_view or op.is_data_movement or op.is_gather or op.is_constant or op.is_identity or op.is_scalar
    return not (moves or op.effect or op.random or op.blocks or op.is_call or op.name == "bitcast")


def _wide(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float32 if value is bfloat16 else value for name, value in attributes.items()}


def has_low(x: Any) -> bool:
    """Return whether something is an array of bfloat16."""
    return getattr(getattr(x, "dtype", None), "kind", None) == KIND


def _is_low(t: Type) -> bool:
    return isinstance(t, TensorType) and t.dtype is bfloat16


def _is_wide(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.float32


def _widened(x: Any) -> Any:
    return x.astype(np.float32) if has_low(x) else x


def _narrowed(xp: Any, made: Any) -> Any:
    return xp.asarray(made).astype(bfloat16.numpy)
