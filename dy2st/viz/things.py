"""What can be drawn, and the panels of each: Programs, Layers, functions under to_static, saved files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st.files import program_file
from dy2st.ir.program import Program
from dy2st.jit import StaticFunction, TranslatedLayer, load, to_static
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.guards import StateSlot
from dy2st.nn.layer import Layer
from dy2st.static.program import Program as StaticProgram
from dy2st.viz.graph import Names, panels_of
from dy2st.viz.layers import arrange
from dy2st.viz.panels import Node, Panel, count


def panels_and_title(thing: Any, input_spec: Sequence[Any] | None, details: bool) -> tuple[list[Panel], str]:
    """Return the panels of anything that can be drawn, and a title; TypeError for what cannot."""
    if isinstance(thing, Program):
        return panels_of(thing, details=details), f"Program {thing.entry}"
    if isinstance(thing, StaticProgram):
        return _hand_built(thing, details), "Program"
    if isinstance(thing, ConcreteProgram):
        return _traced(thing, details), "Program"
    if isinstance(thing, TranslatedLayer):
        return _loaded(thing, details), "saved layer"
    if isinstance(thing, Layer):
        return _layer(thing, input_spec, details)
    if isinstance(thing, StaticFunction):
        return _traced(_concrete(thing, input_spec), details, thing.instance), str(
            getattr(thing, "__name__", "function")
        )
    if program_file.is_path(thing):
        return _loaded(load(thing), details), program_file.found(thing).name
    if callable(thing) and input_spec is not None:
        return panels_and_title(to_static(thing, full_graph=True), input_spec, details)
    more = "; a plain function needs an input_spec, or to_static" if callable(thing) else ""
    raise TypeError(
        "a Program, a Layer, a to_static function or the path of a saved file can be drawn, "
        f"not {type(thing).__name__}{more}"
    )


def _hand_built(program: StaticProgram, details: bool) -> list[Panel]:
    recorder = program.recorder
    writes = [(state.name, value) for state, value in recorder.writes()]
    stores = list(recorder.stores.items())
    results = [value for _, value in (*writes, *stores)]
    used = {v for operation in recorder.root.block.operations for v in operation.operands}
    last = [v for o in recorder.root.block.operations[-1:] for v in o.results if v not in used and v not in results]
    names = Names(
        [*(f"write {name}" for name, _ in (*writes, *stores)), *("result" for _ in last)],
        {state.value for state in recorder.states.values()},
    )
    return panels_of(program.ir_program([*results, *last]), {"main": names}, details)


def _traced(concrete: ConcreteProgram, details: bool, layer: Any = None) -> list[Panel]:
    traced, block = concrete.traced, concrete.main_program.block
    names = Names(["output"] * traced.outputs)
    for key, _, template in traced.writes:
        names.results += [f"write {key[2] if key[0] == 'attr' else key[0]}"] * len(template.types())
    known = {id(t): name for name, t in layer.to_static_state_dict().items()} if isinstance(layer, Layer) else {}
    state = block.arguments[len(block.arguments) - len(traced.state) :]
    for argument, (slot, _) in zip(state, traced.state, strict=True):
        names.state.add(argument)
        if isinstance(slot, StateSlot) and id(slot.fetch()) in known:
            names.arguments[argument] = known[id(slot.fetch())]
    return panels_of(concrete.main_program, {concrete.main_program.entry: names}, details)


def _loaded(layer: TranslatedLayer, details: bool) -> list[Panel]:
    saved = layer._saved
    names: dict[str, Names] = {}
    for method in saved.methods.values():
        for call in method.calls:
            made = names[call.function] = Names(["output"] * call.outputs())
            for target, template in call.writes:
                made.results += [f"write {target.name or target.kind}"] * len(template.types())
            made.state.update(saved.program.functions[call.function].arguments[call.inputs :])
    return panels_of(saved.program, names, details)


def _concrete(function: StaticFunction, input_spec: Sequence[Any] | None) -> ConcreteProgram:
    if input_spec is not None:
        return function.concrete_program_specify_input_spec(list(input_spec))
    return function.concrete_program


def _layer(layer: Layer, input_spec: Sequence[Any] | None, details: bool) -> tuple[list[Panel], str]:
    title = type(layer).__name__
    forward = layer.forward
    if isinstance(forward, StaticFunction) and (input_spec is not None or len(forward.program_cache) or
                                                forward.input_spec is not None):  # fmt: skip
        return _traced(_concrete(forward, input_spec), details, layer), title
    if input_spec is not None:
        return _traced(_concrete(to_static(forward, full_graph=True), input_spec), details, layer), title
    panel = Panel("")
    panel.nodes.append(_part(title, layer))
    arrange(panel)
    count([panel])
    return [panel], title


def _part(name: str, layer: Layer) -> Node:
    """Return a layer as a box that holds the layers below it, in the order in which they were made."""
    lines = [f"{n} {list(p.shape)}" for n, p in layer.named_parameters(include_sublayers=False)]
    lines += [f"{n} {list(b.shape)} (buffer)" for n, b in layer.named_buffers(include_sublayers=False)]
    node = Node(name, lines, "layer", f"{name}\n{layer!r}"[:600])
    children = [(n, below) for n, below in layer.named_children()]
    if children:
        panel = Panel("")
        panel.nodes = [_part(f"{n}: {type(below).__name__}", below) for n, below in children]
        arrange(panel)
        panel.rows = [[number] for number in range(len(panel.nodes))]
        node.panels = [panel]
    return node
