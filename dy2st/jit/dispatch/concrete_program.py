"""A traced Program ready to be called: fetches its state, runs, gives the output, commits the writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from dy2st.functions.core.assigning import clone
from dy2st.ir.context import current
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, Type
from dy2st.jit.dispatch.eager_replay import note_unwritten
from dy2st.jit.dispatch.write_back import are_bare, write_arrays, write_back
from dy2st.jit.guards.call_signature import NUMPY_NUMBERS, ContainerNode, FlatCall, StaticLeaf, meet
from dy2st.jit.guards.guards import Guard, StateSlot
from dy2st.jit.tracing.output_choices import StructureChoice
from dy2st.jit.tracing.output_structure import SharedObjects, restore
from dy2st.jit.tracing.output_views import ResultView
from dy2st.jit.tracing.trace import Traced
from dy2st.runtime.eager.device import namespace_among
from dy2st.runtime.eager.inplace import copy_of
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tape.node import call
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.tracer.control_flow.assert_raise import made_again
from dy2st.runtime.tracer.values.abstract import Const

MUCH_STATE = 300
"""For more state than this the function that recognises calls is written late: it takes 0.2 ms of each to
compile, and saves 3 us a call."""
CALLS_BEFORE = 60
"""So many calls go the slow way before."""


class ConcreteProgram:
    """One Program of a StaticFunction. `main_program` is the Program as it was traced."""

    def __init__(self, traced: Traced, made: FlatCall, *, strict: bool = False):
        self.traced = traced
        bare = are_bare(traced.writes)
        traced.program.renewed = _renewed(traced) if bare else ()
        self.compiled = Compiled(traced.program, whole=True, strict=strict)
        self.written = sorted(traced.written_leaves), traced.written_state
        """What a run writes in place: which arguments, and which of the state."""
        self.graded = traced.graded
        """Of which arguments, and which tensors from outside, a run reads or writes the gradient."""
        self.changed_outside, self.changed_containers = traced.changed_outside, traced.changed_containers
        self.names = list(made.names)
        self.tree = made.tree
        self.objects = made.objects
        self.calls = 0
        self.refused, self.refusal = 0, ""
        """How many calls of its kind it could not serve, and why the last one."""
        self.kinds_of_call = 0
        """How many ways to pass the arguments the function recognises at once (`fast_call`)."""
        self.fixed = made.fixed or set()
        """The extents of arguments, by leaf and axis, that are fixed because Python needs them."""
        self._extents = [(i, axis, e) for i, v in enumerate(traced.program.block.arguments[: len(made.leaves)])
                         if isinstance(v.type, TensorType)
                         for axis, e in enumerate(v.type.shape) if isinstance(e, int)]  # fmt: skip
        self.values = fixed_values(made)
        """The Python values among the arguments, by place."""
        self.numbers = _fixed_numbers(made)
        """Those of them that are numbers."""
        self.underivable = False
        """Whether its derivative cannot be made, so that the calls that it would serve run eagerly."""
        self.random = any(isinstance(slot, str) for slot, _ in traced.state)
        self._bare = bare and not traced.views
        """Whether what is written back need not be made tensors of first."""
        self._seeded = tuple(i for i in traced.seeded if i not in traced.freed)
        """The results that may be differentiated after a call."""
        tensors = [*made.leaves, *(t for _, t in traced.state)]
        needs = current().grad and any(isinstance(t, Tensor) and not t.stop_gradient for t in tensors)
        acts = traced.raised or traced.failed or traced.actions
        # a name outside is bound to a view, or a list has elements that are other results
        bound = any(view.result >= traced.outputs or isinstance(view, StructureChoice) for view in traced.views)
        self.plain = bare and not (bound or acts or (needs and self._seeded))
        """Whether a call is nothing but a run of the Program and such writes: no result goes on the tape."""
        self.writes = bool(traced.writes or self.random)
        """Whether a call leaves something behind beside its results."""
        arguments = traced.program.block.arguments
        declared = arguments[len(arguments) - len(traced.state) :]
        unhooked = [len(made.leaves) + k in traced.unhooked for k in range(len(traced.state))]
        self._dtypes = [(slot, t.dtype.numpy, len(t.payload.shape), t.stop_gradient, _fixed_shape(v.type), bare)
                        for (slot, t), v, bare in zip(traced.state, declared, unhooked, strict=True)
                        if t is not None]  # fmt: skip

    @property
    def main_program(self) -> Program:
        """The Program as it was traced."""
        return self.traced.program

    def _repr_svg_(self) -> str | None:
        """Return the picture that notebooks show."""
        return self.main_program.svg()

    @property
    def parameters(self) -> list[Tensor]:
        """The tensors from outside that the Program reads."""
        return [slot.fetch() for slot, _ in self.traced.state if isinstance(slot, StateSlot)]

    def fixed_extents(self) -> list[str]:
        """Return in words which extents are fixed because Python needs them."""
        return [f"`{self.names[i]}`.shape[{axis}] is {e}" for i, axis, e in self._extents if (i, axis) in self.fixed]

    def has_extents_of(self, leaves: Sequence[Any]) -> bool:
        """Return whether arguments have the extents that are fixed."""
        return all(leaves[i].payload.shape[axis] == e for i, axis, e in self._extents)

    def guards_pass(self) -> bool:
        """Return whether everything that was read while tracing is still the same."""
        for guard in self.traced.guards:
            if not guard.passes():
                return False
        for slot, dtype, rank, stop_gradient, shape, unhooked in self._dtypes:
            t = slot.now()  # type: ignore[union-attr]
            if not isinstance(t, Tensor) or t.stop_gradient != stop_gradient or (unhooked and t.leaf_hooks):
                return False
            payload = t.payload
            if payload.dtype != dtype or payload.ndim != rank or (shape is not None and payload.shape != shape):
                return False
        return True

    def pays(self) -> bool:
        """Return whether it has been called often enough for a function that recognises its calls (`fast_call`)."""
        return self.calls >= (CALLS_BEFORE if len(self.traced.state) > MUCH_STATE else 1)

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Return whether arguments have no gradient and no hooks where the Program takes them to have none."""
        hooked = any(leaves[i].leaf_hooks for i in self.traced.unhooked if i < len(leaves))
        return not hooked and all(leaves[i]._grad is None for i in self.traced.grad_free)

    def meets(self, leaves: Sequence[Any]) -> bool:
        """Return whether an argument and a tensor from outside are one, and a run writes it or its gradient: the
        Program knows of two.
        """
        graded, others = self.graded
        if others and any(i < len(leaves) and id(leaves[i]) in others for i in graded):
            return True
        arguments, outside = self.written
        if not arguments and not outside:
            return False
        state = [slot.fetch() if isinstance(slot, StateSlot) else None for slot, _ in self.traced.state]
        return meet([state[i] for i in outside], leaves) or meet([leaves[i] for i in arguments], state)

    def meets_objects(self, containers: Sequence[Any]) -> bool:
        """Return whether a list, dict or object is both an argument and met outside, and a run changes it."""
        if self.changed_outside and not self.changed_outside.isdisjoint(map(id, containers)):
            return True
        return any(id(containers[i]) in self.traced.outside for i in self.changed_containers)

    def changed(self, leaves: Sequence[Any]) -> str:
        """Say what is not as it was when this Program was traced."""
        for i, axis, e in self._extents:
            if (found := leaves[i].payload.shape[axis]) != e:
                return f"`{self.names[i]}`.shape[{axis}], which Python needs, is {found}, was {e}"
        for guard in self.traced.guards:
            if not guard.passes():
                return guard.change() if isinstance(guard, Guard) else f"{guard} has changed"
        return "a tensor from outside has another dtype, rank or stop_gradient"

    def refuse(self, leaves: Sequence[Any]) -> None:
        """Note that a call of its kind found something changed."""
        self.refused += 1
        self.refusal = self.changed(leaves)

    def differing(self, made: FlatCall) -> list[str]:
        """Return the places of numbers and objects that differ from those of the call that was traced."""
        pairs = [(n, x, self.objects.get(n)) for n, x in made.objects.items()]
        found = [n for n, x, before in pairs if before is not None and before is not x and type(before) is type(x)]
        other = _fixed_numbers(made)
        if self.names != made.names or other.keys() != self.numbers.keys():
            return found
        return found + [n for n, x in other.items() if type(x) is type(self.numbers[n]) and x != self.numbers[n]]

    def run(self, leaves: Sequence[Any], containers: Sequence[Any] = ()) -> Any:
        """Run on the leaves of a call; return the function's output."""
        if self.random:
            with default_generator().run() as numbers:
                return self._run(leaves, containers, numbers)
        return self._run(leaves, containers, (0, 0))

    def _run(self, leaves: Sequence[Any], containers: Sequence[Any], numbers: tuple[int, int]) -> Any:
        seed, draw = numbers
        inputs = list(leaves)
        for slot, _ in self.traced.state:
            inputs.append(slot.fetch() if isinstance(slot, StateSlot) else seed if slot == "seed" else draw)
        xp = namespace_among(t.payload for t in inputs if isinstance(t, Tensor))
        return self.run_on(inputs, leaves, containers, xp)

    def run_on(self, inputs: list[Any], leaves: Sequence[Any], containers: Sequence[Any], xp: Any) -> Any:
        """Run on everything that the Program takes: the leaves of a call, and the state."""
        traced = self.traced
        thrown, shared = None, SharedObjects(containers)
        results: Sequence[Any] = []
        try:
            results = self._results(self._kept(inputs), xp)
        except Exception as error:
            raised: tuple[int, list[Any]] | None = getattr(error, "raised", None)
            if raised is None:
                if traced.writes or self.random:
                    note_unwritten(error)
                raise
            label, operands = raised
            found = traced.raised[label]
            if found.is_replayed:
                note_unwritten(error, type(found.error))
                raise
            if found.is_of_run and error.__context__ is None:  # a derivative raised it, which knows its kind alone
                error = self._raised_again(error, inputs, xp)
            values = iter([_wrapped(v) for v in operands])
            thrown = found.of_run(error, restore(values, found.aval, shared)).with_traceback(error.__traceback__)
            write_back(found.writes, list(values), leaves, containers, shared)
            _act(found.actions)
        if thrown is not None:
            raise thrown
        traced.open_needs.settle(results)
        if traced.views:
            seen = [*results]
            for view in traced.views:
                seen[view.result] = view.of(inputs, seen)
            results = seen
        output = restore(iter(results[: traced.outputs]), traced.output, shared)
        if traced.writes:
            left = results[traced.outputs :]
            if self._bare:
                write_arrays(traced.writes, left, leaves, containers)
            else:
                write_back(traced.writes, left, leaves, containers, shared)
        _act(traced.actions)
        if traced.failed is not None:
            raise made_again(traced.failed, output)
        return output

    def _kept(self, inputs: list[Any]) -> list[Any]:
        """Return the inputs with copies of those that a run writes in place where a derivative may need them after it.

        An input without views is not written but gets a new array (`write_array`), and a plain Program puts nothing on
        the tape.
        """
        leaves, state = self.written
        if not (leaves or state) or self.plain or not current().grad:
            return inputs
        if all(getattr(x, "stop_gradient", True) for x in inputs):
            return inputs
        first = len(inputs) - len(self.traced.state)
        shown = {view.source for view in self.traced.views if isinstance(view, ResultView) and view.steps}
        kept = list(inputs)
        for i in (*leaves, *(first + i for i in state)):
            if i in shown or inputs[i].storage_version is not None:
                kept[i] = copy_of(inputs[i]) if inputs[i].tape_node is not None else clone(inputs[i])  # the same leaf
        return kept

    def _raised_again(self, error: Exception, inputs: list[Any], xp: Any) -> Exception:
        """Return the error with what an operation raised as its context, from a run without derivatives."""
        try:
            self.compiled.silent.run([t.payload if isinstance(t, Tensor) else t for t in inputs], xp)
        except type(error) as again:
            return again
        return error

    def _results(self, inputs: list[Any], xp: Any) -> Any:
        """Run; put the call on the tape where gradients are on."""
        if current().grad:
            wrapped = self.traced.outputs if self._bare else None
            return call(Tensor, self.compiled, inputs, xp, self._seeded, wrapped, self.traced.freed)
        raw = [t.payload if isinstance(t, Tensor) else t for t in inputs]
        made = self.compiled.run(raw, xp)
        if self._bare:
            return [*map(_wrapped, made[: self.traced.outputs]), *made[self.traced.outputs :]]
        return [_wrapped(v) for v in made]


