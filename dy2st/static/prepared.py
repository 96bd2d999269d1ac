"""One Program made ready for the Executor: which feeds and states it needs for some fetches, and its plan.

What the fetches, the writes and the effects do not depend on is not computed, and its feeds may be left out.
"""

from __future__ import annotations

from typing import Any

from dy2st import dtypes
from dy2st.ir import program as ir
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.passes import optimise
from dy2st.runtime.compiled import Compiled
from dy2st.runtime.generator import default_generator
from dy2st.runtime.places import Place, move, namespace
from dy2st.static.feeding import feed_array
from dy2st.static.recorder import ProgramRecorder, State
from dy2st.static.scope import Holder


class Prepared:
    """The plan of a Program for one list of fetches, and what its arguments and results are."""

    def __init__(self, recorder: ProgramRecorder, fetches: list[Value]):
        self.recorder = recorder
        self.count = len(fetches)
        self.writes = recorder.writes()
        self.stores = list(recorder.stores)
        root = recorder.root.block
        whole = ir.Block()
        whole.arguments, whole.operations = root.arguments, root.operations
        whole.results = [*fetches, *(v for _, v in self.writes), *(recorder.stores[name] for name in self.stores)]
        draw = recorder.log.overlays[0].get(("rng",))
        self.draws = draw is not None and not (recorder.for_test and not _random(ir.Program({"main": whole})))
        if draw is not None and self.draws:
            whole.results.append(draw.value)
        program = optimise(ir.Program({"main": whole, **recorder.functions}))
        used, roles = _used(program.block), _roles(recorder)
        kept = [i for i, a in enumerate(program.block.arguments) if a in used]
        program.block.arguments[:] = [program.block.arguments[i] for i in kept]
        self.program = program
        self.compiled = Compiled(program, program, whole=True)
        self.inputs: list[tuple[str, str]] = [roles[root.arguments[i]] for i in kept]
        self.needed = {name for kind, name in self.inputs if kind == "feed"}

    def run(self, feed: dict[str, Any], scope: Any, generator: Any, place: Place) -> list[Any]:
        """Check the feeds, read states, run, write back; return the fetched values."""
        recorder = self.recorder
        fed = {name: move(feed_array(recorder, name, feed[name]), place) for name in feed}
        generator = generator or default_generator()
        seed, draw = generator.get_state()
        numbers = {"seed": seed, "draw": draw}
        holders: dict[str, Holder] = {}
        arguments: list[Any] = []
        for kind, name in self.inputs:
            if kind == "feed":
                arguments.append(fed[name])
            elif kind == "rng":
                arguments.append(numbers[name])
            else:
                holders[name] = recorder.holder(name, scope)
                arguments.append(move(_checked(recorder.states[name], holders[name]), place))
        targets = [recorder.holder(state.name, scope, fresh=True) for state, _ in self.writes]
        results = self.compiled.run(arguments, namespace(place))
        fetched, rest = results[: self.count], results[self.count :]
        written = self._commit(targets, rest, scope)
        if self.draws:
            generator.set_state((seed, rest[-1]))
        taken = _memory([*arguments, *written])
        return [r.copy() if _shares(r, taken) else r for r in fetched]

    def _commit(self, targets: list[Holder], values: list[Any], scope: Any) -> list[Any]:
        """Write the new values of states, then the stores; no two of them share memory."""
        targets = [*targets, *(self.recorder.holder(name, scope, fresh=True) for name in self.stores)]
        written: list[Any] = []
        for holder, value in zip(targets, values, strict=False):
            if holder.tensor is not None and value is holder.tensor._payload:
                continue
            value = value.copy() if value.base is not None or any(value is w for w in written) else value
            holder.put(value)
            written.append(value)
        return written


def _roles(recorder: ProgramRecorder) -> dict[Value, tuple[str, str]]:
    """Return for each argument of the Program what it is: a feed, a state, a number of the generator."""
    fed: dict[str, Value] = {name: t._payload for name, t in recorder.feeds.items()}
    roles: dict[Value, tuple[str, str]] = {
        recorder.moved.get(value, value): ("feed", name) for name, value in fed.items()
    }
    roles.update({s.value: ("state", name) for name, s in recorder.states.items()})
    roles.update({v: ("rng", name) for name, v in recorder.rng_arguments.items()})
    return roles


def _checked(state: State, holder: Holder) -> Any:
    """Return the array of a state; ValueError where a scope has one that does not fit."""
    array, kind = holder.array, state.value.type
    assert isinstance(kind, TensorType)
    if tuple(array.shape) != kind.shape or dtypes.of_array(array) is not kind.dtype:
        raise ValueError(
            f"the variable {state.name} is {kind} in the Program, but the scope holds "
            f"{dtypes.of_array(array).name}{list(array.shape)}"
        )
    return array


def _random(program: ir.Program) -> bool:
    """Say whether a Program uses random numbers; what a test form replaced is gone after the passes."""
    return any(operation.name.startswith("random_") for operation in optimise(program).walk())


def _used(block: ir.Block) -> set[Value]:
    return {v for operation in block.operations for v in operation.operands} | set(block.results)


def _memory(values: list[Any]) -> set[int]:
    """Return the identities of arrays and of those whose memory they use."""
    arrays = [v for v in values if hasattr(v, "dtype")]
    return {id(a) for a in arrays} | {id(a.base) for a in arrays if a.base is not None}


def _shares(value: Any, taken: set[int]) -> bool:
    return hasattr(value, "dtype") and (id(value) in taken or (value.base is not None and id(value.base) in taken))
