"""The Recorder appends what happens to tensors to a Program; a trace and a hand-built Program are both recorders.

It reads and writes through the side-effect log: a tensor's elements are its payload until something was written in
place, then the log's entry; a view of a written base is computed again from the base.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from dy2st.errors import NeedsPythonValue, StructureError
from dy2st.ir.builder import Builder
from dy2st.ir.context import current
from dy2st.ir.program import Value, tensor_type
from dy2st.ir.types import INT, ScalarType, TensorType
from dy2st.ops.core.base import Op
from dy2st.runtime.eager.dispatch import View
from dy2st.runtime.eager.inplace import refuse_leaf
from dy2st.runtime.eager.tensor import Tensor, needs_value
from dy2st.runtime.tracer.effects.side_effect_log import SideEffectLog
from dy2st.runtime.tracer.recording.inner_gradients import RecordedGradients
from dy2st.runtime.tracer.recording.listed_numbers import MOST_LISTED, numbers_in
from dy2st.runtime.tracer.values.sentinels import MISSING, Key
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.symbolic_string import written
from dy2st.runtime.tracer.values.union import Variant


class Recorder(RecordedGradients):
    """Record operations on tensors; `builder` stands where the next one goes."""

    of_function = False
    """Whether a call of a function is recorded, which later calls stand for."""

    def __init__(self, builder: Builder):
        self.root = builder
        self.builder = builder
        self.log = SideEffectLog()
        self.needs: set[Value] = set()
        """Values through which a gradient flows."""
        self.freed: set[Value] = set()
        """Values whose history a backward pass of the Program's frees, as it does in eager mode."""
        self.rng_arguments: dict[str, Value] = {}
        self.views_of: dict[int, list[View]] = {}
        """The views that were taken of a tensor, by its id."""
        self.asked: NeedsPythonValue | None = None
        """What was raised last for a Python value that was asked for."""

    # ---- values --------------------------------------------------------------------------------------------------
    def value_of(self, t: Tensor) -> Value:
        """Return the value that a tensor has here."""
        views: list[Tensor] = []
        value = self.own_value(t)
        while value is None:
            views.append(t)
            t = t.view_of.base
            value = self.own_value(t)
        for view in reversed(views):
            value = self._view_value(view, value)
        return value

    def own_value(self, t: Tensor) -> Value | None:
        """Return the value that a tensor has by itself; None for a view, whose base may have been written."""
        written = self.log.get(("data", id(t)))
        if written is not MISSING:
            return written.payload
        payload = t.payload
        if t.view_of is None:
            return payload if isinstance(payload, Value) else self.state(t)
        return payload if isinstance(payload, Value) and not self.log.has_data else None

    def value_so_far(self, t: Tensor) -> Value | None:
        """Return the value that a tensor has here by itself; None where it has none, or nothing has asked for it."""
        written = self.log.get(("data", id(t)))
        payload = t.payload if written is MISSING else written.payload
        return payload if isinstance(payload, Value) else None

    def state(self, t: Tensor) -> Value:
        """Return the value of a tensor that comes from outside of the Program."""
        raise needs_value("a tensor from outside was used in a Program that is being built")

    def _view_value(self, t: Tensor, base: Value) -> Value:
        """Return the value of a view of what has the value `base` now."""
        view: View = t.view_of
        if isinstance(t.payload, Value) and t.seen_base is base:
            return t.payload
        return view.again(self, base).payload

    def wrap(self, value: Value, stop_gradient: bool = True) -> Tensor:
        """Return a tensor with this value."""
        if not stop_gradient:
            self.needs.add(value)
        return Tensor(value, stop_gradient)

    def is_leaf(self, t: Tensor) -> bool:
        """Return whether no operation that is being differentiated made a tensor."""
        return self.stops(t) or (t.payload.operation is None if isinstance(t.payload, Value) else t.tape_node is None)

    def stops(self, t: object) -> bool:
        """Return whether no gradient flows into a tensor."""
        while isinstance(t, Tensor):
            written = self.log.get(("data", id(t)))
            if written is not MISSING:
                return written.stop_gradient
            view: View | None = t.view_of
            if view is None or not view.keeps_history or self._is_current(t):
                return t.stop_gradient
            t = view.base
        return self.stops(t)

    def _is_current(self, t: object) -> bool:
        """Return whether nothing was written into what a view shows since it was made."""
        while isinstance(t, Tensor) and self.own_value(t) is None:
            base = t.view_of.base
            value = self.own_value(base)
            if t.seen_base is not (base.payload if value is None else value):
                return False
            t = base
        return True

    def scalar(self, x: Any) -> Value:
        """Return a number (Python's or symbolic, or a tensor of one element) as a scalar value."""
        if isinstance(x, Scalar):
            return x.value
        if isinstance(x, Tensor):
            return self.item(x).value
        return self.builder.scalar(x)

    def emit(self, name: str, operands: Sequence[Value], attributes: dict[str, Any] | None = None) -> Any:
        """Append an op on values."""
        return self.builder.emit(name, operands, attributes)

    # ---- what tensors ask ----------------------------------------------------------------------------------------
    def apply(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Append an op on tensors and numbers; return a tensor, a number, or a tuple of them."""
        if any(isinstance(x, Variant) for x in operands):
            return self.apply_to_variants(op, operands, attributes)
        values: list[Value] = []
        flows = False
        grad = current().grad and op.differentiable
        for x in operands:
            if isinstance(x, Tensor):
                value = self.value_of(x)
                if grad and not self.stops(x):
                    flows = True
                elif value in self.needs or (not grad and not self.stops(x)):
                    value = self.detached(value)
            else:
                value = self.scalar(x)
            values.append(value)
        if op.elementwise:
            values = self.builder.broadcast_all(values)
        results = self.builder.operation(op, values, attributes).results
        made = tuple(self._result(v, flows) for v in results)
        if op.is_view and op.makes_view(**attributes) and isinstance(made[0], Tensor):
            base = operands[0]
            made[0].view_of = View(base, op, operands[1:], attributes)
            made[0].seen_base = self.value_of(base)
            self.views_of.setdefault(id(base), []).append(made[0].view_of)
        return made[0] if len(made) == 1 else made

    def _result(self, value: Value, flows: bool) -> Any:
        if isinstance(value.type, ScalarType):
            return Scalar(value)
        if not isinstance(value.type, TensorType):
            return value
        return self.wrap(value, not (flows and value.type.dtype.is_differentiable))

    def detached(self, value: Value) -> Value:
        """Return a value through which no gradient flows."""
        if not (isinstance(value.type, TensorType) and value.type.dtype.is_differentiable):
            return value
        return self.builder.emit("detach", [value])

    def apply_to_variants(self, op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """Append an op of which an operand is a variant."""
        raise needs_value("a value that is one of several things was used in a Program built by hand")

    def shape_of(self, t: Tensor) -> list[Any]:
        """Return the extents of a tensor: ints where they are known, else symbolic ints."""
        value = self.value_of(t)
        assert isinstance(value.type, TensorType)
        extents: list[Any] = []
        for axis, extent in enumerate(value.type.shape):
            known = isinstance(extent, int)
            extents.append(extent if known else Scalar(self.builder.emit("dim", [value], {"axis": axis})))
        return extents

    def extents_behind(self, needed: Sequence[Any]) -> frozenset[str] | None:
        """Return the extents of inputs, as symbols, that numbers are made of alone; None where that is not known.

        There are none where something else is part of the numbers: then no extent tells them.
        """
        return frozenset()

    def shape_outside(self, t: Tensor) -> list[Any]:
        """Return the extents of a tensor that comes from outside of the Program."""
        return list(t.payload.shape)

    def item(self, t: Tensor) -> Scalar:
        """Return the one element of a tensor as a symbolic number."""
        value = self.value_of(t)
        known = numbers_in(value)
        if known is None or known.size != 1:
            return Scalar(self.builder.emit("item", [value]))
        number = known.item()
        return Scalar(self.builder.use(self.builder.scalar(number) if isinstance(number, int) else number))

    def text_of_object(self, x: Any, conversion: str, spec: str) -> tuple[Any, list[Value]]:
        """Return the part of a text for a Python object, and its operands."""
        return written(x, conversion, spec), []

    def list_of(self, t: Tensor) -> Any:
        """Return the elements of a tensor as nested lists of symbolic numbers, where it is known that they are few."""
        shape = tensor_type(self.value_of(t)).shape
        if not shape:
            return self.item(t)
        known = [e for e in shape if isinstance(e, int)]
        if len(known) < len(shape) or math.prod(known) > MOST_LISTED:
            return self.numpy_of(t).tolist()
        return [self.list_of(t[i]) for i in range(known[0])]

    def numpy_of(self, t: Tensor) -> Any:
        """Refuse: a symbolic tensor has no array yet."""
        raise needs_value("numpy() of a tensor of a Program that is being built was asked for")

    # ---- writes --------------------------------------------------------------------------------------------------
    def write(self, t: Tensor, new: Tensor) -> None:
        """Write the elements of `t` in place: into the log, and through a view into its base.

        A tensor through which a gradient flows keeps its history where gradients are off: a leaf stays that leaf.
        """
        if current().grad and not isinstance(t.payload, Value):
            refuse_leaf(t)
        value = self._fitted(t, new)
        flows = not self.stops(new) and current().grad
        if t.view_of is None:
            self.before_write(t)
            if not current().grad and not self.stops(t):
                value, flows = self.emit("renew", [value, self.value_of(t)]), True
            self.log.set(("data", id(t)), t, self.wrap(value, not flows))
            return
        view: View = t.view_of
        if flows and not view.keeps_history:
            raise StructureError(
                "a value that has a gradient is written into a detached tensor: write into a clone of it"
            )
        base = self.value_of(view.base)
        whole = view.put(self, base, value)
        self.write(view.base, self.wrap(whole, not flows and self.stops(view.base)))

    def moves(self, t: Tensor, twin: Tensor) -> bool:
        """Let `twin`, which was made like `t`, be what views of `t` show; return False where `t` is not of this block.

        So `t` can become a tensor of another shape; other blocks and callers know it by the one that it has.
        """
        made = t.payload.operation if isinstance(t.payload, Value) else None
        written, top = ("data", id(t)), self.log.overlays[-1]
        if made is None or t.payload.block is not self.builder.block or (made.blocks and t.view_of is None):
            return False
        if (written in top) != (self.log.get(written) is not MISSING):
            return False
        if written in top:
            self.log.set(("data", id(twin)), twin, top.pop(written))
        for view in self.views_of.pop(id(t), ()):
            view.base = twin
            self.views_of.setdefault(id(twin), []).append(view)
        return True

    def before_write(self, t: object) -> None:
        """Look at a tensor of which the elements are written next."""

    def _fitted(self, t: Tensor, new: Tensor) -> Value:
        """Return the value of `new` in the dtype and shape of `t`."""
        old, value, b = self.value_of(t), self.value_of(new), self.builder
        assert isinstance(old.type, TensorType)
        assert isinstance(value.type, TensorType)
        if value.type.dtype is not old.type.dtype:
            value = b.emit("cast", [value], {"dtype": old.type.dtype})
        if tensor_type(value).rank > old.type.rank:
            rank = tensor_type(value).rank
            raise ValueError(
                f"an in-place operation cannot change the shape: the result has {rank} axes, the tensor {old.type.rank}"
            )
        if tensor_type(value).shape != old.type.shape:
            value = b.broadcast_to(value, b.shape(old.type))
        return value

    def read_grad(self, t: Tensor) -> Tensor | None:
        """Return the gradient of a tensor as it stands here."""
        found = self.log.get(("grad", id(t)))
        if found is not MISSING:
            return found
        if not isinstance(t.payload, Value):
            self.note_attribute(t, "_grad", t.grad_outside)
        return t.grad_outside

    def note_attribute(self, owner: Any, name: str, value: Any) -> Any:
        """Note that an attribute of a real object was read, which a trace may depend on; return what it sees."""
        return value

    def note_behaviour(self, x: Any) -> None:
        """Note that a trace depends on what the methods and operators of an object, or of a class, do."""

    def note_library(self, owner: ModuleType | type, name: str) -> None:
        """Note that a trace depends on what a module or class of a library has under a name."""

    def gradient_so_far(self, t: Tensor) -> Any:
        """Return what backward adds the next cotangent of a leaf to; None where there is nothing yet."""
        return self.read_grad(t)

    def set_stop_gradient(self, t: Tensor, stop: bool) -> None:
        """Do `t.stop_gradient = stop` in converted code."""
        t.stop_gradient = stop

    def note_leaf(self, t: Tensor) -> None:
        """Note a tensor that is made with stop_gradient=False."""

    def write_grad(self, t: Tensor, grad: Tensor | None) -> None:
        """Set the gradient of a tensor in the log."""
        self.log.set(("grad", id(t)), t, grad)

    # ---- random numbers ------------------------------------------------------------------------------------------
    def next_draw(self) -> tuple[Scalar, Scalar]:
        """Return the seed and the number of the next draw; the number is a state of the Program."""
        drawn = self.log.get(("rng",))
        if drawn is MISSING:
            drawn = Scalar(self.rng_draw())
        self.log.set(("rng",), None, Scalar(self.builder.emit("scalar_add", [drawn.value, self.builder.scalar(1)])))
        seed = self.log.get(("seed",))
        return Scalar(self.rng_seed()) if seed is MISSING else Scalar(self.scalar(seed)), drawn

    def set_seed(self, seed: int) -> bool:
        """Seed the generator when the Program runs; False where that is done at once."""
        return False

    def rng_seed(self) -> Value:
        """Return the seed as an argument of the Program."""
        return self._rng_argument("seed")

    def rng_draw(self) -> Value:
        """Return the draw number at the start as an argument of the Program."""
        return self._rng_argument("draw")

    def _rng_argument(self, name: str) -> Value:
        if name not in self.rng_arguments:
            self.rng_arguments[name] = self.root.argument(INT, name)
        return self.rng_arguments[name]

    @contextmanager
    def inside(self, builder: Builder, overlay: dict[Key, Any]) -> Generator[None]:
        """Stand in a block, with its writes visible, for the length of a `with`."""
        before = self.builder
        self.builder = builder
        try:
            with self.log.fork(overlay):
                yield
        finally:
            self.builder = before
