"""The arguments of a saved function: its signature as JSON, and which input of the Program stands where.

    parameter   ["x", "either"]  ["k", "keyword", {"const": 3}]       name, kind, default where there is one
    tree        {"input": 0}  {"fixed": {"const": "relu"}}  {"list": [tree, ...]}  {"dict": [[key, tree], ...]}

A file keeps the parameters' names, so that a loaded function is called as the one that was saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.jit.guards.call_signature import ContainerNode, InputLeaf, StaticLeaf
from dy2st.jit.serialization.output_schema import (
    CONTAINERS,
    MAX_DEPTH,
    NotSaveable,
    constant_from_json,
    constant_to_json,
    is_pair,
    key_from_json,
    key_to_json,
)
from dy2st.kinds import DICT, LIST, is_container, is_dict, is_list, is_sequence
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.tracer.values.abstract import same_constant
from dy2st.runtime.tracer.values.symbolic_scalar import Scalar

_KINDS = {
    "positional": inspect.Parameter.POSITIONAL_ONLY, "either": inspect.Parameter.POSITIONAL_OR_KEYWORD,
    "args": inspect.Parameter.VAR_POSITIONAL, "keyword": inspect.Parameter.KEYWORD_ONLY,
    "keywords": inspect.Parameter.VAR_KEYWORD,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}

Json = Any


# ---- signatures --------------------------------------------------------------------------------------------------
def signature_to_json(signature: inspect.Signature) -> Json:
    """Return the parameters as JSON. A default that a file cannot hold is left out: the argument must then be given."""
    made: list[Json] = []
    for p in signature.parameters.values():
        entry: list[Json] = [p.name, _NAMES[p.kind]]
        if p.default is not inspect.Parameter.empty:
            with suppress(NotSaveable):  # else the caller has to give it
                entry.append(constant_to_json(p.default, f"the default of '{p.name}'"))
        made.append(entry)
    return made


def signature_from_json(data: Json, where: str) -> inspect.Signature:
    """Return the signature that `signature_to_json` wrote."""
    if type(data) is not LIST:
        raise FileFormatError(f"{where}: a list of parameters is expected")
    made: list[inspect.Parameter] = []
    for entry in data:
        if type(entry) is not LIST or len(entry) not in (2, 3) or not all(type(e) is str for e in entry[:2]):
            raise FileFormatError(f"{where}: a parameter is a name, a kind and a default, not {entry!r:.60}")
        if entry[1] not in _KINDS:
            raise FileFormatError(f"{where}: {entry[1]!r:.60} is no kind of parameter")
        default = constant_from_json(entry[2], where) if len(entry) == 3 else inspect.Parameter.empty
        try:
            made.append(inspect.Parameter(entry[0], _KINDS[entry[1]], default=default))
        except ValueError as error:
            raise FileFormatError(f"{where}: {error}") from error
    try:
        return inspect.Signature(made)
    except ValueError as error:
        raise FileFormatError(f"{where}: {error}") from error


# ---- trees -------------------------------------------------------------------------------------------------------
def tree_to_json(tree: Any, name: str) -> Json:
    """Return where inputs stand inside of argument `name`."""
    if isinstance(tree, InputLeaf):
        return {"input": tree.index}
    if isinstance(tree, StaticLeaf):
        return {"fixed": constant_to_json(tree.value, f"argument '{name}'")}
    if tree.is_object or (tree.keys is None and tree.kind.__name__ not in CONTAINERS):
        raise NotSaveable(f"argument '{name}' is a {tree.kind.__name__}, which a file cannot hold")
    if tree.keys is None:
        return {tree.kind.__name__: [tree_to_json(item, name) for item in tree.items]}
    pairs = zip(tree.keys, tree.items, strict=True)
    return {"dict": [[key_to_json(k, f"argument '{name}'"), tree_to_json(item, name)] for k, item in pairs]}


def tree_from_json(data: Json, inputs: int, where: str, depth: int = 0) -> Any:
    """Return the tree that `tree_to_json` wrote; its leaves are numbers below `inputs`."""
    if depth > MAX_DEPTH or type(data) is not DICT or len(data) != 1:
        raise FileFormatError(f"{where}: {data!r:.60} does not say what an argument is made of")
    ((kind, content),) = data.items()
    if kind == "input" and type(content) is int and 0 <= content < inputs:
        return InputLeaf(content)
    if kind == "fixed":
        return StaticLeaf(constant_from_json(content, where))
    if kind in CONTAINERS and is_list(content):
        return ContainerNode(CONTAINERS[kind], [tree_from_json(i, inputs, where, depth + 1) for i in content], None)
    if kind == "dict" and is_list(content) and all(map(is_pair, content)):
        items = [tree_from_json(pair[1], inputs, where, depth + 1) for pair in content]
        return ContainerNode(dict, items, [key_from_json(pair[0], where) for pair in content])
    raise FileFormatError(f"{where}: {data!r:.60} does not say what an argument is made of")


# ---- calls -------------------------------------------------------------------------------------------------------
def collect(tree: Any, x: Any, name: str, leaves: list[Any], names: list[str]) -> None:
    """Put what stands at the leaves of `tree` into `leaves`; ValueError or TypeError says where `x` differs."""
    if isinstance(tree, InputLeaf):
        _collect_leaf(tree, x, name, leaves)
        names[tree.index] = names[tree.index] or name
    elif isinstance(tree, StaticLeaf):
        if not _same(tree.value, x):
            raise ValueError(f"argument '{name}' was saved as {tree.value!r} and cannot be {_shown(x)}")
    elif tree.keys is not None:
        if not is_dict(x) or list(x) != tree.keys:
            raise ValueError(
                f"argument '{name}' was saved as a dict with the keys {_words(tree.keys)}, not {_shown(x)}"
            )
        for key, item in zip(tree.keys, tree.items, strict=True):
            collect(item, x[key], f"{name}[{key!r}]", leaves, names)
    else:
        if not isinstance(x, tree.kind) or len(x) != len(tree.items):
            kind = tree.kind.__name__
            raise ValueError(f"argument '{name}' was saved as a {kind} of {len(tree.items)} items, not {_shown(x)}")
        for i, item in enumerate(tree.items):
            collect(item, x[i], f"{name}[{i}]", leaves, names)


def _same(saved: Any, x: Any) -> bool:
    """Return whether an argument is the constant that was saved, containers item by item."""
    if same_constant(saved, x):
        return True
    if type(saved) is not type(x) or not is_container(saved) or len(saved) != len(x):
        return False
    if is_dict(saved):
        return list(saved) == list(x) and all(_same(v, x[k]) for k, v in saved.items())
    return all(map(_same, saved, x))


def _collect_leaf(tree: InputLeaf, x: Any, name: str, leaves: list[Any]) -> None:
    if isinstance(x, np.ndarray):
        x = Tensor(x)
    if not isinstance(x, (Tensor, Scalar)) and type(x) not in (int, float, bool):
        raise TypeError(f"argument '{name}' takes a tensor, not {_shown(x)}")
    before = leaves[tree.index]
    if before is not None and before is not x:
        raise ValueError(f"argument '{name}' was the same tensor as another argument when it was saved")
    leaves[tree.index] = x


def _shown(x: Any) -> str:
    if x is None or isinstance(x, (bool, int, float, str)):
        return repr(x)[:60]
    if is_dict(x):
        return f"a dict with the keys {_words(list(x))}"
    return f"a {type(x).__name__}" + (f" of {len(x)} items" if is_sequence(x) else "")


def _words(keys: Sequence[Any]) -> str:
    return ", ".join(map(repr, keys)) or "(none)"
