"""Models that PaddlePaddle saved as hand-built Programs: what `static.load_inference_model` returns for them."""

from __future__ import annotations

import os
from typing import Any

from dy2st.errors import FileFormatError
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.context import replaced
from dy2st.ir.program import Program as IrProgram
from dy2st.jit.serialization.translated_layer import TranslatedLayer
from dy2st.paddle_files.loading import layer_of, read_graph
from dy2st.runtime.eager import device
from dy2st.static.program import Program
from dy2st.static.recorder import ProgramRecorder, State
from dy2st.static.scope import Scope, global_scope
from dy2st.static.variable import StaticParameter


def load_program(
    model: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None, scope: Scope | None = None
) -> list[Any]:
    """Return [Program, names of its data, variables to fetch] of a model; its weights go into the scope.

    The Program is that of the layer which `jit.load` returns. FileFormatError says what is wrong with a file, or that
    the model can be in no Program; the scope is then as it was.
    """
    graph = read_graph(model, weights)
    with replaced(trace=None, static=None):
        layer = layer_of(graph, str(model))
    if not isinstance(layer, TranslatedLayer):
        raise FileFormatError(f"{model}: it can be in no Program: jit.load runs it operation by operation")
    saved = layer._saved
    call = next(c for c in saved.methods["forward"].calls if c.mode != "train")
    made = clone_program(IrProgram({call.function: saved.program.functions[call.function]}, call.function))
    block, results = made.block, made.block.results[: call.outputs()]
    if any(operation.op.is_call for operation in made.walk()) or call.writes:
        raise FileFormatError(f"{model}: it draws random numbers or sets running statistics; jit.load takes it")
    recorder = ProgramRecorder(Builder(block))
    recorder.for_test = True
    scope = scope if scope is not None else global_scope()
    for one, value in zip(graph.inputs, block.arguments, strict=False):
        recorder.feeds[one.name] = _named(recorder, value, one.name)
    for name, value in zip(call.state, block.arguments[call.inputs :], strict=True):
        if name.startswith("?"):
            recorder.rng_arguments[name[1:]] = value
            continue
        said = saved.state[name]
        variable: Any = _named(recorder, value, name)
        if said.kind == "parameter":
            variable = StaticParameter(value, recorder, name=name)
        recorder.keep_state(State(name, value, variable))
        recorder.holder(name, scope, fresh=True).put(device.move(said.array, device.current_place()))
    block.results = []
    return [Program(recorder), list(recorder.feeds), [recorder.wrap(value) for value in results]]


def _named(recorder: ProgramRecorder, value: Any, name: str) -> Any:
    made = recorder.wrap(value)
    made.name = name
    return made