def _renewed(traced: Traced) -> tuple[tuple[int, int], ...]:
    """Return the results that tensors from outside hold after a run, each with the argument that it has before."""
    first = len(traced.program.block.arguments) - len(traced.state)
    arguments = {id(x): first + i for i, (slot, t) in enumerate(traced.state) if t is not None for x in (slot, t)}
    written = [(key, owner) for key, owner, aval in traced.writes if type(aval) is not Const]
    data = [(traced.outputs + i, owner) for i, (key, owner) in enumerate(written) if key[0] == "data"]
    return tuple((i, arguments[id(owner)]) for i, owner in data if id(owner) in arguments)


def _act(actions: Sequence[Callable[[], None]]) -> None:
    """Do what a call does at its end, as eager code does it: outside of any trace."""
    for action in actions:
        action()


def _fixed_shape(kind: Type) -> tuple[int, ...] | None:
    """Return the shape of a state that the Program takes as it is, None where a run tells."""
    if isinstance(kind, TensorType) and all(isinstance(extent, int) for extent in kind.shape):
        return cast("tuple[int, ...]", kind.shape)
    return None


def _wrapped(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else Tensor(value)


def _fixed_numbers(made: FlatCall) -> dict[str, Any]:
    """Return the Python numbers among the arguments of which the value is fixed, by place."""
    return {name: x for name, x in fixed_values(made).items() if type(x) in (int, float, *NUMPY_NUMBERS)}


def fixed_values(made: FlatCall) -> dict[str, Any]:
    """Return the Python values that the Program takes as fixed, by place."""
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def visit(tree: Any, name: str) -> None:
        if isinstance(tree, StaticLeaf):
            found[name] = tree.value
        elif isinstance(tree, ContainerNode) and id(tree) not in seen:
            seen.add(id(tree))  # an object may lead back to itself
            for i, item in enumerate(tree.items):
                visit(item, f"{name}_{i if tree.keys is None else tree.keys[i]}")

    for name, tree in made.tree.items():
        visit(tree, name)
    return found
