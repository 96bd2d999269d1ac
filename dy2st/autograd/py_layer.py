"""PyLayer: an operation in Python with a backward of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.autograd.traced_py_layer import apply_in_trace
from dy2st.functions.creation import zeros_like
from dy2st.ir.context import current, replaced
from dy2st.runtime.saved_tensors import saved_tensors_hooks
from dy2st.runtime.tape import Node, edges_of
from dy2st.runtime.tensor import Tensor


class PyLayerContext:
    """What forward leaves for backward: tensors by `save_for_backward`, anything else as an attribute."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._constant: set[int] = set()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward, packed where `saved_tensors_hooks` are current."""
        hooks = current().saved
        self._saved = tensors
        if hooks is not None:
            self._saved = tuple(_Kept(hooks, t) if isinstance(t, Tensor) else t for t in tensors)

    def saved_tensor(self) -> tuple[Any, ...]:
        """Return what was kept, a tuple."""
        return tuple(t.tensor() if isinstance(t, _Kept) else t for t in self._saved)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that no gradient flows through these results of forward."""
        self._constant = {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward gets zeros (else None) for results that have no gradient."""
        self._materialize = bool(value)


class _Kept:
    """A tensor whose elements are packed: its place on the tape stays, a leaf as the tensor that it is."""

    def __init__(self, hooks: saved_tensors_hooks, t: Tensor):
        self._packed = hooks.packed(t.array())
        self._node, self._index, self._constant = t._node, t._index, t.stop_gradient
        self._leaf = t if t._node is None and not t.stop_gradient else None

    def tensor(self) -> Tensor:
        if self._leaf is not None and current().grad:
            return self._leaf
        made = Tensor(self._packed.unpacked())
        made._node, made._index, made.stop_gradient = self._node, self._index, self._constant
        return made


class PyLayer:
    """Base of operations with a backward of their own: define `forward(ctx, ...)` and `backward(ctx, *gradients)`.

    `backward` takes a gradient for each tensor that `forward` returned and returns one (or None) for each tensor that
    `forward` took. Call the operation by `apply`.

    >>> import dy2st as paddle
    >>> class Cube(paddle.autograd.PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, dy):
    ...         x, = ctx.saved_tensor()
    ...         return dy * 3 * x * x
    >>> x = paddle.to_tensor(2.0, stop_gradient=False)
    >>> Cube.apply(x).backward()
    >>> float(x.grad)
    12.0
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute the results; to be defined."""
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any) -> Any:
        """Compute the gradients of what forward took; to be defined."""
        raise NotImplementedError("a PyLayer needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and backward when gradients are computed.

        In a function that `to_static` converts both become part of the Program. Raises NeedsPythonValue, for which such
        a function runs eagerly, where backward is more than arithmetic (`traced_py_layer.py`).
        """
        ctx = PyLayerContext()
        if current().trace is not None:
            return apply_in_trace(cls, ctx, args, kwargs)
        inputs = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        recorded = current().grad and any(not t.stop_gradient for t in inputs)
        with replaced(grad=False):
            out = cls.forward(ctx, *args, **kwargs)
        if not recorded:
            return out
        outs = [out] if isinstance(out, Tensor) else list(out)
        tensors = [t for t in outs if isinstance(t, Tensor)]
        made = {id(t): Tensor(t._payload) for t in tensors}
        edges, versions = edges_of(inputs)
        node = Node(cls.__name__, edges, [t._payload for t in tensors], _Backward(cls, ctx, inputs))
        node.versions, node.operands = versions, tuple(inputs)
        for i, t in enumerate(tensors):
            if t.dtype.is_differentiable and id(t) not in ctx._constant:
                new = made[id(t)]
                new._node, new._index, new.stop_gradient = node, i, False
        found = [made.get(id(t), t) for t in outs]
        return found[0] if isinstance(out, Tensor) else type(out)(found)


class _Backward:
    """How the tape goes back through one call."""

    def __init__(self, layer: type[PyLayer], ctx: PyLayerContext, inputs: Sequence[Tensor]):
        self.layer, self.ctx, self.inputs = layer, ctx, inputs

    def pull(self, results: Sequence[Any], cts: Sequence[Any], graph: bool) -> list[Any]:
        """Return the cotangents of the inputs: arrays, or Tensors where `graph`."""
        given: list[Tensor | None] = []
        for value, ct in zip(results, cts, strict=True):
            if ct is None and self.ctx._materialize:
                given.append(zeros_like(Tensor(value)))
            else:
                given.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        found = self.layer.backward(self.ctx, *given)
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        name = self.layer.__name__
        if len(listed) != len(self.inputs):
            raise ValueError(
                f"{name}.backward returned {len(listed)} gradients for {len(self.inputs)} tensors that forward took"
            )
        for i, (g, x) in enumerate(zip(listed, self.inputs, strict=True)):
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"{name}.backward: gradient {i} must be a Tensor or None, not {type(g).__name__}")
            if g is not None and list(g.shape) != list(x.shape):
                raise ValueError(f"{name}.backward: gradient {i} has shape {g.shape}, the tensor {x.shape}")
        return [g if g is None or graph else g._payload for g in listed]
