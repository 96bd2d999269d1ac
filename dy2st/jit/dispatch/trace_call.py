"""The trace of one call of a static function: its arguments become inputs of the Program."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dy2st.errors import TraceError
from dy2st.ir.program import Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.jit.dispatch.concrete_program import fixed_values
from dy2st.jit.guards.call_signature import FlatCall, call_arguments, rebuild
from dy2st.jit.tracing.external_objects import mark
from dy2st.jit.tracing.grad_leaves import hook_refused
from dy2st.jit.tracing.trace import FunctionTrace, Traced, trace
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.input_spec import InputSpec
from dy2st.runtime.tracer.values.symbolic_scalar import NumPyNumber, Scalar
from dy2st.shapes import Extent


def trace_call(
    function: Callable[..., Any], signature: inspect.Signature, made: FlatCall, specs: dict[str, InputSpec],
    trace_of_call: FunctionTrace,
) -> Traced:  # fmt: skip
    """Trace a call with the arguments `made`; TraceError where no Program does what the call does to them."""

    def make_inputs(t: FunctionTrace) -> tuple[list[Value], Any, Any]:
        inputs: list[Value] = []
        leaves: list[Any] = []
        for i, (x, name) in enumerate(zip(made.leaves, made.names, strict=True)):
            value = t.root.argument(_type_of_leaf(t, made, i, specs.get(name)), name)
            inputs.append(value)
            number = Scalar(value) if i not in made.numpy else NumPyNumber(Scalar(value))
            leaves.append(t.wrap(value, x.stop_gradient) if isinstance(x, Tensor) else number)
        containers: dict[int, Any] = {}
        iterators = [t.iterator(x) for x in made.iterators]
        values = {name: rebuild(tree, leaves, containers, iterators) for name, tree in made.tree.items()}
        t.note_arguments(leaves, containers)
        t.arrays = {id(leaves[i]) for i in made.arrays}
        for x in fixed_values(made).values():  # the function may read and write them, but not while it is traced
            mark(t, x)
        return inputs, *call_arguments(signature, values)

    traced = trace(function, make_inputs, trace_of_call)
    _check(traced, made)
    return traced


def _type_of_leaf(t: FunctionTrace, made: FlatCall, i: int, spec: InputSpec | None) -> Type:
    """Return the type with which a leaf enters: every extent a symbol, but those that are declared or fixed."""
    x = made.leaves[i]
    if not isinstance(x, Tensor):
        return ScalarType("int" if isinstance(x, int) else "float")
    safe = "".join(c if c.isalnum() else "_" for c in made.names[i])
    shape: list[Extent] = [*t.extents.symbols(safe, x.ndim, i)]
    for axis, extent in enumerate(spec.shape if spec is not None else ()):
        shape[axis] = extent if extent >= 0 else shape[axis]
    for leaf, axis in made.fixed or ():
        if leaf == i:
            shape[axis] = x.payload.shape[axis]
    return TensorType(x.dtype, tuple(shape))


def _check(traced: Traced, made: FlatCall) -> None:
    """Refuse what would be done to something else than the arguments of a call."""
    for i in traced.grad_free:
        if made.leaves[i]._grad is not None:
            raise TraceError(
                f"the gradient of the argument `{made.names[i]}` is used, which it had before the call already: "
                "clear it before"
            )
    if any(made.leaves[i].leaf_hooks for i in traced.unhooked if i < len(made.leaves)):
        raise hook_refused()
    if not made.arrays.isdisjoint(traced.written_leaves):
        raise TraceError("an argument that is a NumPy array is written: give the function a tensor")
    if not made.sharing.isdisjoint(traced.written_leaves):
        raise TraceError(
            "two arguments share memory and one of them is written, which a Program takes for two tensors: "
            "give it a clone of one"
        )
