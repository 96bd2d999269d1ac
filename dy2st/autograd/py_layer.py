"""PyLayer: an operation in Python with a backward of its own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from dy2st.autograd.rules import tensors_among
from dy2st.autograd.traced_py_layer import apply_in_trace, has_jvp
from dy2st.functions.core.assigning import clone
from dy2st.functions.shape.creation import zeros_like
from dy2st.ir.context import current, replaced
from dy2st.runtime.autograd_engine.backward import grad
from dy2st.runtime.eager.saved_tensor_hooks import saved_tensors_hooks
from dy2st.runtime.eager.tape.node import Node, edges_of
from dy2st.runtime.eager.tensor import Tensor


class PyLayerContext:
    """What forward leaves for backward: tensors by `save_for_backward`, anything else as an attribute."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._node: Node | None = None
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
        found: list[Any] = []
        for t in self._saved:
            found.append(t.tensor(self._node) if isinstance(t, _Result) else t.tensor() if isinstance(t, _Kept) else t)
        return tuple(found)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that no gradient flows through these results of forward."""
        self._constant = {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Return whether backward gets zeros (else None) for results that have no gradient."""
        self._materialize = bool(value)

    def _own(self, results: Sequence[Any]) -> None:
        """Keep of results that were saved which they are: they have the derivatives that this layer gives them."""
        numbers = {id(t): i for i, t in enumerate(results)}
        kept: list[Any] = []
        for t in self._saved:
            index = numbers.get(t.source if isinstance(t, _Kept) else id(t))
            kept.append(t if index is None else _Result(index, t if isinstance(t, _Kept) else None))
        self._saved = tuple(kept)

    def _of(self, node: Node) -> PyLayerContext:
        """Return the context as a method sees it that is called for this node."""
        if not any(isinstance(t, _Result) for t in self._saved):
            return self
        seen = copy.copy(self)  # the node is not kept here: it holds this context
        seen._node = node
        return seen


class _Result:
    """A result of forward that was saved for backward, packed or not."""

    def __init__(self, index: int, kept: _Kept | None):
        self.index, self._kept = index, kept

    def tensor(self, node: Node | None) -> Tensor:
        """Return the result as it stands on the tape, of which the layer is the node."""
        assert node is not None
        made = Tensor(node.results[self.index] if self._kept is None else self._kept.tensor().payload)
        if current().grad:
            made.tape_node, made.tape_index, made.stop_gradient = node, self.index, False
        return made


class _Kept:
    """A tensor whose elements are packed: its place on the tape stays, a leaf as the tensor that it is."""

    def __init__(self, hooks: saved_tensors_hooks, t: Tensor):
        self.source = id(t)
        self._packed = hooks.packed(t.array())
        self._node, self._index, self._constant = t.tape_node, t.tape_index, t.stop_gradient
        self._leaf = t if t.tape_node is None and not t.stop_gradient else None

    def tensor(self) -> Tensor:
        if self._leaf is not None and current().grad:
            return self._leaf
        made = Tensor(self._packed.unpacked())
        made.tape_node, made.tape_index, made.stop_gradient = self._node, self._index, self._constant
        return made


