"""The recorder of a hand-built Program: every statement in static mode appends to it, over the length of a script.

What a Program takes and gives, apart from results that are fetched:

    feeds     `static.data`, by name
    states    parameters, statistics, optimizer state, eager tensors that were used: read from the scope by name before
              a run; those that the side-effect log has an entry for are written back after it
    stores    values that a run puts into the scope (what a startup program is for)
    seed, draw   of the random generator
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dy2st.dtypes import DType
from dy2st.ir.builder import Builder
from dy2st.ir.context import current, replaced
from dy2st.ir.location import Location, user_location
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.types import TensorType
from dy2st.records import record
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.effects.side_effect_log import SideEffectLog
from dy2st.runtime.tracer.tracer import Tracer
from dy2st.runtime.tracer.values.sentinels import Key
from dy2st.shapes import Extent, symbol
from dy2st.static import minimize
from dy2st.static.gradients import append_backward
from dy2st.static.operator import Operator
from dy2st.static.scope import Holder, global_scope, not_initialised
from dy2st.static.variable import StaticParameter, Variable, no_value


class CountedLog(SideEffectLog):
    """A side-effect log that counts its writes, so that a run knows whether it knows them all."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def set(self, key: Key, owner: Any, value: Any) -> None:
        self.count += 1
        super().set(key, owner, value)


@record(frozen=True)
class State:
    """A variable that is kept in the scope between runs."""

    name: str
    value: Value
    """The argument as which it enters."""
    tensor: Tensor
    source: Holder | None = None
    """The holder of the eager tensor whose elements it has, where there is one."""


@record(frozen=True)
class ForTest:
    """What `clone(for_test=True)` has in place of a value: operations of its own and the value they give."""

    operations: tuple[Operation, ...]
    value: Value
    skipped: tuple[int, ...]
    """The tensors (by id) whose writes belong to training."""


