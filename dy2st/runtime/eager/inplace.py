"""Writing a tensor in place: memory, version, history.

An in-place form is the functional form and a write of its result. Eagerly the write

1. refuses a leaf that needs a gradient while gradients are on,
2. copies the result into the tensor's memory, so that views, bases and NumPy arrays over it see it,
3. counts up the version that base and views share, so that a VJP that needs the old elements refuses,
4. gives the tensor the history of the result, and its bases that of `op.unview`: the base in which the view is new.

In a trace nothing is written: the trace makes a new version of the base.
"""

from __future__ import annotations

from functools import lru_cache
from sys import getrefcount
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.context import current
from dy2st.ir.program import Program, Value
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.copy_on_write import can_move, leave_kept, move_to
from dy2st.runtime.eager.device import move, namespace_of, place_of
from dy2st.runtime.eager.saved_tensor_hooks import Packed
from dy2st.runtime.eager.tape.node import call
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.eager.version_counter import BY_PROGRAM, VersionCounter
from dy2st.runtime.executor.executable import Compiled
from dy2st.shapes import symbol


def write(x: Tensor, new: Tensor, *, apart: bool = False) -> Tensor:
    """Give `x` the elements and the history of `new`, which has its shape and dtype; return x.

    With `apart`, what derivatives need of the old elements stays as it was: where x has a history, it and its views go
    to memory of their own.

    Raises RuntimeError where x is a leaf that needs a gradient and gradients are on, ValueError and TypeError where
    shape and dtype differ.
    """
    context = current()
    if context.trace is not None:
        context.trace.write(x, new)
        return x
    refuse_values(x, new)
    _refuse_misfit(x, new)
    if context.grad:
        refuse_leaf(x)
    chain = [x]
    while (view := chain[-1].view_of) is not None:
        chain.append(view.base)
    old = [_Old(t) for t in chain]
    has_history = context.grad and not (new.stop_gradient and all(t.stop_gradient for t in chain))
    if apart and has_history and can_move(chain, new):
        move_to(chain[-1], _rewrite_history(chain, old, new).payload)
    else:
        leave_kept(x, BY_PROGRAM)
        note_overwritten(x)
        write_memory(x, new.payload)
        if has_history:
            _rewrite_history(chain, old, new)
    version = x.storage_version
    for t in chain:
        if version is not None and t.storage_version is version:
            t.seen_base = version.number
    if has_history and version is not None:
        _let_views_flow(version)
    return x


def _let_views_flow(version: VersionCounter) -> None:
    """Give views that needed no gradient the history that what they show has now."""
    for one in version.views:
        view = one()
        if view is not None and view.stop_gradient:
            view.view_of.refresh(view)


def write_memory(x: Tensor, array: Any) -> None:
    """Copy elements into a tensor's memory and count up its version; no history changes."""
    target = x.payload
    xp = namespace_of(target)
    if xp is np and not target.flags.writeable:
        raise ValueError("this tensor's memory is read-only, it cannot be written in place; clone() it first")
    if place_of(array) != place_of(target):
        array = move(array, place_of(target))
    xp.copyto(target, array, casting="unsafe")
    bump(x)


def own_gradient(x: Tensor) -> Any:
    """Return the array of a tensor's gradient where nobody else holds the two, so that nobody sees who writes there.

    None where somebody may, or where there is no gradient.
    """
    if x._grad is None or getrefcount(x._grad) != _ALONE or getrefcount(x._grad.payload) != _ALONE:
        return None
    g, array = x._grad, x._grad.payload
    is_own = type(array) is np.ndarray and array.base is None and array.flags.writeable
    return array if is_own and g.tape_node is None and g.stop_gradient else None


_sample = Tensor(np.zeros(1))
_ALONE = getrefcount(_sample.payload)
"""How many hold what one attribute holds while it is counted, in this version of Python."""


def bump(x: Tensor) -> None:
    """Count up the version that a tensor shares with its base and views."""
    if x.storage_version is None:
        x.storage_version = VersionCounter()
    x.storage_version.overwrite()


def refuse_leaf(x: Tensor) -> None:
    """Raise RuntimeError for a leaf that needs a gradient, or a view of one."""
    t = x
    while True:
        if t.tape_node is None and not t.stop_gradient:
            what = "a leaf that needs a gradient" if t is x else "a view of a leaf that needs a gradient"
            raise RuntimeError(
                f"{what} cannot be changed in place: its gradient would be lost; use the form that returns a new "
                "tensor, or write under paddle.no_grad()"
            )
        if t.view_of is None or not t.view_of.keeps_history:
            return
        t = t.view_of.base


