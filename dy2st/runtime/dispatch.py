"""One op applied to tensors: run at once and recorded on the tape, or appended to the Program that is being built."""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.ir.context import current
from dy2st.ir.program import Value
from dy2st.ops.base import Op
from dy2st.runtime.places import namespace, namespace_of
from dy2st.runtime.tape import Node
from dy2st.runtime.tensor import Tensor, needs_value


def apply(op: Op, *operands: Any, **attributes: Any) -> Any:
    """Apply an op; return a Tensor, or a tuple of them where the op has several results.

    Operands are Tensors, and Python numbers where the op takes scalars.
    """
    context = current()
    if context.trace is not None:
        return context.trace.apply(op, operands, attributes)
    arrays = [t._payload if isinstance(t, Tensor) else t for t in operands]
    xp = np
    for array in arrays:
        if not isinstance(array, (np.ndarray, int, float)):
            if isinstance(array, Value):
                raise needs_value("a tensor of a Program that is being built was used outside of it")
            xp = namespace_of(array)
    if not arrays or isinstance(arrays[0], (int, float)):
        xp = namespace() if xp is np else xp
    with np.errstate(all="ignore"):
        out = op.eval(xp, *arrays, **attributes)
    if isinstance(out, tuple):
        made = tuple(Tensor(o) if isinstance(o, xp.ndarray) else Tensor(xp.asarray(o)) for o in out)
    else:
        made = Tensor(out if isinstance(out, xp.ndarray) else xp.asarray(out))
    if op.differentiable and context.grad:
        for t in operands:
            if isinstance(t, Tensor) and not t.stop_gradient:
                record(op, operands, arrays, attributes, made)
                break
    if op.is_view and isinstance(made, Tensor):
        _note_view(op, operands, attributes, made)
    return made


def record(op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any], made: Any) -> None:
    """Put a node on the tape when a result can carry a gradient."""
    results = made if isinstance(made, tuple) else (made,)
    live = [t for t in results if t._payload.dtype.kind in "fc"]
    if not live:
        return
    for t in operands:
        if isinstance(t, Tensor) and t._view is not None:
            t._view.refresh(t)
    node = Node.of_op(op, operands, arrays, attributes, results)
    for i, t in enumerate(results):
        if t._payload.dtype.kind in "fc":
            t._node, t._index, t.stop_gradient = node, i, False


def _note_view(op: Op, operands: Any, attributes: dict[str, Any], made: Tensor) -> None:
    base = operands[0]
    if isinstance(made._payload, np.ndarray) and not np.may_share_memory(made._payload, base._payload):
        return
    if base._version is None:
        base._version = [0]
    made._version = base._version
    made._seen = base._version[0]
    made._view = View(base, op, operands[1:], attributes)


class View:
    """How a tensor that shares its base's memory was made."""

    __slots__ = ("attributes", "base", "op", "operands")

    def __init__(self, base: Tensor, op: Op, operands: Any, attributes: dict[str, Any]):
        self.base, self.op, self.operands, self.attributes = base, op, operands, attributes

    def refresh(self, view: Tensor) -> None:
        """Give a view whose base was written since it was made the history of the base as it is now."""
        assert view._version is not None
        if view._seen == view._version[0]:
            return
        view._seen = view._version[0]
        if self.base._view is not None:
            self.base._view.refresh(self.base)
        if self.base.stop_gradient or not current().grad:
            return
        again = apply(self.op, self.base, *self.operands, **self.attributes)
        view._node, view._index, view.stop_gradient = again._node, again._index, again.stop_gradient
