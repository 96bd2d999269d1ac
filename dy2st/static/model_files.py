"""Hand-built Programs in files: for inference (Program and values together), or the values alone.

    {"kind": "inference", "results": ["fc_0.tmp_0", ...],
     "arguments": [["feed", "x"], ["parameter", "fc_0.w_0"], ["state", "mean"], ["random", "seed"]]}

What the fetched variables do not depend on is left out, and so is what only training does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import program_file, regular, state_files, state_reading
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.context import current
from dy2st.ir.program import Block, Operation, Value
from dy2st.ir.program import Program as IrProgram
from dy2st.ir.serialize import CONSTANT, from_json, to_json
from dy2st.ir.types import INT, TensorType, matches
from dy2st.passes.simplify.dce import RemoveDeadCode
from dy2st.runtime.eager import device
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.signal_delivery import delivering
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar
from dy2st.static.program import Program, default_main_program
from dy2st.static.recorder import ProgramRecorder, State
from dy2st.static.scope import Scope, global_scope
from dy2st.static.variable import StaticParameter, Variable

KIND = "inference"
ROLES = ("feed", "parameter", "state", "random")
VALUES = ".pdparams"


@delivering
def save_inference_model(
    path_prefix: str | os.PathLike[str],
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Any,
    executor: Any = None,
    *,
    program: Program | None = None,
    **configs: Any,
) -> Path:
    """Save what computes `fetch_vars` from `feed_vars`, with the values of its parameters, to `<path_prefix>.dy2st`.

    The Program is that of evaluation: without dropout, with the running statistics of batch norm. Values come from the
    global scope. ValueError where the fetched variables need data that `feed_vars` does not name; RuntimeError where
    the startup program was not run. The file is written whole or not at all.
    """
    _check_configs("save_inference_model", configs, ("clip_extra", "legacy_format", "skip_prune_program"))
    feeds = variables(feed_vars, "feed_vars")
    fetches = variables(fetch_vars, "fetch_vars")
    whole = (program or default_main_program()).clone(for_test=True)
    made, arguments = pruned(whole.recorder, fetches, [t.name for t in feeds])
    data, tensors = to_json(made)
    for role, name in arguments:
        if role in ("parameter", "state"):
            tensors[name] = device.move(whole.recorder.holder(name).array, device.CPU)
    target = Path(path_prefix)
    target.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"kind": KIND, "arguments": [list(a) for a in arguments], "results": [t.name for t in fetches]}
    return program_file.write(target, data, tensors, metadata)


@delivering
def load_inference_model(
    path_prefix: str | os.PathLike[str], executor: Any = None, scope: Scope | None = None, **configs: Any
) -> list[Any]:
    """Load what `save_inference_model` wrote; return [Program, names of its data, variables to fetch].

    Values go into the scope (the global one where none is given). A model of PaddlePaddle, `<path_prefix>.json` or
    `<path_prefix>.pdmodel`, is taken where there is no `<path_prefix>.dy2st`. FileFormatError says in one line
    what is wrong with a file that is damaged, newer, or not ours; the scope is then as it was.
    """
    _check_configs("load_inference_model", configs, ("model_filename", "params_filename"))
    target = program_file.found(path_prefix)
    foreign = None if target.is_file() and target.name.endswith(program_file.SUFFIX) else _foreign(path_prefix, configs)
    if foreign is not None:
        return current().process.paddle_files().load_program(*foreign, scope)
    metadata, data, arrays = program_file.read(target, private=True)
    with regular.errors_of(target):
        constants = {name: array for name, array in arrays.items() if name.startswith(CONSTANT)}
        made = from_json(data, constants, ())
        arguments, results = checked(metadata, made, arrays)
    return program_of(made, arguments, results, arrays, scope if scope is not None else global_scope())


def program_of(
    made: IrProgram, arguments: Sequence[Any], results: Sequence[str], arrays: Mapping[str, np.ndarray] | None,
    scope: Scope,
) -> list[Any]:  # fmt: skip
    """Return [Program, names of its data, variables to fetch]; values go into the scope where there are any."""
    block = made.block
    recorder = ProgramRecorder(Builder(block))
    recorder.for_test = True
    for (role, name), value in zip(arguments, block.arguments, strict=True):
        if role == "feed":
            recorder.feeds[name] = _named(recorder, value, name)
        elif role == "random":
            recorder.rng_arguments[name] = value
        else:
            kind = StaticParameter(value, recorder, name=name) if role == "parameter" else _named(recorder, value, name)
            recorder.keep_state(State(name, value, kind))
            if arrays is not None:
                recorder.holder(name, scope, fresh=True).put(device.move(arrays[name], device.current_place()))
    found = [_named(recorder, v, name) for v, name in zip(block.results, results, strict=False)]
    if len(block.results) > len(results):
        recorder.log.set(("rng",), None, Scalar(block.results[-1]))
    block.results = []
    return [Program(recorder), list(recorder.feeds), found]


@delivering
def save(program: Program, model_path: str | os.PathLike[str], protocol: int = 4, **configs: Any) -> None:
    """Save the values of a Program's parameters and other state to `<model_path>.pdparams`; nothing is pickled."""
    _check_configs("save", configs, ())
    target = _values_file(model_path)
    target.parent.mkdir(parents=True, exist_ok=True)
    values = {name: t.numpy() for name, t in program.state_dict().items()}
    state_files.save(values, target)


