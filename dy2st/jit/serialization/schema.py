"""What a file made by `jit.save` says beside its Program: methods, the state they read, what they write.

The Program of the file has one function a traced Program, named after its method (`forward`, `forward.1`). Metadata:

    {"kind": "layer", "training": true,
     "state": [{"name": "fc.weight", "kind": "parameter", "stop_gradient": false, "tensor": "fc.weight"},
               {"name": "tied.weight", "same": "fc.weight"}],
     "methods": {"forward": {"parameters": [["x", "either"]], "programs": [program, ...]}}}

    program    {"function": "forward", "mode": null or "train" or "eval", "arguments": [["x", {"input": 0}]],
                "inputs": 1, "state": ["fc.weight", {"random": "seed"}, ...], "output": template, "seeded": [0],
                "writes": [[{"attribute": "fc.last"}, template], ...]}

The arguments of a function are the inputs and then the state; its results are the output and then the writes. `seeded`
are the results of the output through which gradients flow. A write goes to an attribute (a dotted name below the
layer), to the elements or the gradient of a tensor of the state, or to the random generator's draw number or seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.ir.program import Block, Program
from dy2st.ir.types import INT, TensorType, is_differentiable, matches
from dy2st.jit.serialization.argument_schema import (
    signature_from_json,
    signature_to_json,
    tree_from_json,
    tree_to_json,
)
from dy2st.jit.serialization.output_schema import aval_from_json, aval_to_json, is_pair
from dy2st.kinds import DICT, LIST, is_dict, is_list
from dy2st.records import field, record
from dy2st.runtime.tracer.values.abstract import AbstractValue

KIND = "layer"
STATE_KINDS = ("parameter", "buffer", "temporary", "attribute")
"""A temporary is a buffer that `state_dict` leaves out; an attribute is a tensor that no layer registers."""
MODES = (None, "train", "eval")
RANDOM = ("seed", "draw")

Json = Any


@record(frozen=True)
class StateTensor:
    """A tensor that the Programs read: its dotted name below the layer, what it is there, its elements."""

    name: str
    kind: str
    stop_gradient: bool
    array: np.ndarray
    same: str | None = None
    """The name of the tensor that this is, where one tensor has two names."""


@record(frozen=True)
class Target:
    """What a write goes to. `kind` is "attribute", "elements", "gradient", "random" or "seed" (these have no name)."""

    kind: str
    name: str | None = None


@record
class SavedCall:
    """One kind of call: which function of the Program runs it, and what arguments and results are."""

    function: str
    mode: str | None
    arguments: dict[str, Any]
    inputs: int
    state: list[str]
    """Names of tensors; "seed" and "draw" of the generator are written `?seed` and `?draw`."""
    output: AbstractValue
    seeded: tuple[int, ...]
    writes: list[tuple[Target, AbstractValue]]

    def outputs(self) -> int:
        """Return how many results make up the output."""
        return len(self.output.types())


@record
class SavedMethod:
    """A function that can be called: its signature and the kinds of calls that were traced."""

    signature: inspect.Signature
    calls: list[SavedCall] = field(default_factory=list[SavedCall])


@record
class SavedLayer:
    """All that a file holds."""

    program: Program
    methods: dict[str, SavedMethod]
    state: dict[str, StateTensor]
    training: bool


# ---- writing -----------------------------------------------------------------------------------------------------
def to_metadata(saved: SavedLayer, tensors: Mapping[str, str]) -> dict[str, Json]:
    """Return the metadata; `tensors` maps a name of the state to the tensor of the file."""
    return {
        "kind": KIND,
        "training": saved.training,
        "state": [_state_to_json(t, tensors) for t in saved.state.values()],
        "methods": {
            name: {
                "parameters": signature_to_json(method.signature),
                "programs": [call_to_json(call) for call in method.calls],
            }
            for name, method in saved.methods.items()
        },
    }


def _state_to_json(t: StateTensor, tensors: Mapping[str, str]) -> Json:
    if t.same is not None:
        return {"name": t.name, "same": t.same}
    return {"name": t.name, "kind": t.kind, "stop_gradient": t.stop_gradient, "tensor": tensors[t.name]}


def call_to_json(call: SavedCall) -> dict[str, Json]:
    """Return one call as JSON; NotSaveable (a TypeError) names what a file cannot hold."""
    return {
        "function": call.function,
        "mode": call.mode,
        "arguments": [[name, tree_to_json(tree, name)] for name, tree in call.arguments.items()],
        "inputs": call.inputs,
        "state": [{"random": name[1:]} if name[0] == "?" else name for name in call.state],
        "output": aval_to_json(call.output, "the output"),
        "seeded": list(call.seeded),
        "writes": [[{t.kind: t.name}, aval_to_json(w, f"attribute '{t.name}'")] for t, w in call.writes],
    }


# ---- reading -----------------------------------------------------------------------------------------------------
def from_metadata(data: Json, program: Program, arrays: Mapping[str, np.ndarray]) -> SavedLayer:
    """Return what `to_metadata` wrote; FileFormatError says in one line where the data do not fit the Program."""
    if type(data) is not DICT or data.get("kind") != KIND:
        raise FileFormatError("the file holds a Program and no layer that jit.save wrote")
    training, listed, methods = _fields(data, ("training", "state", "methods"), "the metadata", {"kind"})
    state = _state(listed, arrays)
    if type(training) is not bool or type(methods) is not DICT or "forward" not in methods:
        raise FileFormatError("the metadata: 'training' and a method 'forward' are expected")
    made = {name: _method(name, m, program, state) for name, m in methods.items()}
    return SavedLayer(program, made, state, training)


def called_functions(metadata: Json) -> list[str]:
    """Return the functions of a Program that the methods of a file call, as far as it says: `from_metadata` checks."""
    methods = metadata.get("methods") if is_dict(metadata) else None
    found = [m.get("programs") for m in (methods.values() if is_dict(methods) else ()) if is_dict(m)]
    calls = [c.get("function") for p in found if is_list(p) for c in p if is_dict(c)]
    return [name for name in calls if type(name) is str]


def _state(data: Json, arrays: Mapping[str, np.ndarray]) -> dict[str, StateTensor]:
    found: dict[str, StateTensor] = {}
    for said in _list(data, "the state"):
        name: Any = said.get("name") if type(said) is DICT else None
        where = f"state {name!r:.60}"
        if not _is_path(name) or name in found:
            raise FileFormatError(f"{where}: each tensor has a dotted name of its own")
        if "same" in said:
            (same,) = _fields(said, ("same",), where, {"name"})
            if type(same) is not str or same not in found or found[same].same is not None:
                raise FileFormatError(f"{where} is said to be {same!r:.60}, which is not before it")
            one = found[same]
            found[name] = StateTensor(name, one.kind, one.stop_gradient, one.array, same)
            continue
        kind, stop_gradient, tensor = _fields(said, ("kind", "stop_gradient", "tensor"), where, {"name"})
        if kind not in STATE_KINDS or type(stop_gradient) is not bool:
            raise FileFormatError(f"{where}: {kind!r:.40} is no kind of state")
        if type(tensor) is not str or tensor not in arrays:
            raise FileFormatError(f"{where}: the file has no tensor {tensor!r:.60}")
        found[name] = StateTensor(name, kind, stop_gradient, arrays[tensor])
    names = sorted(found)
    for name, following in pairwise(names):
        if following.startswith(name + "."):
            raise FileFormatError(f"state {name!r:.60} cannot also be a part that holds {following!r:.60}")
    return found


def _method(name: str, data: Json, program: Program, state: Mapping[str, StateTensor]) -> SavedMethod:
    where = f"method {name!r:.60}"
    if not name.isidentifier():
        raise FileFormatError(f"{where}: a method has a Python name")
    parameters, programs = _fields(data, ("parameters", "programs"), where)
    made = SavedMethod(signature_from_json(parameters, where))
    for i, call in enumerate(_list(programs, where)):
        made.calls.append(_call(call, made.signature, program, state, f"{where}, program {i}"))
    if not made.calls:
        raise FileFormatError(f"{where} has no Program")
    return made


def _call(
    data: Json, signature: inspect.Signature, program: Program, state: Mapping[str, StateTensor], where: str
) -> SavedCall:
    keys = ("function", "mode", "arguments", "inputs", "state", "output", "seeded", "writes")
    function, mode, arguments, inputs, reads, output, seeded, writes = _fields(data, keys, where)
    block = program.functions.get(function) if type(function) is str else None
    if block is None or mode not in MODES:
        raise FileFormatError(f"{where}: there is no function {function!r:.60} for mode {mode!r:.40}")
    if type(inputs) is not int or not 0 <= inputs <= len(block.arguments):
        raise FileFormatError(f"{where}: {inputs!r:.40} is no number of inputs")
    trees: dict[str, Any] = {}
    for pair in _list(arguments, where):
        if not is_pair(pair) or type(pair[0]) is not str or pair[0] not in signature.parameters or pair[0] in trees:
            raise FileFormatError(f"{where}: {pair!r:.60} is no argument")
        trees[pair[0]] = tree_from_json(pair[1], inputs, f"{where}, argument {pair[0]!r:.60}")
    names = [_read(item, state, where) for item in _list(reads, where)]
    _check_state(names, block, inputs, state, where)
    template = aval_from_json(output, f"{where}, output")
    targets = [_write(item, state, where) for item in _list(writes, where)]
    if not all(type(i) is int for i in _list(seeded, where)):
        raise FileFormatError(f"{where}: {seeded!r:.60} are no numbers of results")
    call = SavedCall(function, mode, trees, inputs, names, template, tuple(seeded), targets)
    _check_results(call, block, where)
    return call


def _read(data: Json, state: Mapping[str, StateTensor], where: str) -> str:
    if type(data) is str and data in state:
        return data
    if is_dict(data) and data.keys() == {"random"} and data["random"] in RANDOM:
        return f"?{data['random']}"
    raise FileFormatError(f"{where}: {data!r:.60} is not in the state")


def _write(data: Json, state: Mapping[str, StateTensor], where: str) -> tuple[Target, AbstractValue]:
    if type(data) is not LIST or len(data) != 2 or type(data[0]) is not DICT or len(data[0]) != 1:
        raise FileFormatError(f"{where}: a write is a target and a template, not {data!r:.60}")
    ((kind, name),) = data[0].items()
    fits = {"attribute": _is_path(name), "elements": name in state if type(name) is str else False,
            "random": name is None, "seed": name is None}  # fmt: skip
    if not (fits["elements"] if kind == "gradient" else fits.get(kind, False)):
        raise FileFormatError(f"{where}: nothing can be written to {data[0]!r:.60}")
    return Target(kind, name), aval_from_json(data[1], f"{where}, write to {name!r:.60}")


def _check_state(names: list[str], block: Block, inputs: int, state: Mapping[str, StateTensor], where: str) -> None:
    if len(names) != len(block.arguments) - inputs:
        raise FileFormatError(f"{where}: {len(names)} tensors of state for {len(block.arguments) - inputs} arguments")
    for name, argument in zip(names, block.arguments[inputs:], strict=True):
        if name[0] == "?":
            if not matches(argument.type, INT):
                raise FileFormatError(f"{where}: the generator's {name[1:]} is no {argument.type}")
            continue
        array, declared = state[name].array, argument.type
        if not isinstance(declared, TensorType) or not fits_array(declared, array):
            raise FileFormatError(
                f"{where}: state {name!r} is {array.dtype}{list(array.shape)}, the Program reads {declared}"
            )


def _check_results(call: SavedCall, block: Block, where: str) -> None:
    expected = [*call.output.types(), *(t for _, template in call.writes for t in template.types())]
    found = [v.type for v in block.results]
    if len(expected) != len(found) or not all(map(matches, expected, found)):
        raise FileFormatError(f"{where}: output and writes do not fit the results of function {call.function!r}")
    if not all(0 <= i < call.outputs() and is_differentiable(found[i]) for i in call.seeded):
        raise FileFormatError(f"{where}: a result through which gradients are said to flow is none")


def fits_array(declared: TensorType, array: Any) -> bool:
    """Return whether an array is of a tensor type; a symbolic extent takes any."""
    same = array.dtype == declared.dtype.numpy and array.ndim == declared.rank
    return same and all(not isinstance(e, int) or e == n for e, n in zip(declared.shape, array.shape, strict=True))


def _is_path(name: Any) -> bool:
    return type(name) is str and bool(name.rpartition(".")[2])  # a part of it may be empty: the layer "blocks.0."


def _fields(data: Json, keys: tuple[str, ...], where: str, more: frozenset[str] | set[str] = frozenset()) -> list[Json]:
    if type(data) is not DICT or data.keys() != {*keys, *more}:
        raise FileFormatError(f"{where}: the keys {', '.join((*sorted(more), *keys))} are expected")
    return [data[key] for key in keys]


def _list(data: Json, where: str) -> list[Json]:
    if type(data) is not LIST:
        raise FileFormatError(f"{where}: a list is expected, not {data!r:.60}")
    return data
