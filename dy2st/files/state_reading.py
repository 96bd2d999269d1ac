"""State files of every kind that is read, told apart by how they begin.

They are ours, pickles of Paddle, archives and streams of torch, plain safetensors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dy2st.files import pickled_state, plain_safetensors, regular, safetensors_head, state_files, torch_state
from dy2st.files.pickled_state import NAME_TABLE, Named
from dy2st.files.safetensors_io import of_bits

_PROTOCOL = b"\x80"


def load(
    path: str | os.PathLike[str],
    from_array: Callable[[np.ndarray], Any] = lambda array: array,
    keep_name_table: bool = False,
) -> Any:
    """Return the state in a file, its tensors as `from_array` makes them; nothing in the file is run.

    `keep_name_table` keeps the dict of parameter names that Paddle puts into its files.
    FileFormatError says in one line what is wrong with a file that is damaged, or that is of none of these kinds.
    """
    start = _start(path)
    if torch_state.begins(start):
        return _with_tensors(torch_state.load(path), from_array, True, {})
    if _is_pickle(start):
        found = pickled_state.load(path)
        if isinstance(found, dict) and not keep_name_table:
            found.pop(NAME_TABLE, None)
        return _with_tensors(found, from_array, _has_named(found, set()), {})
    with safetensors_head.opened(path) as opened:
        if (opened.metadata or {}).get("format", "").startswith("dy2st"):
            return state_files.state_of(opened, from_array)
        arrays = plain_safetensors.tensors_of(opened)
    return {name: from_array(array) for name, array in arrays.items()}


def _start(path: str | os.PathLike[str]) -> bytes:
    with regular.errors_of(path), regular.opened(path) as (file, _):
        return file.read(len(torch_state.MAGIC))


def _is_pickle(start: bytes) -> bool:
    """Return whether a file begins as a pickle of protocol 2 or later, and not with the length of a header and a
    brace.
    """
    length = int.from_bytes(start[:8], "little")
    return start.startswith(_PROTOCOL) and not (start[:9].endswith(b"{") and length <= safetensors_head.MAX_HEADER)


def _parts(found: Any) -> Iterable[Any]:
    if isinstance(found, dict):
        return found.values()
    return found if isinstance(found, (list, tuple)) else ()


def _has_named(found: Any, seen: set[int]) -> bool:
    if id(found) in seen:
        return False
    seen.add(id(found))
    return isinstance(found, Named) or any(_has_named(part, seen) for part in _parts(found))


def _with_tensors(found: Any, from_array: Callable[[np.ndarray], Any], named: bool, done: dict[int, Any]) -> Any:
    """Make tensors of named arrays; of every array where none has a name, as Paddle before 2.1 saved them.

    What stands in several places is made once.
    """
    if id(found) in done:
        return done[id(found)]
    made = found
    if isinstance(found, Named):
        made = from_array(_as_numbers(found.array))
    elif isinstance(found, np.ndarray):
        made = _as_numbers(found) if named else from_array(_as_numbers(found))
    elif isinstance(found, dict):
        made = {key: _with_tensors(value, from_array, named, done) for key, value in found.items()}
    elif isinstance(found, (list, tuple)):
        made = type(found)(_with_tensors(value, from_array, named, done) for value in found)
    done[id(found)] = made
    return made


def _as_numbers(array: np.ndarray) -> np.ndarray:
    return of_bits(array) if array.dtype == np.uint16 else array
