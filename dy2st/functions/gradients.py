"""What a tensor knows of its gradient: backward, hooks, clearing, leaving the tape."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from dy2st.functions.core import assigning
from dy2st.functions.shape import creation
from dy2st.ir.context import current, replaced
from dy2st.runtime.autograd_engine import backward as tape_walk
from dy2st.runtime.eager.inplace import own_gradient
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.control_flow.conditional import switch
from dy2st.runtime.tracer.values.union import Variant

_hook_numbers = itertools.count()


def backward(
    x: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False, *, dump_backward_graph_path: None = None
) -> None:
    """Sum the gradients of x, starting from `grad_tensor` (ones when None), into the `grad` of the leaves.

    >>> import dy2st as paddle
    >>> x = paddle.to_tensor([2.0], stop_gradient=False)
    >>> (x * x).backward()
    >>> x.grad.tolist()
    [4.0]
    """
    tape_walk.backward([x], [grad_tensor], retain_graph, dump_backward_graph_path=dump_backward_graph_path)


def clear_grad(x: Tensor) -> None:
    """Forget the gradient."""
    x.grad = None


def clear_gradient(x: Tensor, set_to_zero: bool = True) -> None:
    """Set the gradient to zeros, or forget it."""
    if set_to_zero and current().trace is None:
        zero_gradients((x,))
        return
    grad = x.grad
    if set_to_zero and isinstance(grad, Variant):  # in a trace: there or not, the run will tell
        trace = current().trace
        trace.write_grad(x, switch(trace, grad, lambda g: None if g is None else creation.zeros_like(g)))
        return
    x.grad = creation.zeros_like(grad) if set_to_zero and grad is not None else None


def zero_gradients(tensors: Iterable[Tensor]) -> None:
    """Set the gradients that exist to zeros, in eager mode; in their own memory where nobody else holds that."""
    for x in tensors:
        array = own_gradient(x)
        if array is not None:
            array.fill(0)
        elif x._grad is not None:
            x._grad = creation.zeros_like(x._grad)


def retain_grads(x: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in `grad` too; asked for again, it does nothing."""
    if x.is_leaf or x.stop_gradient:
        return
    if current().trace is not None:
        raise needs_value("retain_grads() of what a Program computes was asked for", "ask for it by paddle.grad")
    hooks = (x.tape_node.hooks or {}).get(x.tape_index, {})
    if not any(isinstance(hook, _Keep) and hook.tensor() is x for hook in hooks.values()):
        register_hook(x, _Keep(x))


class _Keep:
    """Adds the gradient of a tensor to its `grad`."""

    def __init__(self, tensor: Tensor):
        self.tensor = ref(tensor)

    def __call__(self, gradient: Tensor) -> None:
        x = self.tensor()
        if x is not None:
            x._grad = gradient if x._grad is None else x._grad + gradient


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
    """Call `hook` with the gradient of x in every backward; what it returns, if not None, replaces the gradient.

    Raises RuntimeError where x needs no gradient.
    """
    if x.stop_gradient:
        raise RuntimeError(
            "a hook on a tensor that needs no gradient (its stop_gradient is True) would never be called"
        )
    if current().trace is not None:
        return current().trace.register_hook(x, hook)
    if x.tape_node is None:
        if x.leaf_hooks is None:
            x.leaf_hooks = {}
        hooks = x.leaf_hooks
    else:
        if x.tape_node.hooks is None:
            x.tape_node.hooks = {}
        hooks = x.tape_node.hooks.setdefault(x.tape_index, {})
    number = next(_hook_numbers)
    hooks[number] = hook
    return HookHandle(hooks, number)


class HookHandle:
    """What `register_hook` returns; `remove()` takes the hook away."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Any], number: int):
        self._hooks, self._number = hooks, number

    def remove(self) -> bool:
        """Take the hook away; return whether it was still there."""
        return self._hooks.pop(self._number, None) is not None


def detach_(x: Tensor) -> Tensor:
    """Cut x off from its history; return it."""
    if current().trace is not None:
        with replaced(grad=True):  # the history is cut, not kept as under no_grad
            current().trace.write(x, assigning.detach(x))
        return x
    x.tape_node, x.tape_index, x.stop_gradient = None, 0, True
    return x
