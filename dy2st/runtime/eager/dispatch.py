"""One op applied to tensors: run at once and recorded on the tape, or appended to the Program that is being built."""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st.dtypes import DType, of_array
from dy2st.ir.context import current
from dy2st.ir.opdef import EVERY_KIND, undefined
from dy2st.ir.program import Value
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.device import namespace, namespace_of
from dy2st.runtime.eager.native_ops import run_natively
from dy2st.runtime.eager.tape.node import Node
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.eager.version_counter import VersionCounter
from dy2st.runtime.interpreter.op_kernels import bare_ufunc


def apply(op: Op, *operands: Any, **attributes: Any) -> Any:
    """Apply an op; return a Tensor, or a tuple of them where the op has several results.

    Operands are Tensors, and Python numbers where the op takes scalars.
    """
    context = current()
    if context.amp is not None:
        operands = context.amp.cast(op, operands, apply)
    if context.trace is not None:
        return context.trace.apply(op, operands, attributes)
    arrays: list[Any] = []
    here, bare, large, needs = False, not attributes, False, False
    least = context.process.native_from
    for t in operands:
        if isinstance(t, Tensor):
            array = t._payload
            arrays.append(array)
            if array.__class__ is ndarray:
                here = True
                if array.size >= least:
                    large = True
            else:
                bare = False
            if not t.stop_gradient:
                needs = True
        else:
            arrays.append(t)
            bare = False
    kinds = op.defined_on
    if kinds is not EVERY_KIND and not (here and kinds.__class__ is str and _are_taken(arrays, kinds)):
        op.refuse_dtypes(_dtypes(arrays))
    kernel = ufunc_of(op, len(arrays)) if bare and here else None
    made: Any
    try:
        if kernel is not None:
            made = Tensor(quietly(kernel, *arrays))
        elif here and not op.effect and not (op.native_in_eager and (large or op.random)) and _are_plain(arrays):
            made = _made_of(quietly_run(op.eval, np, *arrays, **attributes), op, operands, arrays, attributes)
        else:
            made = _evaluate(op, operands, arrays, attributes)
    except TypeError as error:
        if str(error).startswith("ufunc "):  # NumPy has no such loop
            raise undefined(op.name, _dtypes(arrays)) from None
        raise
    if needs and context.grad and op.differentiable:
        record(op, operands, arrays, attributes, made)
    return made


def _dtypes(arrays: list[Any]) -> list[DType | None]:
    return [of_array(a) if hasattr(a, "dtype") else None for a in arrays]


def _are_taken(arrays: list[Any], kinds: Any) -> bool:
    for a in arrays:  # noqa: SIM110  a generator takes three times as long
        if a.__class__ is not ndarray or a.dtype.kind not in kinds:
            return False
    return True


def _are_plain(arrays: list[Any]) -> bool:
    for a in arrays:  # noqa: SIM110  likewise
        if a.__class__ is not ndarray and a.__class__ is not int and a.__class__ is not float:
            return False
    return True


def _evaluate(op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any]) -> Any:
    """Run native code or `eval`, on arrays of any device."""
    xp = namespace_for(arrays)
    out = run_natively(op, arrays, attributes) if xp is np and op.native_in_eager else None
    if out is None:
        with np.errstate(all="ignore"):
            out = op.eval(xp, *arrays, **attributes)
    return _made_of(out, op, operands, arrays, attributes, xp)


def _made_of(
    out: Any, op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any], xp: Any = np
) -> Any:  # fmt: skip
    """Return what `eval` gave as tensors; one shares memory with an operand only where the op gives a view."""
    if out.__class__ is tuple:
        return tuple(Tensor(_owned(xp, o, arrays)) for o in out)
    if op.is_view and op.makes_view(**attributes):
        made = Tensor(out)
        note_view(op, operands, attributes, made)
        return made
    return Tensor(_owned(xp, out, arrays))


def _owned(xp: Any, out: Any, arrays: list[Any]) -> Any:
    """Return a result as an array that shares no memory with the operands."""
    if not isinstance(out, xp.ndarray):
        return xp.asarray(out)
    shares = out.base is not None
    for a in arrays:
        if a is out:
            return out.copy()
        if shares and isinstance(a, xp.ndarray) and xp.may_share_memory(out, a):
            return out.copy()
    return out


def namespace_for(arrays: list[Any]) -> Any:
    """Return the array module of operands: that of the first array, the current place's where there is none."""
    found = None
    for array in arrays:
        if isinstance(array, np.ndarray):
            found = found or np
        elif isinstance(array, Value):
            raise needs_value("a tensor of a Program that is being built was used outside of it")
        elif not isinstance(array, (int, float)):
            if not hasattr(array, "dtype"):
                raise needs_value(f"a symbolic value ({type(array).__name__}) was used outside of its Program")
            if found is np:
                raise ValueError("operands are on different devices; move them to one with x.cpu() or x.cuda()")
            found = namespace_of(array)
    if found is np and any(not isinstance(a, (np.ndarray, int, float)) for a in arrays):
        raise ValueError("operands are on different devices; move them to one with x.cpu() or x.cuda()")
    return found or namespace()


