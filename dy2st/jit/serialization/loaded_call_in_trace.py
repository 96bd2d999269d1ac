"""A loaded method inside of a Program that is being built: its Program becomes a function there, the call an operation.

State is read and written through the side-effect log, as the attributes of any other layer are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_block
from dy2st.ir.program import Program, Value
from dy2st.jit.serialization.schema import SavedCall, Target
from dy2st.jit.tracing.trace import FunctionTrace
from dy2st.ops.control.control_flow import outward
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.access.attributes import attr, set_attr
from dy2st.runtime.tracer.values.flatten import unflatten
from dy2st.runtime.tracer.values.sentinels import MISSING
from dy2st.runtime.tracer.values.unbound import UnboundLocal


def record(trace: FunctionTrace, layer: Any, call: SavedCall, program: Program, leaves: Sequence[Any]) -> Any:
    """Append the call of a saved Program; return its output. RuntimeError in a hand-built Program."""
    if not trace.of_function:
        raise RuntimeError(
            "a loaded layer cannot be called while a Program is built by hand; call it in eager mode or under to_static"
        )
    b: Builder = trace.builder
    name = _function(trace, program)
    operands = [_operand(trace, x) for x in leaves]
    operands += [_state(trace, layer, one) for one in call.state]
    types = tuple(outward(v.type, set()) for v in program.block.results)
    results = iter(b.operation("call", operands, {"function": name, "types": types}).results)
    output = unflatten(trace, results, call.output)
    for target, aval in call.writes:
        _write(trace, layer, target, unflatten(trace, results, aval))
    return output


def _function(trace: FunctionTrace, program: Program) -> str:
    """Add the functions of a saved Program to the one that is being built; return the name of the entry."""
    known = trace.loaded_functions
    if id(program) not in known:
        names: dict[str, str] = {}
        for function in program.functions:
            base = name = f"loaded_{function}"
            iteration = 0
            while name in trace.functions or name in names.values():
                iteration += 1
                name = f"{base}_{iteration}"
            names[function] = name
        for function, block in program.functions.items():
            copy = trace.functions[names[function]] = clone_block(block)
            for operation in copy.walk():
                if operation.op.is_call:
                    operation.attributes["function"] = names[operation.attributes["function"]]
        known[id(program)] = program, names[program.entry]
    b: Builder | None = trace.builder
    while b is not None:  # derivatives of the call add functions of their own
        b.functions = trace.functions
        b = b.parent
    return known[id(program)][1]


def _operand(trace: FunctionTrace, x: Any) -> Value:
    if not isinstance(x, Tensor):
        return trace.builder.use(trace.scalar(x))
    value = trace.value_of(x)
    flows = trace.wants_gradients() and not trace.stops(x)
    return trace.builder.use(value if flows else trace.detached(value))


def _state(trace: FunctionTrace, layer: Any, name: str) -> Value:
    if name == "?draw":
        drawn = trace.log.get(("rng",))
        return trace.builder.use(trace.rng_draw() if drawn is MISSING else trace.scalar(drawn))
    if name == "?seed":
        seed = trace.log.get(("seed",))
        return trace.builder.use(trace.rng_seed() if seed is MISSING else trace.scalar(seed))
    owner, last = layer._places[name]
    t = attr(trace, owner, last)
    if not isinstance(t, Tensor):
        raise TypeError(f"'{name}' of the loaded layer is no longer a tensor but {type(t).__name__}")
    return _operand(trace, t)


def _write(trace: FunctionTrace, layer: Any, target: Target, value: Any) -> None:
    if target.kind in ("random", "seed"):
        trace.log.set(("rng",) if target.kind == "random" else ("seed",), None, value)
        return
    if isinstance(value, UnboundLocal):
        return
    owner, last = layer._place_of(target.name)
    if target.kind == "attribute":
        set_attr(trace, owner, last, value)
    elif target.kind == "elements":
        trace.write(attr(trace, owner, last), value)
    else:
        trace.write_grad(attr(trace, owner, last), value)
