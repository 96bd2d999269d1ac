"""What is to be saved of a model: its methods under to_static, and the kinds of calls of each."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

from dy2st.ir.types import ScalarType, TensorType
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.call_signature import rebuild
from dy2st.jit.static_function import StaticFunction
from dy2st.jit.tracing.input_spec_binding import bind_specs, flat_specs, sample_of
from dy2st.nn.layer import Layer
from dy2st.records import record
from dy2st.runtime.tracer.input_spec import InputSpec


@record
class CallSignature:
    """Arguments that stand for a kind of call: samples, and what is declared of them by leaf name."""

    values: dict[str, Any]
    specs: dict[str, InputSpec]
    open_numbers: set[str]


def static_functions(model: Any, input_spec: Sequence[Any] | None) -> tuple[StaticFunction, dict[str, StaticFunction]]:
    """Return what to trace as `forward`, and the other methods under to_static that have a Program or a declaration."""
    if not isinstance(model, Layer):
        if not isinstance(model, StaticFunction):
            if not callable(model):
                raise TypeError(f"jit.save takes a Layer or a function, not {type(model).__name__}")
            bound = isinstance(model, types.MethodType)
            instance = model.__self__ if bound else None
            model = StaticFunction(model.__func__ if bound else model, input_spec, True, instance)
        return model, {}
    found: dict[str, StaticFunction] = {}
    for name in dict.fromkeys([*vars(type(model)), *dir(type(model))]):
        static = (
            getattr(model, name, None) if isinstance(_static_attribute(type(model), name), StaticFunction) else None
        )
        if isinstance(static, StaticFunction) and (len(static.program_cache) or static.input_spec is not None):
            found[name] = static
    forward = model.forward
    found.pop("forward", None)
    return forward if isinstance(forward, StaticFunction) else to_trace(forward, input_spec), found


def _static_attribute(kind: type, name: str) -> Any:
    return inspect.getattr_static(kind, name, None)


def to_trace(function: Any, input_spec: Sequence[Any] | None) -> StaticFunction:
    """Return a plain forward under to_static, without touching its layer."""
    bound = isinstance(function, types.MethodType)
    return StaticFunction(
        function.__func__ if bound else function, input_spec, True, function.__self__ if bound else None
    )


def call_signatures(static: StaticFunction, input_spec: Sequence[Any] | None) -> list[CallSignature]:
    """Return the kinds of calls to save: the declared one, or those that were made."""
    declared = static.input_spec if input_spec is None else input_spec
    if declared is not None:
        values = bind_specs(static.signature, list(declared))
        return [CallSignature(sample_of(values), flat_specs(static.signature, list(declared)), set())]
    found: dict[str, CallSignature] = {}
    for program in static.program_cache:
        found.setdefault(*_kind_of(program))
    if not found:
        name = static.python_function.__qualname__
        raise ValueError(f"`{name}` has no Program yet: give jit.save an input_spec, or call the function once before")
    return list(found.values())


def _kind_of(program: ConcreteProgram) -> tuple[str, CallSignature]:
    """Return what a Program was traced for, and a text that is the same for all Programs of that kind."""
    leaves: list[Any] = []
    specs: dict[str, InputSpec] = {}
    numbers: set[str] = set()
    for argument, name in zip(program.traced.program.block.arguments, program.names, strict=False):
        kind = argument.type
        if isinstance(kind, TensorType):
            spec = InputSpec([e if isinstance(e, int) else None for e in kind.shape], kind.dtype)
            specs[name] = spec
            leaves.append(sample_of(spec))
        else:
            assert isinstance(kind, ScalarType)
            numbers.add(name)
            leaves.append({"int": 1, "float": 1.0, "bool": True}[kind.kind])
    values = {name: rebuild(tree, leaves) for name, tree in program.tree.items()}
    return f"{program.tree}{specs}{sorted(numbers)}", CallSignature(values, specs, numbers)
