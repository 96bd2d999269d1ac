"""The short way of `x + y` in eager mode: two NumPy arrays of one dtype, or one and a Python number of its kind.

It does what `dispatch.apply` does for such operands, without what it does for all others: no attributes, no views, no
other devices, one result. A small addition takes a fraction of what the general way takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st.ir.context import current
from dy2st.ops.core.base import Op
from dy2st.ops.core.rounded import TANGENT
from dy2st.runtime.eager.dispatch import quietly, ufunc_of
from dy2st.runtime.eager.frequent_ops import calls_of, ended
from dy2st.runtime.eager.tape.node import Edge, Node, note_kept
from dy2st.runtime.eager.tape.op_derivative import ghost
from dy2st.runtime.eager.tensor import Tensor

ELSEWHERE: Any = object()
"""Stands for no result: these operands go the general way."""
_NUMBERS = (float, int)
_LARGEST = 65504.0
"""Larger numbers may overflow: they go the general way, as integers do beside those of few bits."""
_WIDE = 4  # bytes
_MOST_NUMBERS = 256
_made_of_numbers: dict[Any, Tensor] = {}
"""The tensors of the numbers that stood beside tensors last; nobody writes them."""


def short_way(op: Op, kinds: str = "biufc") -> Callable[[Any, Any], Any]:
    """Return a function of two operands that gives the tensor `op` makes of them, or ELSEWHERE.

    `kinds` are those of the dtypes that `op` takes as they are; one operand at least must be a Tensor.
    """
    ufunc = ufunc_of(op, 2)
    if ufunc is None or not isinstance(op.defined_on, str):
        return lambda x, y: ELSEWHERE
    kinds = "".join(kind for kind in kinds if kind in op.defined_on)
    differentiable, linear, name = op.differentiable, op.linear_together == (0, 1), op.name

    def run(x: Any, y: Any) -> Any:
        context = current()
        if context.trace is not None or context.amp is not None or context.saved is not None:
            return ELSEWHERE
        if y.__class__ in _NUMBERS:
            y = _beside(x, y)
        elif x.__class__ in _NUMBERS:
            x = _beside(y, x)
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            return ELSEWHERE
        made: Any = None
        calls: Any = None
        if context.process.ops is not None:
            calls = context.process.ops.get(op) or calls_of(context.process.ops, op, op, {})
            for call, code, plan in calls.ready:
                made = call(code, x, y)
                if made is not None:
                    made = made if made.__class__ is Tensor else ended(plan, made, (x, y))
                    break
        if made is None:
            a, b = x.payload, y.payload
            if a.__class__ is not ndarray or b.__class__ is not ndarray or a.dtype is not b.dtype:
                return ELSEWHERE
            if a.dtype.kind not in kinds:
                return ELSEWHERE
            made = Tensor(quietly(ufunc, a, b))
            if calls is not None and calls.open:
                calls.note(context.process, (x, y))
        if differentiable and context.grad and not (x.stop_gradient and y.stop_gradient):
            a, b = x.payload, y.payload
            if a.dtype.kind not in TANGENT:
                return made
            edges = [_edge(x), _edge(y)]
            if linear:
                node = Node(name, edges, (None,), (op, {}, [ghost(a), ghost(b)]))
            else:
                node = Node(name, edges, [made.payload], (op, {}, [a, b]))
                node.operands = (x, y)
                if x.stop_gradient or y.stop_gradient:
                    note_kept(node.operands)
            if x.storage_version is not None or y.storage_version is not None:
                versions = enumerate((x.storage_version, y.storage_version))
                node.versions = [(i, version, version.number) for i, version in versions if version is not None]
            made.tape_node, made.stop_gradient = node, False
        return made

    return run


def _beside(t: Any, value: float) -> Any:
    """Return a Python number as a 0-D tensor of the dtype of `t`, a tensor of floats; None for others."""
    array: Any = t.payload if isinstance(t, Tensor) else None
    if array.__class__ is not ndarray or not -_LARGEST <= value <= _LARGEST:
        return None
    dtype = array.dtype
    key = value, value.__class__, dtype
    made = _made_of_numbers.get(key)
    if made is not None:
        return made
    if dtype.kind == "f" or (dtype.kind == "i" and dtype.itemsize >= _WIDE and value.__class__ is int):
        made = Tensor(np.asarray(value, dtype))
        if value:  # 0.0 and -0.0 have one key
            if len(_made_of_numbers) >= _MOST_NUMBERS:
                _made_of_numbers.clear()
            made.payload.flags.writeable = False
            _made_of_numbers[key] = made
    return made


def _edge(t: Tensor) -> Edge:
    """Return where the cotangent of an operand goes."""
    if t.view_of is not None:
        t.view_of.refresh(t)
    if t.stop_gradient:
        return None
    return t if t.tape_node is None else (t.tape_node, t.tape_index)
