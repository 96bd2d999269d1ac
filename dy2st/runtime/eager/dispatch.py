"""One op applied to tensors: run at once and recorded on the tape, or appended to the Program that is being built."""

from __future__ import annotations

from contextvars import Context, copy_context
from math import inf
from typing import Any

import numpy as np
from numpy import ndarray

from dy2st.dtypes import DType, of_array
from dy2st.ir.context import Context as EagerContext
from dy2st.ir.context import current
from dy2st.ir.opdef import EVERY_KIND, undefined
from dy2st.ir.program import Value
from dy2st.ops.core.base import Op
from dy2st.ops.core.rounded import KIND, TANGENT, evaluate
from dy2st.runtime.eager.device import namespace, namespace_of
from dy2st.runtime.eager.frequent_ops import calls_of
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
    if op.is_view and op.makes_view(**attributes):
        array = operands[0].payload
        if len(operands) == 1 and array.__class__ is ndarray and op.defined_on is EVERY_KIND:
            return _recorded_view(op, operands, attributes, op.eval(np, array, **attributes))
        return _apply(op, operands, attributes, context)
    process = context.process
    if process.ops is not None:
        key = (op, *attributes.items()) if attributes else op
        try:
            calls = process.ops[key]
        except KeyError:
            calls = calls_of(process.ops, key, op, attributes)
        except TypeError:  # an attribute that has no hash
            return _apply(op, operands, attributes, context)
        if calls.ready:
            made = calls.run(operands)
            if made is not None:
                if made.__class__ is list:
                    made = tuple(made)
                if context.grad and op.differentiable:
                    for t in operands:
                        if not t.stop_gradient:
                            record(op, operands, [t.payload for t in operands], attributes, made)
                            break
                return made
        if calls.open:
            made = _apply(op, operands, attributes, context)
            calls.note(process, operands)
            return made
    return _apply(op, operands, attributes, context)


def _apply(op: Op, operands: Any, attributes: dict[str, Any], context: EagerContext) -> Any:
    """Apply an op to arrays, as NumPy or native code of large arrays does it."""
    arrays: list[Any] = []
    here, plain, large, low, needs = False, True, False, False, False
    least = context.process.native_from if op.native_in_eager else inf
    kinds = op.defined_on
    every = kinds is EVERY_KIND
    taken = every or kinds.__class__ is str
    for t in operands:
        if isinstance(t, Tensor):
            array = t.payload
            arrays.append(array)
            if array.__class__ is not ndarray:
                plain = False
            else:
                here = True
                if array.size >= least:
                    large = True
                if array.dtype.kind not in kinds:
                    taken, low = False, low or array.dtype.kind == KIND
            if not t.stop_gradient:
                needs = True
        else:
            arrays.append(t)
            if t.__class__ is not int and t.__class__ is not float:
                plain = False
    if not taken or not (every or (here and plain)):
        op.refuse_dtypes(_dtypes(arrays))
    made: Any
    try:
        if here and plain and op.is_view and op.makes_view(**attributes):
            made = _viewed(op, operands, attributes, op.eval(np, *arrays, **attributes))
        elif here and plain and not (large or low or op.effect) and not (op.random and op.native_in_eager):
            kernel = None if attributes else ufunc_of(op, len(arrays))
            if kernel is not None:
                made = Tensor(quietly(kernel, *arrays))
            else:
                out = quietly_run(op.eval, np, *arrays, **attributes)
                fresh = op.fresh and out.__class__ is ndarray
                made = Tensor(out) if fresh else _made_of(out, op, operands, arrays, attributes)
        else:
            made = _evaluate(op, operands, arrays, attributes)
    except TypeError as error:
        if str(error).startswith("ufunc "):  # NumPy has no such loop
            raise undefined(op.name, _dtypes(arrays)) from None
        raise
    if needs and context.grad and op.differentiable:
        record(op, operands, arrays, attributes, made)
    return made


def view(op: Op, operands: Any, attributes: dict[str, Any], out: ndarray) -> Tensor:
    """Return what an op gives that views its first operand, an array that was taken already, in eager mode."""
    return _recorded_view(op, operands, attributes, out)


