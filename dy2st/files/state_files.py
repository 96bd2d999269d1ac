"""State dicts as files: nested dicts, lists and tuples of arrays and Python scalars in one safetensors file.

The arrays are tensors of the file, named after where they stand ("fc.weight"); `structure` in the metadata says how
they are put together:

    null, true, 3, 0.5, "text"      themselves
    {"float": "nan"}                a float that JSON has no word for
    {"tensor": "fc.weight"}         what was a tensor
    {"array": "mean"}               what was NumPy's array: a tensor, too, where the file has no other
    {"scalar": "step"}              a number of NumPy's
    {"dict": [[key, node], ...]}    keys are strings, ints of 64 bits or bools
    {"list": [node, ...]}  {"tuple": [node, ...]}

Nothing is pickled: reading a file runs no code.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import safetensors_head, safetensors_io, strict_json

FORMAT = "dy2st-state"
VERSION = 1
MAX_DEPTH = 100
_STRUCTURE = "structure"
KEYS = range(1 - 2**64, 2**64)
"""Ints that may be keys. Of larger ones a file could have any number with the same hash: a dict of 60,000 took 90 s."""

ToArray = Callable[[Any], "np.ndarray | None"]


def as_array(value: Any) -> np.ndarray | None:
    """Return arrays and NumPy's scalars as arrays; None for anything else."""
    return np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None


def save(obj: Any, path: str | os.PathLike[str], to_array: ToArray = as_array) -> None:
    """Write `obj` to `path`, whole or not at all.

    `to_array` returns the array of what is to be stored as a tensor, None for anything else. TypeError names the place
    in `obj` of what is neither tensor, Python scalar, dict, list nor tuple. An array that stands in several places is
    stored once.
    """
    tensors, strings = _taken_apart(obj, to_array)  # before a file is made
    safetensors_io.write(path, FORMAT, VERSION, tensors, strings)


def save_to(out: BinaryIO, obj: Any, to_array: ToArray = as_array) -> str:
    """Write what `save` does to an open file; return a text that differs where files do."""
    tensors, strings = _taken_apart(obj, to_array)
    return safetensors_io.write_to(out, FORMAT, VERSION, tensors, strings)


def _taken_apart(obj: Any, to_array: ToArray) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    writer = _Writer(to_array)
    structure = strict_json.dumps(writer.node(obj, ()))
    return writer.tensors, {_STRUCTURE: structure}


def load(path: str | os.PathLike[str], from_array: Callable[[np.ndarray], Any] = lambda array: array) -> Any:
    """Return what `save` wrote; `from_array` makes tensors of the arrays.

    The arrays can be written to; that changes no file.
    FileFormatError says in one line what is wrong with a file that is damaged, newer, or not ours.
    """
    with safetensors_head.opened(path) as found:
        return state_of(found, from_array)


def state_of(found: safetensors_head.Opened, from_array: Callable[[np.ndarray], Any]) -> Any:
    """Return what `load` does of a file that was opened."""
    tensors, strings = safetensors_io.tensors_of(found, FORMAT, VERSION, private=True)
    if strings.keys() != {_STRUCTURE}:
        raise FileFormatError(f"the metadata {_STRUCTURE} is expected")
    node = strict_json.loads(strings[_STRUCTURE], "the structure")
    return _Reader(tensors, from_array, _has_tensors(node, 0)).value(node, 0)


def _has_tensors(node: Any, depth: int) -> bool:
    """Return whether something in a structure was a tensor; of what is nested too deep, which is not read, False."""
    parts = node.values() if type(node) is dict else node
    if type(node) not in (dict, list) or depth > 4 * MAX_DEPTH:
        return False
    return (type(node) is dict and "tensor" in node) or any(_has_tensors(part, depth + 1) for part in parts)


