"""What `jit.save` writes: every method under to_static, traced anew as the layer is now, for training and for use.

Programs are traced for saving and not taken from the cache: all inputs then let gradients flow, and what was read of
Python objects has the values of this moment. The kinds of calls come from the input_spec, or from the calls so far.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.errors import ConversionError, TraceError
from dy2st.formatting import places
from dy2st.ir.clone import clone_block
from dy2st.ir.context import replaced
from dy2st.ir.equality import structurally_equal
from dy2st.ir.location import user_location
from dy2st.ir.program import Block, Program
from dy2st.jit.dispatch.concrete_program import ConcreteProgram
from dy2st.jit.guards.call_signature import FlatCall, flatten
from dy2st.jit.guards.guards import ArgumentSlot, Guard, StateSlot
from dy2st.jit.serialization.chosen_outputs import of_chosen_outputs
from dy2st.jit.serialization.export_signatures import CallSignature, call_signatures, static_functions
from dy2st.jit.serialization.output_schema import NotSaveable, aval_to_json
from dy2st.jit.serialization.schema import SavedCall, SavedLayer, SavedMethod, Target, call_to_json
from dy2st.jit.serialization.state_names import StateNames
from dy2st.jit.static_function import StaticFunction
from dy2st.nn.layer import Layer
from dy2st.runtime.tracer.values.abstract import Const, Number


def saved_layer(
    model: Any, input_spec: Sequence[Any] | None, reserved: Callable[[str], bool],
    output_spec: Sequence[int] | None = None,
) -> SavedLayer:  # fmt: skip
    """Trace what a file holds of a Layer or function; `reserved` tells the names that a loaded layer has itself.

    Of the outputs of `forward` the file has those whose positions `output_spec` gives, all without it.
    """
    forward, others = static_functions(model, input_spec)
    owner = model if isinstance(model, Layer) else forward.instance
    names = StateNames(owner, forward.python_function)
    program = Program({}, "forward")
    methods: dict[str, SavedMethod] = {}
    for name, static in {"forward": forward, **others}.items():
        if name != "forward" and reserved(name):
            raise ValueError(
                f"a method cannot be saved under the name '{name}': loaded layers have that name themselves"
            )
        spec = input_spec if name == "forward" else None
        saver = _Saver(name, static, owner, names, program, reserved)
        if name == "forward" and output_spec is not None:
            saver.static = of_chosen_outputs(saver.static, output_spec)
        methods[name] = saver.method(call_signatures(static, spec))
    program.entry = methods["forward"].calls[0].function
    training = owner.training if isinstance(owner, Layer) else True
    return SavedLayer(program, methods, names.state(), training)


class _Saver:
    """Traces one method for saving."""

    def __init__(
        self, name: str, static: StaticFunction, owner: Any, names: StateNames, program: Program,
        reserved: Callable[[str], bool],
    ):  # fmt: skip
        self.name, self.owner, self.names, self.program = name, owner, names, program
        self.reserved = reserved
        self.warned: set[str] = set()
        self.static = self._with_hooks(static) if name == "forward" else static

    def _with_hooks(self, static: StaticFunction) -> StaticFunction:
        """Return a function that runs the layer's hooks too, with the parameters of its forward."""
        layer = self.owner
        if not isinstance(layer, Layer) or not (layer._forward_pre_hooks or layer._forward_post_hooks):
            return static

        def forward(*args: Any, **keywords: Any) -> Any:
            return layer(*args, **keywords)

        forward.__signature__ = static.signature
        return StaticFunction(forward, static.input_spec, True, checkpoint=static.checkpoint)

    def method(self, kinds: list[CallSignature]) -> SavedMethod:
        made = SavedMethod(self.static.signature)
        for kind in kinds:
            calls = self._modes(kind)
            if len(calls) == 2 and self._same(calls[0], calls[1]):
                _, call, program = calls[0]
                made.calls.append(self._placed(None, call, program))
                continue
            layer = isinstance(self.owner, Layer)
            made.calls += [self._placed(mode if layer else None, call, program) for mode, call, program in calls]
        return made

    # ---- tracing ---------------------------------------------------------------------------------------------------
    def _modes(self, kind: CallSignature) -> list[tuple[str, SavedCall, Program]]:
        """Return what a file has for the mode in which the layer is and for the other one; one of them may fail."""
        layer = self.owner
        if not isinstance(layer, Layer):
            return [("train", *self._call(*self._trace(kind)))]
        modes = [(below, below.training) for below in layer.sublayers(include_self=True)]
        now = layer.training
        found: list[tuple[str, SavedCall, Program]] = []
        refused: dict[bool, Exception] = {}
        for training in (now, not now):
            try:
                for below, before in modes:
                    below.training = before if training is now else training
                found.append((_mode(training), *self._call(*self._trace(kind))))
            except Exception as error:  # any error of the user's code: this mode cannot be saved, the other one is
                refused[training] = error
            finally:
                for below, before in modes:
                    below.training = before
        if not found:
            raise refused[now]
        for training, error in refused.items():
            self._warn(
                f"`{self.static.python_function.__qualname__}` is saved for {_purpose(not training)} only: traced for "
                f"{_purpose(training)} it raised {type(error).__name__}: {error}"
            )
        return found

    def _trace(self, kind: CallSignature) -> tuple[ConcreteProgram, FlatCall, CallSignature]:
        made = flatten(kind.values, kind.open_numbers)
        made.fixed = None
        context = {"layer": self.owner} if isinstance(self.owner, Layer) else {}
        try:
            with replaced(trace=None, grad=True, **context):
                static = self.static
                fresh = StaticFunction(static.python_function, None, True, static.instance, static.checkpoint)
                found = fresh.traced(
                    made, kind.specs, by_value=True
                )  # a function of its own: the user's stays as it is
        except (ConversionError, TraceError) as error:
            name = self.static.python_function.__qualname__
            raise TraceError(f"`{name}` cannot be saved because it cannot become a Program: {error}") from error
        if found.traced.failed is not None:
            error = found.traced.failed
            raise TraceError(
                f"`{self.static.python_function.__qualname__}` cannot be saved: it always raises {error!r}"
            )
        return found, made, kind

    # ---- what a file says of a trace -------------------------------------------------------------------------------
    def _call(self, program: ConcreteProgram, made: FlatCall, kind: CallSignature) -> tuple[SavedCall, Program]:
        traced = program.traced
        inputs = len(made.leaves)
        state: list[str] = []
        arguments = traced.program.block.arguments
        for argument, name in zip(arguments, made.names, strict=False):
            argument.name = (kind.specs[name].name or name) if name in kind.specs else name
        for argument, (slot, _) in zip(arguments[inputs:], traced.state, strict=True):
            name = self.names.name(slot) if isinstance(slot, StateSlot) else f"?{slot}"
            argument.name = name.lstrip("?")
            state.append(name)
        writes = self._kept_writes(program)
        call = SavedCall("", None, made.tree, inputs, state, traced.output, traced.flows, writes)
        call_to_json(call)  # what a file cannot hold is named before anything is written
        return call, traced.program

    def _kept_writes(self, program: ConcreteProgram) -> list[tuple[Target, Any]]:
        """Return the writes that a loaded layer can make; the results of the others leave the Program."""
        traced, block = program.traced, program.traced.program.block
        results, at = block.results[: traced.outputs], traced.outputs
        kept: list[tuple[Target, Any]] = []
        if traced.actions:
            self._warn("a loaded layer will not go on with the learning rate schedule, as forward does")
        for key, owner, aval in traced.writes:
            values = block.results[at : at + len(aval.types())]
            at += len(values)
            owner = owner.fetch() if isinstance(owner, StateSlot) else owner
            target = self._target(key, owner)
            if target is None:
                self._warn(f"a loaded layer will not change {_shown(key, owner)}, as forward does")
                continue
            if not self._fits(target, aval):
                continue
            if target.kind == "attribute":
                self._warn_of_number(program, key, aval)
            kept.append((target, aval))
            results = [*results, *values]
        block.results = results
        return kept

    def _target(self, key: tuple[Any, ...], owner: Any) -> Target | None:
        if key[0] in ("rng", "seed"):
            return Target("random" if key[0] == "rng" else "seed")
        if key[0] in ("data", "grad"):
            name = self.names.known(owner)
            return None if name is None else Target("elements" if key[0] == "data" else "gradient", name)
        if key[0] != "attr":
            return None
        path = self.names.path(owner, key[2])
        if path is None:
            before = getattr(owner, key[2], None)
            path = self.names.known(before) if before is not None else None
        elif self.reserved(path):
            raise ValueError(f"forward sets the attribute '{path}', which loaded layers have themselves: rename it")
        return None if path is None else Target("attribute", path)

    def _fits(self, target: Target, aval: Any) -> bool:
        try:
            aval_to_json(aval, f"attribute '{target.name}'")
        except NotSaveable as error:
            self._warn(f"a loaded layer will not set it: {error}")
            return False
        return True

    def _warn_of_number(self, program: ConcreteProgram, key: tuple[Any, ...], aval: Any) -> None:
        """Warn of a Python number that forward reads and changes: in a file it is what it is now."""
        number = isinstance(aval, Number) or (isinstance(aval, Const) and type(aval.object) in (int, float))
        read = any(isinstance(g, Guard) and (id(g.owner), g.name) == key[1:] for g in program.traced.guards)
        if number and read:
            self._warn(
                f"forward changes the Python number '{key[2]}' that it also reads; a loaded layer starts calls from "
                "what it is now. Make it a tensor buffer (register_buffer) to have it change"
            )

    def _warn(self, text: str) -> None:
        """Warn, once a method, at the line that saves."""
        if text in self.warned:
            return
        self.warned.add(text)
        place = user_location()
        if place is None:
            warnings.warn(text, UserWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, UserWarning, place.file, place.line)

    # ---- the Program -----------------------------------------------------------------------------------------------
    def _same(self, a: tuple[Any, SavedCall, Program], b: tuple[Any, SavedCall, Program]) -> bool:
        return call_to_json(a[1]) == call_to_json(b[1]) and structurally_equal(a[2], b[2], locations=True)

    def _placed(self, mode: str | None, call: SavedCall, program: Program) -> SavedCall:
        """Add a traced Program to that of the file, its functions under names of their own."""
        taken, number = self.program.functions, 0
        name = self.name if mode != "eval" else f"{self.name}_eval"
        entry = name
        while entry in taken:
            number += 1
            entry = f"{name}.{number}"
        names = {f: entry if f == program.entry else f"{entry}.{f}" for f in program.functions}
        for f, block in program.functions.items():
            copy = taken[names[f]] = clone_block(block)
            for operation in copy.walk():
                if operation.op.is_call:
                    operation.attributes["function"] = names[operation.attributes["function"]]
            _forget_labels(copy, frozenset())
        call.function, call.mode = entry, mode
        return call