def _recorded_view(op: Op, operands: Any, attributes: dict[str, Any], out: Any) -> Tensor:
    made = Tensor(out)
    note_view(op, operands, attributes, made)
    x = operands[0]
    if not x.stop_gradient and op.differentiable and current().grad:
        record(op, operands, [x.payload, *operands[1:]], attributes, made)
    return made


def _viewed(op: Op, operands: Any, attributes: dict[str, Any], out: Any) -> Tensor:
    made = Tensor(out)
    note_view(op, operands, attributes, made)
    return made


def _dtypes(arrays: list[Any]) -> list[DType | None]:
    return [of_array(a) if hasattr(a, "dtype") else None for a in arrays]


def _evaluate(op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any]) -> Any:
    """Run native code or `eval`, on arrays of any device."""
    xp = namespace_for(arrays)
    out = run_natively(op, arrays, attributes) if xp is np and op.native_in_eager else None
    if out is None:
        with np.errstate(all="ignore"):
            out = evaluate(op, xp, arrays, attributes)
    return _made_of(out, op, operands, arrays, attributes, xp)


def _made_of(
    out: Any, op: Op, operands: Any, arrays: list[Any], attributes: dict[str, Any], xp: Any = np
) -> Any:  # fmt: skip
    """Return what `eval` gave as tensors; one shares memory with an operand only where the op gives a view."""
    if out.__class__ is tuple:
        return tuple(Tensor(_owned(xp, o, arrays)) for o in out)
    if op.is_view and op.makes_view(**attributes):
        return _viewed(op, operands, attributes, out)
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
        if isinstance(array, Value):
            raise needs_value("a tensor of a Program that is being built was used outside of it")
        if isinstance(array, (int, float)):
            continue
        if not hasattr(array, "dtype"):
            raise needs_value(f"a symbolic value ({type(array).__name__}) was used outside of its Program")
        own = namespace_of(array)
        if found not in (None, own):
            raise ValueError("operands are on different devices; move them to one with x.cpu() or x.cuda()")
        found = own
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
    """Put a node on the tape when a result can carry a gradient (as binary_fast_path.py does for two tensors)."""
    alone = made.__class__ is Tensor
    outs = [made.payload] if alone else [t.payload for t in made]
    if not (outs[0].dtype.kind in TANGENT if alone else any(a.dtype.kind in TANGENT for a in outs)):
        return
    for t in operands:
        if isinstance(t, Tensor) and t.view_of is not None:
            t.view_of.refresh(t)
    node = Node.of_op(op, operands, arrays, attributes, outs)
    if alone:
        made.tape_node, made.stop_gradient = node, False
    else:
        for i, t in enumerate(made):
            if outs[i].dtype.kind in TANGENT:
                t.tape_node, t.tape_index, t.stop_gradient = node, i, False
    saved = current().saved
    if saved is not None:
        saved.keep(node)


def note_view(op: Op, operands: Any, attributes: dict[str, Any], made: Tensor) -> None:
    """Note that a tensor was made as a view of the first operand, if it shares its memory."""
    base = operands[0]
    array, whole = made.payload, base.payload
    if isinstance(array, ndarray):
        owner = array.base  # of a view of a view NumPy gives the array that has the memory
        surely = array is whole or owner is whole or (owner is not None and owner is whole.base)
        if not (surely and array.size) and not np.may_share_memory(array, whole):
            return
    version = base.storage_version
    if version is None:
        version = base.storage_version = VersionCounter()
    made.storage_version, made.seen_base = version, version.number
    made.view_of = View(base, op, operands[1:], attributes)
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
        assert view.storage_version is not None
        if view.seen_base == view.storage_version.number or not current().grad:
            return
        view.seen_base = view.storage_version.number
        if not self.keeps_history or (view.tape_node is None and not view.stop_gradient):
            return
        if self.base.view_of is not None:
            self.base.view_of.refresh(self.base)
        again = apply(self.op, self.base, *self.operands, **self.attributes)
        view.tape_node, view.tape_index, view.stop_gradient = again.tape_node, again.tape_index, again.stop_gradient