@delivering
def load(program: Program, model_path: str | os.PathLike[str], executor: Any = None, var_list: Any = None) -> None:
    """Put the values that `save` wrote into the global scope, those of `var_list` where it is given.

    ValueError names a variable of `var_list` that the file lacks. FileFormatError says what is wrong with a file.
    """
    values = load_program_state(model_path)
    if var_list is not None:
        wanted = [t.name for t in var_list]
        for name in wanted:
            if name not in values:
                raise ValueError(f"{_values_file(model_path)} has no value for the variable {name}")
        values = {name: values[name] for name in wanted}
    set_program_state(program, values)


@delivering
def load_program_state(model_path: str | os.PathLike[str], var_list: Any = None) -> dict[str, np.ndarray]:
    """Return the values that `save` wrote, by name; those of a file that PaddlePaddle pickled too.

    `var_list` keeps those of the variables in it; ValueError names one that the file has not.
    """
    target = _values_file(model_path)
    values = state_reading.load(target)
    if not isinstance(values, dict) or not all(isinstance(v, np.ndarray) for v in values.values()):
        raise FileFormatError(f"{target}: the file holds no values of a Program by name")
    if var_list is None:
        return values
    wanted = [getattr(v, "name", v) for v in var_list]
    if absent := [name for name in wanted if name not in values]:
        raise ValueError(f"{target} has no values of {', '.join(absent)}")
    return {name: values[name] for name in wanted}


def set_program_state(program: Program, state_dict: Mapping[str, Any]) -> None:
    """Set the values of a Program's parameters and state; names that it lacks are left out.

    ValueError names a value whose shape differs; nothing was set then.
    """
    for name, value in state_dict.items():
        state = program.recorder.states.get(name)
        if state is not None and not _fits(state.value.type, np.asarray(value)):
            raise ValueError(f"the variable {name} is {state.value.type}, the value for it {np.asarray(value).dtype}"
                             f"{list(np.shape(value))}")  # fmt: skip
    program.set_state_dict(dict(state_dict))


def _foreign(path: str | os.PathLike[str], configs: Mapping[str, Any]) -> tuple[Path, Path | None] | None:
    """Return the model of PaddlePaddle that a path, or a name in that folder, is, and the file of its weights."""
    reader, name, weights = (
        current().process.paddle_files,
        configs.get("model_filename"),
        configs.get("params_filename"),
    )
    found = None if reader is None else reader().found(path if name is None else Path(path) / name)
    return None if found is None else (found, None if weights is None else found.parent / weights)


# ---- helpers -----------------------------------------------------------------------------------------------------
def variables(given: Any, what: str) -> list[Tensor]:
    """Return one or several variables as a list."""
    found = list(given) if isinstance(given, (list, tuple)) else [given]
    for t in found:
        if not isinstance(t, Tensor) or not isinstance(t.payload, Value):
            raise TypeError(f"{what} takes variables of a hand-built Program, not {type(t).__name__}")
    return found


def pruned(
    recorder: ProgramRecorder, fetches: list[Tensor], feeds: list[str]
) -> tuple[IrProgram, list[tuple[str, str]]]:
    """Return a Program of what the fetches need, and what its arguments are, feeds first in their order."""
    root = recorder.root.block
    results = [recorder.value_of(t) for t in fetches]
    roles: dict[Value, tuple[str, str]] = {}
    for name, t in recorder.feeds.items():
        fed: Value = t.payload
        roles[recorder.moved.get(fed, fed)] = "feed", name
    for name, state in recorder.states.items():
        roles[state.value] = ("parameter" if isinstance(state.tensor, Parameter) else "state"), name
    roles.update({value: ("random", name) for name, value in recorder.rng_arguments.items()})
    named = [roles[a] for a in root.arguments]
    made = _of_results(recorder, results)
    used = _used(made)
    if any(role == "random" and a in used for (role, _), a in zip(named, made.block.arguments, strict=True)):
        made = _of_results(recorder, [*results, recorder.scalar(recorder.log.get(("rng",)))])
    return _ordered(made, named, feeds)


