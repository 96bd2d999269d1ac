"""A method of a loaded layer: finds the Program for a call, fetches its state, runs it, makes the writes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from dy2st.ir.context import current
from dy2st.ir.program import Program, Value
from dy2st.ir.types import ScalarType, TensorType, Type
from dy2st.jit.dispatch.write_back import commit
from dy2st.jit.guards.call_signature import bind
from dy2st.jit.serialization.argument_schema import collect
from dy2st.jit.serialization.loaded_call_in_trace import record
from dy2st.jit.serialization.schema import SavedCall, SavedMethod, Target, fits_array
from dy2st.jit.tracing.output_structure import restore
from dy2st.runtime.eager.device import namespace_among
from dy2st.runtime.eager.rng import default_generator
from dy2st.runtime.eager.tape.node import call as call_program
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.executor.executable import Compiled
from dy2st.runtime.interpreter.error_locations import user_traceback
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.runtime.tracer.values.unbound import UnboundLocal


class LoadedMethod:
    """Call it as the method that was saved; arguments of another kind than the saved ones are refused."""

    def __init__(self, layer: Any, name: str, method: SavedMethod, program: Program):
        self.__name__ = self.__qualname__ = name
        self.signature: inspect.Signature = method.signature
        self._layer = layer
        self._runs = [_Run(call, Program(reachable(program, call.function), call.function)) for call in method.calls]

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature

    @property
    def main_program(self) -> Program:
        """The Program for the present mode; that for the first kind of call where there are several."""
        return self._runs[self._order()[0]].compiled.program

    def programs(self) -> list[tuple[SavedCall, Program]]:
        """Return the kinds of calls that were saved, each with its Program."""
        return [(run.call, run.compiled.program) for run in self._runs]

    def run(self, number: int, leaves: Sequence[Any]) -> Any:
        """Run one of `programs()` on its inputs, flat and in order; TypeError or ValueError where they do not fit."""
        run = self._runs[number]
        return run(self._layer, run.checked(leaves, [v.name or "" for v in run.compiled.program.block.arguments]))

    def chosen(self, *args: Any, **keywords: Any) -> tuple[SavedCall, Program, list[Any]]:
        """Return which Program a call runs, and its inputs, flat and in order; errors are those of the call."""
        run, leaves = self._choose(bind(self.signature, args, keywords))
        return run.call, run.compiled.program, leaves

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        values = bind(self.signature, args, keywords)
        run, leaves = self._choose(values)
        trace = current().trace
        if trace is not None:
            return record(trace, self._layer, run.call, run.compiled.program, leaves)
        try:
            return run(self._layer, leaves)
        except Exception as error:
            raise error.with_traceback(user_traceback(error.__traceback__)) from error.__cause__

    def _order(self) -> list[int]:
        """Return the numbers of the Programs for the present mode; all of them where it has none."""
        mode = "train" if self._layer.training else "eval"
        fitting = [i for i, run in enumerate(self._runs) if run.call.mode in (None, mode)]
        return fitting or list(range(len(self._runs)))

    def _choose(self, values: dict[str, Any]) -> tuple[_Run, list[Any]]:
        refused: list[Exception] = []
        for i in self._order():
            try:
                return self._runs[i], self._runs[i].leaves(values)
            except (TypeError, ValueError) as error:
                refused.append(error)
        if len(refused) == 1:
            raise refused[0]
        reasons = "".join(f"\n  program {i}: {error}" for i, error in enumerate(refused))
        raise ValueError(f"no saved Program of '{self.__name__}' takes these arguments:{reasons}")

    def __repr__(self) -> str:
        return f"<saved method {self.__name__}{self.signature}, {len(self._runs)} programs>"


class _Run:
    """One kind of call, ready to run."""

    def __init__(self, call: SavedCall, program: Program):
        self.call, self.compiled = call, Compiled(program, whole=True)
        self._random = any(name[0] == "?" for name in call.state)

    def __deepcopy__(self, memo: Any) -> _Run:
        return self

    def leaves(self, values: dict[str, Any]) -> list[Any]:
        """Return the inputs of the Program from the bound arguments; ValueError or TypeError names what differs."""
        found: list[Any] = [None] * self.call.inputs
        names: list[str] = [""] * self.call.inputs
        for name, tree in self.call.arguments.items():
            if name not in values:
                raise TypeError(f"argument '{name}' is missing")
            collect(tree, values[name], name, found, names)
        for name in values.keys() - self.call.arguments.keys():
            raise ValueError(f"argument '{name}' was not given when the layer was saved and cannot be given now")
        return self.checked(found, names)

    def checked(self, found: Sequence[Any], names: Sequence[str]) -> list[Any]:
        """Return the inputs as the Program takes them; ValueError or TypeError names the one that does not fit."""
        arguments = self.compiled.program.block.arguments
        return [_checked(x, v.type, name) for x, v, name in zip(found, arguments, names, strict=False)]

    def __call__(self, layer: Any, leaves: Sequence[Any]) -> Any:
        if not self._random:
            return self._run(layer, leaves, {})
        with default_generator().run() as (seed, draw):
            return self._run(layer, leaves, {"?seed": seed, "?draw": draw})

    def _run(self, layer: Any, leaves: Sequence[Any], numbers: dict[str, int]) -> Any:
        call = self.call
        arguments = self.compiled.program.block.arguments[call.inputs :]
        named = zip(call.state, arguments, strict=True)
        inputs = [*leaves, *(numbers[name] if name in numbers else _state(layer, name, v.type) for name, v in named)]
        xp = namespace_among(t.payload for t in inputs if isinstance(t, Tensor))
        if current().grad:
            results = call_program(Tensor, self.compiled, inputs, xp, call.seeded)
        else:
            raw = [t.payload if isinstance(t, Tensor) else t for t in inputs]
            results = [v if isinstance(v, (bool, int, float)) else Tensor(v) for v in self.compiled.run(raw, xp)]
        count = call.outputs()
        output = restore(iter(results[:count]), call.output)
        values = iter(results[count:])
        for target, aval in call.writes:
            _write(layer, target, restore(values, aval))
        return output


def reachable(program: Program, start: str) -> dict[str, Any]:
    """Return the functions that `start` calls, itself first."""
    found = {start: program.functions[start]}
    waiting = [start]
    while waiting:
        for operation in found[waiting.pop()].walk():
            name = operation.attributes["function"] if operation.op.is_call else None
            if name is not None and name not in found:
                found[name] = program.functions[name]
                waiting.append(name)
    return found


def _checked(x: Any, kind: Type, name: str) -> Any:
    """Return an input of the Program as it takes it; ValueError or TypeError where it does not."""
    if isinstance(kind, ScalarType):
        if isinstance(x, Tensor):
            raise TypeError(f"argument '{name}' was saved as a Python {kind.kind} and cannot be a tensor")
        if kind.kind == "float" and type(x) is int:
            return float(x)
        if (x.kind if isinstance(x, Scalar) else type(x).__name__) != kind.kind:
            raise TypeError(f"argument '{name}' was saved as a Python {kind.kind}, not {type(x).__name__}")
        return x
    assert isinstance(kind, TensorType)
    if not isinstance(x, Tensor):
        raise TypeError(f"argument '{name}' takes a tensor, not {x!r:.60}")
    if x.dtype is not kind.dtype:
        raise TypeError(f"argument '{name}' is {x.dtype.name}; it was saved as {kind}")
    if isinstance(x.payload, Value):
        found = current().trace.value_of(x).type
        fits = x.ndim == kind.rank and not any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(kind.shape, found.shape, strict=True)
        )
    else:
        fits = fits_array(kind, x.payload)
    if not fits:
        raise ValueError(f"argument '{name}' has shape {list(x.shape)}; it was saved as {kind}")
    return x


def _state(layer: Any, name: str, kind: Type) -> Any:
    """Return a tensor of the state."""
    t = layer.tensor_at(name)
    if not isinstance(t, Tensor):
        raise TypeError(f"'{name}' of the loaded layer is no longer a tensor but {type(t).__name__}")
    if not (isinstance(kind, TensorType) and fits_array(kind, t.array("its elements"))):
        raise TypeError(f"'{name}' of the loaded layer is now {t.dtype.name}{list(t.shape)}; its Program reads {kind}")
    return t


def _write(layer: Any, target: Target, value: Any) -> None:
    """Make one write of a run."""
    if target.kind in ("random", "seed"):
        commit(("rng",) if target.kind == "random" else ("seed",), None, value)
        return
    assert target.name is not None
    if target.kind == "attribute":
        if not isinstance(value, UnboundLocal):
            layer._set_at(target.name, value)
        return
    commit(("data" if target.kind == "elements" else "grad",), layer.tensor_at(target.name), value)