# Bare ufuncs skip `eval` and run where NumPy's floating-point warnings are off. Entering `np.errstate` costs
# three times an addition; running in a context that was set up once costs next to nothing. A context serves one caller
# at a time: it is taken from the list and put back (both atomic).
_KERNELS: dict[tuple[Op, int], Any] = {}
_QUIET: list[Context] = []


def ufunc_of(op: Op, arity: int) -> Any:
    """Return the ufunc that `op.eval` is on NumPy arrays, or None."""
    key = (op, arity)
    try:
        return _KERNELS[key]
    except KeyError:
        found = _KERNELS[key] = bare_ufunc(op, np, arity, {})
        return found


def quietly_run(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Run what neither sees nor changes the current context, without NumPy's warnings."""
    try:
        quiet = _QUIET.pop()
    except IndexError:
        quiet = _new_quiet()
    try:
        return quiet.run(function, *arguments, **keywords)
    finally:
        _QUIET.append(quiet)


def quietly(ufunc: Any, *arrays: Any) -> Any:
    """Run a ufunc likewise; the result is an array also where it is 0-D."""
    try:
        quiet = _QUIET.pop()
    except IndexError:
        quiet = _new_quiet()
    try:
        made = quiet.run(ufunc, *arrays)
    finally:
        _QUIET.append(quiet)
    return made if made.__class__ is ndarray else np.asarray(made)


def _new_quiet() -> Context:
    quiet = copy_context()
    quiet.run(np.seterr, all="ignore")
    return quiet


def record(op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any], made: Any) -> None:
    """Put a node on the tape when a result can carry a gradient."""
    if made.__class__ is Tensor:
        if made._payload.dtype.kind not in "fc":
            return
        for t in operands:
            if isinstance(t, Tensor) and t._view is not None:
                t._view.refresh(t)
        made._node = node = Node.of_op(op, operands, arrays, attributes, (made,))
        made.stop_gradient = False
        if current().saved is not None:
            current().saved.keep(node)
        return
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
    if current().saved is not None:
        current().saved.keep(node)


def note_view(op: Op, operands: Any, attributes: dict[str, Any], made: Tensor) -> None:
    """Note that a tensor was made as a view of the first operand, if it shares its memory."""
    base = operands[0]
    array = made._payload
    if isinstance(array, ndarray):
        surely = array.base is base._payload and array.size
        if not surely and not np.may_share_memory(array, base._payload):
            return
    version = base._version
    if version is None:
        version = base._version = VersionCounter()
    made._version, made._seen = version, version.number
    made._view = View(base, op, operands[1:], attributes)
    version.note(made)


class View:
    """How a tensor that shares its base's memory was made."""

    __slots__ = ("attributes", "base", "op", "operands")

    def __init__(self, base: Tensor, op: Op, operands: Any, attributes: dict[str, Any]):
        self.base, self.op, self.operands, self.attributes = base, op, operands, attributes

    @property
    def keeps_history(self) -> bool:
        """Whether gradients flow between view and base (not through `detach`)."""
        return self.op.differentiable

    was_written = False
    """Whether a Program wrote through a view that a call cannot take again."""

    @property
    def repeatable(self) -> bool:
        """Whether a call can take the view of a real tensor."""
        return True

    def again(self, recorder: Any, base: Value) -> Tensor:
        """Take the view in a Program, of what the base is now."""
        whole = recorder.wrap(base, recorder.stops(self.base))
        return recorder.apply(self.op, (whole, *self.operands), self.attributes)

    def put(self, recorder: Any, base: Value, value: Value) -> Value:
        """Return the base of a Program with `value` where the view shows it."""
        operands = [recorder.value_of(x) if isinstance(x, Tensor) else recorder.scalar(x) for x in self.operands]
        return self.op.unview(recorder.builder, base, value, operands, **self.attributes)

    def refresh(self, view: Tensor) -> None:
        """Give a view whose base was written since it was made the history of the base as it is now."""
        assert view._version is not None
        if view._seen == view._version.number or not current().grad:
            return
        view._seen = view._version.number
        if not self.keeps_history or (view._node is None and not view.stop_gradient):
            return
        if self.base._view is not None:
            self.base._view.refresh(self.base)
        again = apply(self.op, self.base, *self.operands, **self.attributes)
        view._node, view._index, view.stop_gradient = again._node, again._index, again.stop_gradient