def _of_results(recorder: ProgramRecorder, results: list[Value]) -> IrProgram:
    """Return a copy of the Program that gives these results and does nothing else: no print, no check of other data."""
    root = recorder.root.block
    needed = set(results)
    kept: list[Operation] = []
    for operation in reversed(root.operations):
        if not needed.isdisjoint(operation.results):
            needed.update(operation.operands)
            kept.append(operation)
    whole = Block()
    whole.arguments, whole.operations, whole.results = root.arguments, kept[::-1], results
    made = clone_program(IrProgram({"main": whole, **recorder.functions}))
    RemoveDeadCode().apply(made)
    return made


def _ordered(made: IrProgram, named: list[tuple[str, str]], feeds: list[str]) -> tuple[IrProgram, list[Any]]:
    block, used = made.block, _used(made)
    pairs = [(a, role) for a, role in zip(block.arguments, named, strict=True) if a in used or role[1] in feeds]
    for _, (role, name) in pairs:
        if role == "feed" and name not in feeds:
            raise ValueError(f"the fetched variables depend on the data {name!r}, which feed_vars does not name")
    absent = [name for name in feeds if ("feed", name) not in [role for _, role in pairs]]
    if absent:
        raise ValueError(f"feed_vars names {absent[0]!r}, which is no data of the Program")
    pairs.sort(key=lambda pair: feeds.index(pair[1][1]) if pair[1][0] == "feed" else len(feeds))
    block.arguments[:] = [a for a, _ in pairs]
    return made, [role for _, role in pairs]


def _used(made: IrProgram) -> set[Value]:
    return {v for operation in made.block.operations for v in operation.operands} | set(made.block.results)


def _named(recorder: ProgramRecorder, value: Value, name: str) -> Variable:
    made = recorder.wrap(value)
    made.name = name
    return made


def checked(
    metadata: Any, made: IrProgram, arrays: Mapping[str, np.ndarray] | None, kind: str = KIND
) -> tuple[list[Any], list[str]]:
    """Return what arguments and results are; FileFormatError where that does not fit the Program.

    Without `arrays` the values of the Program stand elsewhere.
    """
    if metadata.get("kind") != kind:
        raise FileFormatError("the file was not written by save_inference_model (jit.load reads what jit.save wrote)")
    arguments, results = metadata.get("arguments"), metadata.get("results")
    block = made.block
    if len(made.functions) != 1:
        raise FileFormatError("a Program for inference has one function")
    if metadata.keys() != {"kind", "arguments", "results"} or type(arguments) is not list or type(results) is not list:
        raise FileFormatError("the metadata: the keys kind, arguments, results are expected")
    extra = len(block.results) - len(results)
    if len(arguments) != len(block.arguments) or not all(type(r) is str for r in results) or extra not in (0, 1):
        raise FileFormatError("the metadata do not fit the arguments and results of the Program")
    seen: set[str] = set()
    for pair, argument in zip(arguments, block.arguments, strict=True):
        if type(pair) is not list or len(pair) != 2 or pair[0] not in ROLES or type(pair[1]) is not str:
            raise FileFormatError(f"the metadata: {pair!r:.60} is no argument")
        role, name = pair
        if name in seen:
            raise FileFormatError(f"the metadata: two arguments are named {name!r:.60}")
        seen.add(name)
        stored = role in ("parameter", "state")
        if stored and arrays is not None and (name not in arrays or not _fits(argument.type, arrays[name])):
            raise FileFormatError(f"the Program reads {name!r:.60} as {argument.type}, which the file does not have")
        if role == "feed" and not isinstance(argument.type, TensorType):
            raise FileFormatError(f"the data {name!r:.60} are no tensor")
        if role == "random" and (name not in ("seed", "draw") or not matches(INT, argument.type)):
            raise FileFormatError(f"{name!r:.60} is no number of the generator")
    if extra and not matches(INT, block.results[-1].type):
        raise FileFormatError("the last result of the Program is no draw number")
    return arguments, results


def _fits(kind: Any, array: np.ndarray) -> bool:
    return isinstance(kind, TensorType) and array.dtype == kind.dtype.numpy and tuple(array.shape) == kind.shape


def _values_file(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    return path if path.name.endswith(VALUES) else path.with_name(path.name + VALUES)


def _check_configs(function: str, given: dict[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