def _forget_labels(block: Block, caught: frozenset[int | None]) -> None:
    """Take the labels from what is raised, and what goes with them: both are for this process, or a `try` around."""
    for operation in block.operations:
        if operation.op.is_raise and operation.attributes["label"] not in caught:
            operation.attributes["label"] = None
            del operation.operands[places(operation.attributes["template"] or ()) :]
        for i, inner in enumerate(operation.blocks):
            in_body = operation.op.is_try and i == 0
            _forget_labels(inner, caught | {operation.attributes["label"]} if in_body else caught)


def _shown(key: tuple[Any, ...], owner: Any) -> str:
    """Return what a write goes to, for people."""
    if key[0] in ("items", "tail") and isinstance(owner, ArgumentSlot):
        return "a list or dict that is an argument"
    if key[0] in ("items", "tail"):
        return f"a {type(owner).__name__} that was there before the call"
    if key[0] == "attr":
        return f"the attribute '{key[2]}' of an object of type {type(owner).__name__}"
    if key[0] in ("data", "grad"):
        return "the elements of an argument" if key[0] == "data" else "the gradient of an argument"
    return "a variable of an outer function" if key[0] == "cell" else "a global variable"


def _mode(training: bool) -> str:
    return "train" if training else "eval"


def _purpose(training: bool) -> str:
    return "training" if training else "evaluation"