class PyLayer:
    """Base of operations with a backward of their own: define `forward(ctx, ...)` and `backward(ctx, *gradients)`.

    `backward` takes a gradient for each tensor that `forward` returned and returns one (or None) for each tensor that
    `forward` took, those in lists and tuples too. Call the operation by `apply`.

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
        inputs = tensors_among((*args, *kwargs.values()))
        recorded = current().grad and any(not t.stop_gradient for t in inputs)
        with replaced(grad=False):
            out = cls.forward(ctx, *args, **kwargs)
        if not recorded:
            return out
        outs = [out] if isinstance(out, Tensor) else list(out)
        tensors = [t for t in outs if isinstance(t, Tensor)]
        made = {i: Tensor(t.payload) for i, t in enumerate(tensors)}
        edges, versions = edges_of(inputs)
        node = Node(cls.__name__, edges, [t.payload for t in tensors], _Derivatives(cls, ctx, inputs))
        ctx._own(tensors)
        node.versions, node.operands = versions, tuple(inputs)
        for i, t in enumerate(tensors):
            if t.dtype.is_differentiable and id(t) not in ctx._constant:
                new = made[i]
                new.tape_node, new.tape_index, new.stop_gradient = node, i, False
        new = iter(made.values())  # one of each place: what is returned twice has a gradient of each
        found = [next(new) if isinstance(t, Tensor) else t for t in outs]
        return found[0] if isinstance(out, Tensor) else type(out)(found)


class _Derivatives:
    """How the tape goes through one call, back and forth."""

    def __init__(self, layer: type[PyLayer], ctx: PyLayerContext, inputs: Sequence[Tensor]):
        self.layer, self.ctx, self.inputs = layer, ctx, inputs

    def pull(self, node: Node, cts: Sequence[Any], graph: bool) -> list[Any]:
        """Return the cotangents of the inputs: arrays, or Tensors where `graph`."""
        given: list[Tensor | None] = []
        for value, ct in zip(node.results, cts, strict=True):
            if ct is None and self.ctx._materialize:
                given.append(zeros_like(Tensor(value)))
            else:
                given.append(ct if ct is None or isinstance(ct, Tensor) else Tensor(ct))
        found = self._checked(self._called(node, self.layer.backward, given), self.inputs, "backward", "gradient")
        return [g if g is None or graph else g.payload for g in found]

    def push(self, node: Node, tangents: dict[int, Tensor]) -> dict[int, Tensor]:
        """Return the tangents of the results, from those of the tensors that forward took.

        They are what the layer's `jvp` says. Without one, backward is linear in the gradients that it takes, and its
        transpose is the forward derivative (Radul et al. 2023, "You Only Linearize Once").
        """
        results = [Tensor(value) for value in node.results]
        if has_jvp(self.layer):
            dense = [tangents[i] if i in tangents else zeros_like(x) for i, x in enumerate(self.inputs)]
            found = self._checked(self._called(node, self.layer.jvp, dense), results, "jvp", "tangent")  # type: ignore[attr-defined]
            return {i: t for i, t in enumerate(found) if t is not None}
        seeds = [zeros_like(t) for t in results]
        for seed in seeds:
            seed.stop_gradient = not seed.dtype.is_differentiable
        with replaced(grad=True):
            pulled = self._checked(self._called(node, self.layer.backward, seeds), self.inputs, "backward", "gradient")
        pairs = [
            (g, tangents[i]) for i, g in enumerate(pulled) if i in tangents and g is not None and not g.stop_gradient
        ]
        if not pairs:
            return {}
        outs, given = map(list, zip(*pairs, strict=True))
        found = grad(outs, seeds, given, create_graph=True, allow_unused=True)
        return {i: t for i, t in enumerate(found) if t is not None}

    def place(self, i: int, value: Tensor | None) -> Tensor:
        """Return a tensor with a place of its own on the tape, for input `i`: `value`, or zeros where it is None."""
        with replaced(grad=True):
            made = zeros_like(self.inputs[i]) if value is None else clone(value)
        made.stop_gradient = False
        return made

    def _called(self, node: Node, function: Any, given: Sequence[Any]) -> Any:
        return function(self.ctx._of(node), *given)

    def _checked(self, found: Any, likes: Sequence[Tensor], which: str, what: str) -> list[Any]:
        """Return what a method gave as a list that fits these tensors."""
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        name = f"{self.layer.__name__}.{which}"
        if len(listed) != len(likes):
            of = "tensors that forward took" if which == "backward" else "tensors that forward returned"
            raise ValueError(f"{name} returned {len(listed)} {what}s for {len(likes)} {of}")
        for i, (g, x) in enumerate(zip(listed, likes, strict=True)):
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"{name}: {what} {i} must be a Tensor or None, not {type(g).__name__}")
            if g is not None and list(g.shape) != list(x.shape):
                raise ValueError(f"{name}: {what} {i} has shape {g.shape}, the tensor {x.shape}")
        return listed