def snapshot(x: Tensor) -> Tensor:
    """Return `x` as it is now, in memory of its own and with its history: what an in-place form computes from.

    Then the tape keeps the old elements, and a VJP that needs them is right.
    """
    return x if x.stop_gradient or not current().grad else copy_of(x)


def copy_of(x: Tensor) -> Tensor:
    """Return `x` as it is now, in memory of its own and with its history."""
    if x.view_of is not None:
        x.view_of.refresh(x)
    twin = Tensor(x.payload.copy(), x.stop_gradient)
    twin.tape_node, twin.tape_index = x.tape_node, x.tape_index
    return twin


class _Old:
    """History of a tensor before a write."""

    __slots__ = ("index", "node", "stop_gradient")

    def __init__(self, t: Tensor):
        self.node, self.index, self.stop_gradient = t.tape_node, t.tape_index, t.stop_gradient


def _rewrite_history(chain: list[Tensor], old: list[_Old], new: Tensor) -> Tensor:
    """Give a tensor that is written and its bases their new histories; return the last of them, as it is now."""
    fresh = new
    for i, t in enumerate(chain):
        t.tape_node, t.tape_index, t.stop_gradient = fresh.tape_node, fresh.tape_index, fresh.stop_gradient
        view = t.view_of
        if view is None or not view.keeps_history:
            break
        base, before = chain[i + 1], old[i + 1]
        past = Tensor(base.payload, before.stop_gradient)
        past.tape_node, past.tape_index = before.node, before.index
        fresh = _unview(view.op, past, fresh, view.operands, view.attributes)
    return fresh


def _unview(op: Op, base: Tensor, new: Tensor, operands: Any, attributes: dict[str, Any]) -> Tensor:
    """Return the base in which the view is `new`, recorded."""
    inputs = [base, new, *operands]
    kinds = tuple(_kind(t) for t in inputs)
    compiled = _unview_program(op, kinds, tuple(sorted(attributes.items())))
    return call(Tensor, compiled, inputs, namespace_of(base.payload))[0]


def _kind(t: Any) -> Any:
    if not isinstance(t, Tensor):
        return type(t).__name__
    return t.dtype, tuple(1 if e == 1 else None for e in t.payload.shape)


@lru_cache(maxsize=512)
def _unview_program(op: Op, kinds: tuple[Any, ...], attributes: tuple[tuple[str, Any], ...]) -> Compiled:
    b = Builder()
    values: list[Value] = []
    for i, kind in enumerate(kinds):
        if isinstance(kind, str):
            values.append(b.argument(ScalarType(kind)))
            continue
        dtype, ones = kind
        shape = tuple(symbol(f"e{i}_{axis}") if one is None else 1 for axis, one in enumerate(ones))
        values.append(b.argument(TensorType(dtypes.dtype(dtype), shape)))
    b.block.results = [op.unview(b, values[0], values[1], values[2:], **dict(attributes))]
    return Compiled(Program({"main": b.block}))


def refuse_values(x: Tensor, new: Tensor) -> None:
    """Raise NeedsPythonValue where one of the tensors belongs to a Program: outside of it there is nothing to write."""
    if isinstance(x.payload, Value) or isinstance(new.payload, Value):
        raise needs_value("a tensor of a Program that is being built was written outside of it")


def _refuse_misfit(x: Tensor, new: Tensor) -> None:
    if x.payload.shape != new.payload.shape:
        raise ValueError(
            f"an in-place operation cannot change the shape: the result has {new.shape}, the tensor {x.shape}"
        )
    if x.payload.dtype != new.payload.dtype:
        raise TypeError(f"an in-place operation keeps the dtype {x.dtype.name}, the result has {new.dtype.name}")


def note_overwritten(x: Tensor) -> None:
    """Tell the nodes that made a tensor and its bases that these results are no longer what they were."""
    t: Tensor | None = x
    while t is not None:
        node = t.tape_node
        if node is not None:
            kept = [one.of if isinstance(one, Packed) else one for one in node.results]
            xp = namespace_of(t.payload)
            hit = [isinstance(one, xp.ndarray) and xp.may_share_memory(one, t.payload) for one in kept]
            node.overwritten = (*(node.overwritten or ()), *(i for i, one in enumerate(hit) if one)) or None
        t = t.view_of.base if t.view_of is not None else None
