"""One Program made ready for the Executor: which feeds and states it needs for some fetches, and its plan.

What the fetches, the writes and the effects do not depend on is not computed, and its feeds may be left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.ir import program as ir
from dy2st.ir.program import Value
from dy2st.ir.types import TensorType
from dy2st.passes import optimise
from dy2st.runtime.eager.device import Place, move, namespace
from dy2st.runtime.eager.rng import Generator, default_generator
from dy2st.runtime.executor.executable import Compiled
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
        self.asked_for: tuple[Any, tuple[Any, ...]] = ((), ())
        """The Program's version and the variables that this was last made or found for."""
        self._is_random = self.draws or any(kind == "rng" for kind, _ in self.inputs)
        self._declared = {name: _declared(recorder.feeds[name].payload.type) for name in self.needed}

    def run(self, feed: dict[str, Any], scope: Any, generator: Any, place: Place) -> list[Any]:
        """Check the feeds, read states, run, write back; return the fetched values."""
        fed = {name: self._fed(name, given, place) for name, given in feed.items()}
        if not self._is_random:
            return self._run(fed, scope, place, (0, 0), None)
        generator = generator or default_generator()
        with generator.run() as numbers:
            return self._run(fed, scope, place, numbers, generator)

    def _run(
        self, fed: dict[str, Any], scope: Any, place: Place, numbers: tuple[int, int], generator: Generator | None
    ) -> list[Any]:
        recorder, (seed, draw) = self.recorder, numbers
        arguments: list[Any] = []
        for kind, name in self.inputs:
            if kind == "feed":
                arguments.append(fed[name])
            elif kind == "rng":
                arguments.append(seed if name == "seed" else draw)
            else:
                holder = recorder.holder(name, scope)
                arguments.append(_on(place, _checked(recorder.states[name], holder)))
        targets = [recorder.holder(state.name, scope, fresh=True) for state, _ in self.writes]
        results = self.compiled.run(arguments, namespace(place))
        fetched, rest = results[: self.count], results[self.count :]
        taken = [*arguments, *self._commit(targets, rest, scope)] if rest else arguments
        if self.draws and generator is not None:
            generator.go_on_at(rest[-1])
        return _apart(fetched, taken)

    def _fed(self, name: str, given: Any, place: Place) -> Any:
        """Return what is fed as an array of the Program's dtype, on the place; ValueError where it does not fit."""
        declared = self._declared.get(name)
        if declared is None or type(given) is not np.ndarray or given.dtype is not declared[0]:
            return _on(place, feed_array(self.recorder, name, given))
        shape = given.shape
        if len(shape) != len(declared[1]):
            feed_array(self.recorder, name, given)
        for want, have in zip(declared[1], shape, strict=True):
            if want is not None and want != have:
                feed_array(self.recorder, name, given)
        return _on(place, given)

    def _commit(self, targets: list[Holder], values: list[Any], scope: Any) -> list[Any]:
        """Write the new values of states, then the stores; no two of them share memory."""
        targets = [*targets, *(self.recorder.holder(name, scope, fresh=True) for name in self.stores)]
        written: list[Any] = []
        for holder, value in zip(targets, values, strict=False):
            if holder.tensor is not None and value is holder.tensor.payload:
                continue
            value = value.copy() if value.base is not None or any(value is w for w in written) else value
            holder.put(value)
            written.append(value)
        return written


def _on(place: Place, array: Any) -> Any:
    return array if place.kind == "cpu" and type(array) is np.ndarray else move(array, place)


def _declared(kind: Any) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """Return dtype and extents as arrays have them; None for an extent that is open."""
    return kind.dtype.numpy, tuple(e if isinstance(e, int) else None for e in kind.shape)


def _roles(recorder: ProgramRecorder) -> dict[Value, tuple[str, str]]:
    """Return for each argument of the Program what it is: a feed, a state, a number of the generator."""
    fed: dict[str, Value] = {name: t.payload for name, t in recorder.feeds.items()}
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
    known = [(n, e) for n, e in zip(array.shape, kind.shape, strict=False) if isinstance(e, int)]
    if array.ndim != kind.rank or any(n != e for n, e in known) or dtypes.of_array(array) is not kind.dtype:
        raise ValueError(
            f"the variable {state.name} is {kind} in the Program, but the scope holds "
            f"{dtypes.of_array(array).name}{list(array.shape)}"
        )
    return array


def _random(program: ir.Program) -> bool:
    """Return whether a Program uses random numbers; what a test form replaced is gone after the passes."""
    return any(operation.op.random for operation in optimise(program).walk())


def _used(block: ir.Block) -> set[Value]:
    return {v for operation in block.operations for v in operation.operands} | set(block.results)


def _apart(fetched: list[Any], taken: list[Any]) -> list[Any]:
    """Return what is fetched with copies of arrays that share memory with each other, or with what others have."""
    taken = taken.copy()
    for i, value in enumerate(fetched):
        if _shares(value, taken):
            fetched[i] = value.copy()
        taken.append(fetched[i])
    return fetched


def _shares(value: Any, taken: list[Any]) -> bool:
    """Return whether a result is, or uses the memory of, an array that somebody else has."""
    if not hasattr(value, "dtype"):
        return False
    base = value.base
    for other in taken:
        if value is other or (base is not None and (base is other or base is getattr(other, "base", None))):
            return True
    return False