class ProgramRecorder(Tracer):
    """Record a hand-built Program."""

    def __init__(self, builder: Builder | None = None) -> None:
        super().__init__(builder or Builder())
        self.log: SideEffectLog = CountedLog()
        self.feeds: dict[str, Variable] = {}
        self.feed_places: dict[str, Location | None] = {}
        self.states: dict[str, State] = {}
        self.stores: dict[str, Value] = {}
        self.named: dict[str, Tensor] = {}
        self.moved: dict[Value, Value] = {}
        """In a clone: value of the original -> value here."""
        self.test_forms: dict[Value, ForTest] = {}
        self.trained: set[int] = set()
        """The tensors (by id) that an optimizer writes."""
        self.training_operations: set[Operation] = set()
        """The operations of `append_backward` and `minimize`."""
        self.for_test = False
        self.optional_grads: dict[int, Value | None] = {}
        """For the gradient of a parameter (by id): the optional that says whether it is there."""
        self.face_of: Callable[[Block], Any] = lambda block: block
        self._of_tensor: dict[int, State] = {}
        self._symbols: dict[str, str] = {}

    @property
    def version(self) -> tuple[int, ...]:
        """Something that changes whenever the Program does."""
        block = self.root.block
        return len(block.operations), len(block.arguments), self.writes_seen, len(self.stores)

    @property
    def writes_seen(self) -> int:
        """How often the side-effect log was written."""
        assert isinstance(self.log, CountedLog)
        return self.log.count

    # ---- values ----------------------------------------------------------------------------------------------------
    def own_value(self, t: Tensor) -> Value | None:
        value = super().own_value(t)
        if value is None or not self.moved:
            return value
        return None if t.view_of is not None and value is t.payload else self.moved.get(value, value)

    def _view_value(self, t: Tensor, base: Value) -> Value:
        value = super()._view_value(t, base)
        return self.moved.get(value, value)

    def value_in(self, t: Tensor) -> Value:
        """Return the value that a tensor has at the end of the Program, whatever is being built now."""
        with replaced(trace=self):
            return self.value_of(t)

    def wrap(self, value: Value, stop_gradient: bool = True) -> Variable:
        if not stop_gradient:
            self.needs.add(value)
        return Variable(value, stop_gradient, self)

    def state(self, t: Tensor) -> Value:
        """Take an eager tensor in as a state; the scope then holds that very tensor."""
        found = self._of_tensor.get(id(t))
        if found is None:
            name, turn = t.name, 0
            while name in self.states or name in self.feeds:
                turn += 1
                name = f"{t.name}.{turn}"
            found = self._add_state(name, tuple(t.payload.shape), t.dtype, t, Holder(name, t))
        return found.value

    def _add_state(self, name: str, shape: Any, dtype: DType, t: Tensor | None, source: Holder | None = None) -> State:
        value = self.root.argument(TensorType(dtype, tuple(shape)), name)
        if t is None:
            t = self.wrap(value)
            t.persistable = True
            t.name = name
        return self.keep_state(State(name, value, t, source))

    def keep_state(self, state: State) -> State:
        """Add a state whose argument is there."""
        self.states[state.name] = self._of_tensor[id(state.tensor)] = state
        self.named[state.name] = state.tensor
        self.log.keep(state.tensor)
        if not state.tensor.stop_gradient:
            self.needs.add(state.value)
        return state

    def numpy_of(self, t: Tensor) -> Any:
        if isinstance(t, StaticParameter):
            return t.numpy()
        raise no_value("numpy() of a variable was asked for, but it has no value before its Program runs")

    # ---- what enters -----------------------------------------------------------------------------------------------
    def feed(self, name: str, shape: Sequence[int | None], dtype: DType) -> Variable:
        """Add an input by name; extents of None or -1 are whatever is fed."""
        if name in self.states:
            raise ValueError(f"the name {name!r} of this data is that of a parameter or state of the Program already")
        known = self.feeds.get(name)
        stem = self._symbols.setdefault(name, _stem(name, set(self._symbols.values())))
        extents = tuple(_extent(name, f"{stem}_{axis}", e) for axis, e in enumerate(shape))
        if known is not None:
            old = known.payload.type
            if old != TensorType(dtype, extents):
                raise ValueError(
                    f"this Program has data {name!r} as {old} already, it cannot also be {TensorType(dtype, extents)}"
                )
            return known
        made = self.wrap(self.root.argument(TensorType(dtype, extents), name))
        made.name = name
        self.feeds[name] = made
        self.feed_places[name] = user_location()
        return made

    def create_parameter(
        self, shape: tuple[int, ...], dtype: DType, initializer: Any, attribute: Any, name: str
    ) -> StaticParameter:
        """Add a parameter; the startup program computes its initial values. A name that is there is that parameter."""
        known = self.states.get(name)
        if known is not None:
            return self._shared(known, shape, dtype)
        startup: ProgramRecorder = current().static[1].recorder
        if name not in startup.stores:
            with replaced(trace=startup, grad=False):
                startup.put_into_scope(name, initializer.value(shape, dtype))
        value = self.root.argument(TensorType(dtype, shape), name)
        made = StaticParameter(value, self, name=name, **attribute.settings())
        self.keep_state(State(name, value, made))
        return made

    def _shared(self, known: State, shape: tuple[int, ...], dtype: DType) -> Any:
        if known.value.type != TensorType(dtype, shape):
            raise ValueError(
                f"the parameter {known.name} is {known.value.type} already "
                f"and cannot also be {TensorType(dtype, shape)}"
            )
        return known.tensor

    def create_state(self, name: str, shape: Sequence[int], dtype: DType, fill: float) -> Tensor:
        """Add a state that the startup program fills with a number; a name that is taken gets a number."""
        base, turn = name, 0
        while name in self.states or name in self.feeds:
            turn += 1
            name = f"{base}.{turn}"
        startup: ProgramRecorder = current().static[1].recorder
        if name not in startup.stores:
            b = startup.root
            filled = b.shaped("full", [b.constant(np.asarray(fill), dtype)], list(shape))
            startup.put_into_scope(name, startup.wrap(filled))
        return self._add_state(name, shape, dtype, None).tensor

    def put_into_scope(self, name: str, t: Tensor) -> None:
        """Have each run put the value of `t` into the scope."""
        self.stores[name] = self.root.use(self.value_of(t))

    def state_of(self, t: Tensor) -> State | None:
        """Return the state whose variable `t` is."""
        return self._of_tensor.get(id(t))

    # ---- what leaves -----------------------------------------------------------------------------------------------
    def writes(self) -> list[tuple[State, Value]]:
        """Return the states that a run changes, with their new values."""
        found: list[tuple[State, Value]] = []
        for key, written in self.log.overlays[0].items():
            state = self._of_tensor.get(key[1]) if key[0] == "data" else None
            if state is not None:
                found.append((state, written.payload))
        return found

    def holder(self, name: str, scope: Any = None, fresh: bool = False) -> Holder:
        """Return the scope's variable for a state; RuntimeError where it has no value (unless it is to get one)."""
        scope = scope if scope is not None else global_scope()
        state = self.states.get(name)
        if state is not None and state.source is not None:
            scope.holders.setdefault(name, state.source)
            return state.source
        found: Holder | None = scope.var(name) if fresh else scope.find_var(name)
        if found is None or (found.tensor is None and not fresh):
            raise not_initialised(name)
        return found

    # ---- derivatives -----------------------------------------------------------------------------------------------
    def backward(self, outs: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> list[Tensor]:
        raise RuntimeError(
            "backward() runs eagerly; for a variable of a hand-built Program use paddle.static.append_backward(loss) "
            "or optimizer.minimize(loss)"
        )

    def append_backward(self, loss: Tensor, parameters: Any = None, no_grad_set: Any = None) -> list[Any]:
        """Append the gradients of `loss` at parameters; return the pairs (parameter, gradient)."""
        return append_backward(self, loss, parameters, no_grad_set)

    def minimize(
        self, optimizer: Any, loss: Tensor, startup_program: Any, parameters: Any, no_grad_set: Any
    ) -> tuple[list[Operator], list[Any]]:
        """Append the gradients of `loss` and an optimizer's updates; return the new operations and the pairs."""
        made, pairs = minimize.minimize(self, optimizer, loss, startup_program, parameters, no_grad_set)
        self.training_operations.update(operator.operation for operator in made)
        return made, pairs

    def update(self, optimizer: Any, p: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        """Append an optimizer's update of one parameter."""
        minimize.update(self, optimizer, p, g, group)

    # ---- training and testing --------------------------------------------------------------------------------------
    def in_test(self, out: Any, make: Callable[[], Tensor], skipped: Sequence[Tensor] = ()) -> None:
        """Say what `clone(for_test=True)` computes in place of `out`, and which writes it leaves out.

        What `make` records is taken out of the Program again and kept for clones.
        """
        if not isinstance(out, Tensor):
            return
        mark, before = self.builder.checkpoint(), len(self.builder.block.operations)
        value = self.builder.use(self.value_of(make()))
        made = tuple(self.builder.block.operations[before:])
        self.builder.rollback(mark)
        self.test_forms[self.value_of(out)] = ForTest(made, value, tuple(id(t) for t in skipped))


def _stem(name: str, taken: set[str]) -> str:
    """Return what the symbols of an input's extents begin with."""
    stem = base = re.sub(r"\W", "_", name if name[:1].isalpha() else f"d{name}")
    turn = 1
    while stem in taken:
        turn += 1
        stem = f"{base}_{turn}"
    return stem


def _extent(name: str, varying: str, extent: int | None) -> Extent:
    if extent is None:
        return symbol(varying)
    if not hasattr(extent, "__index__"):
        raise TypeError(f"data {name!r}: an extent is an int, None or -1, not {extent!r}")
    if int(extent) < -1:
        raise ValueError(f"data {name!r}: an extent is not negative (or is -1 where it varies), not {extent}")
    return symbol(varying) if int(extent) == -1 else int(extent)