class _Writer:
    def __init__(self, to_array: ToArray):
        self.to_array = to_array
        self.tensors: dict[str, np.ndarray] = {}
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []

    def node(self, value: Any, place: tuple[Any, ...]) -> Any:
        if len(place) > MAX_DEPTH:
            raise ValueError(f"what is nested more than {MAX_DEPTH} deep cannot be saved (a dict that holds itself?)")
        array = self.to_array(value)
        if array is not None:
            return {_kind(value): self.tensor(value, array, place)}
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, dict):
            items: list[tuple[Any, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
            return {"dict": [[self.key(k, place), self.node(v, (*place, k))] for k, v in items]}
        if type(value) in (list, tuple):
            kind = "list" if type(value) is list else "tuple"
            return {kind: [self.node(v, (*place, i)) for i, v in enumerate(value)]}
        raise TypeError(f"{_shown(place)} is of type {type(value).__name__}, which cannot be saved: {_ALLOWED}")

    def key(self, key: Any, place: tuple[Any, ...]) -> Any:
        if type(key) not in (str, int, bool):
            raise TypeError(
                f"a key of {_shown(place)} is of type {type(key).__name__}: keys are strings, ints or bools"
            )
        if type(key) is int and key not in KEYS:
            raise ValueError(f"a key of {_shown(place)} has more than 64 bits, which cannot be saved")
        return key

    def tensor(self, value: Any, array: np.ndarray, place: tuple[Any, ...]) -> str:
        if id(value) in self.names:
            return self.names[id(value)]
        base = name = ".".join(map(str, place)).lstrip("~") or "value"
        turn = 1
        while name in self.tensors or name == "__metadata__":
            turn += 1
            name = f"{base}#{turn}"
        self.tensors[name], self.names[id(value)] = array, name
        self.kept.append(value)  # so that its id stays its own
        return name


def _kind(value: Any) -> str:
    if isinstance(value, np.generic):
        return "scalar"
    return "array" if isinstance(value, np.ndarray) else "tensor"


_ALLOWED = "tensors, arrays, None, bools, ints, floats, strings, dicts, lists and tuples can"


def _shown(place: tuple[Any, ...]) -> str:
    return "the object" + "".join(f"[{key!r}]" for key in place)


class _Reader:
    def __init__(self, tensors: dict[str, np.ndarray], from_array: Callable[[np.ndarray], Any], has_tensors: bool):
        self.arrays, self.from_array, self.has_tensors = tensors, from_array, has_tensors
        self.made: dict[tuple[str, str], Any] = {}

    def value(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise FileFormatError(f"the structure is nested more than {MAX_DEPTH} deep")
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is not dict or len(node) != 1:
            raise FileFormatError(f"the structure has a node that is none: {node!r:.60}")
        ((kind, content),) = node.items()
        if kind in ("tensor", "array", "scalar") and type(content) is str and content in self.arrays:
            return self.tensor(kind, content)
        if kind == "float" and type(content) is str and content in ("nan", "inf", "-inf"):
            return float(content)
        if type(content) is list and kind in ("list", "tuple"):
            items = [self.value(item, depth + 1) for item in content]
            return items if kind == "list" else tuple(items)
        if type(content) is list and kind == "dict":
            return self.mapping(content, depth)
        raise FileFormatError(f"the structure has a node that is none: {node!r:.60}")

    def mapping(self, pairs: list[Any], depth: int) -> Any:
        if not all(type(pair) is list and len(pair) == 2 and type(pair[0]) in (str, int, bool) for pair in pairs):
            raise FileFormatError("the structure has a dict that is not made of keys and values")
        if not all(pair[0] in KEYS for pair in pairs if type(pair[0]) is int):
            raise FileFormatError("the structure has a dict with a number of more than 64 bits as a key")
        found = {pair[0]: self.value(pair[1], depth + 1) for pair in pairs}
        if len(found) != len(pairs):
            raise FileFormatError("the structure has a dict with a key twice")
        return found

    def tensor(self, kind: str, name: str) -> Any:
        if (kind, name) not in self.made:
            self.made[kind, name] = self.number_or_tensor(kind, self.arrays[name])
        return self.made[kind, name]

    def number_or_tensor(self, kind: str, array: np.ndarray) -> Any:
        if kind == "scalar":
            if array.ndim:
                raise FileFormatError(f"the structure has a number of {array.ndim} axes")
            return array[()]
        return array if kind == "array" and self.has_tensors else self.from_array(array)
