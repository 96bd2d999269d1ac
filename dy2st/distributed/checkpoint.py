"""Checkpoints of several processes: each writes a part, any number of processes reads what it needs.

    save    names and blocks are compared by all; who writes a block that several have is settled: the one with least
            to write; parts are written, here or beside training; the first process says that the checkpoint is there
    load    each process looks up its names, reads the files that have parts of its blocks, and fills its tensors

What training goes on changing is copied first, so the checkpoint is of one moment. Without MPI, the thread that writes
beside training sees by the files whether all parts are there.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.distributed.groups import ranks_of
from dy2st.distributed.objects import all_gather_object
from dy2st.files import atomic, sharded_files
from dy2st.files.sharded_files import Block, Index, Stored
from dy2st.functions.core.assigning import set_value
from dy2st.functions.core.operands import constant
from dy2st.ir.context import current
from dy2st.missing import missing_in
from dy2st.ops.collective.world import world
from dy2st.records import record
from dy2st.runtime.eager.side_effect_check import refusal
from dy2st.runtime.eager.tensor import Tensor

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)

__all__ = ["load_state_dict", "save_state_dict"]

_POLL = 0.01
_SIMPLE = (int, float, bool, str, type(None))


@record(frozen=True)
class _Piece:
    """What a process has of a tensor: dtype and shape of all of it, where its block begins, the extents of this."""

    dtype: str
    shape: tuple[int, ...]
    offset: tuple[int, ...]
    extents: tuple[int, ...]


def save_state_dict(
    state_dict: Mapping[str, Any], path: str, process_group: Any = None, coordinator_rank: int = 0,
    unique_id: int | None = None, async_save: bool = False, *, keep: int | None = None,
) -> None:  # fmt: skip
    """Save tensors, numbers and text by name, in dicts in dicts too, as a checkpoint below the folder `path`.

    All processes of the group call it, each with what it has: tensors of one name are equal, or blocks of one tensor
    (the weights of layers in parts, and their optimizer's state). What stands at `path` before is there until the new
    one is, which is whole or not at all. Checkpoints count up from 0, or `unique_id` says the number.

    With `async_save`, files are written beside training, which may go on at once; the next save waits for that, and so
    does the end of the process. `keep` removes all but the newest ones so many.

    Raises ValueError, in all processes, where they disagree about shape, dtype or value of what has one name.
    """
    _outside_of_traces("save_state_dict")
    _wait_for_last()
    if keep is not None and keep < 1:
        raise ValueError(f"save_state_dict: keep is at least 1, not {keep}")
    ranks, here = ranks_of(process_group), world().rank
    flat = _flat(state_dict)
    arrays = {name: _array(value) for name, value in flat.items() if _is_tensor(value)}
    pieces = {name: _piece(flat[name], array) for name, array in arrays.items()}
    values = {name: value for name, value in flat.items() if name not in arrays}
    if here == coordinator_rank:
        os.makedirs(path, exist_ok=True)
    number = max(sharded_files.numbers(path), default=-1) + 1 if unique_id is None else int(unique_id)
    said: list[Any] = []
    all_gather_object(said, (pieces, values, number, secrets.token_hex(8)), process_group)
    place = ranks.index(coordinator_rank)
    number, token = said[place][2:]
    index, mine = _settled([(p, v) for p, v, _, _ in said], ranks, here, number, token)
    written = {name: arrays[name].copy() if async_save else arrays[name] for name in mine}

    def write() -> None:
        sharded_files.write_part(path, here, sharded_files.part_name(here, number, token), written)

    def finish() -> None:
        sharded_files.write_index(path, number, index)
        sharded_files.clean(path, keep)

    files = {b.file for t in index.tensors.values() for b in t.blocks}
    if async_save:
        world().saving = _Writer(path, files, write, finish if here == coordinator_rank else None)
        return
    _together(process_group, write)
    _together(process_group, finish if here == coordinator_rank else None)


def load_state_dict(
    state_dict: Any, path: str, process_group: Any = None, coordinator_rank: int = 0, unique_id: int | None = None,
    offload: bool = False,
) -> None:  # fmt: skip
    """Fill the tensors of a state dict, and set its other values, from a checkpoint below `path`.

    It is the newest one, or that of the number `unique_id`. The number of processes, and how tensors are in parts over
    them, may be others than when it was saved.

    Raises FileNotFoundError where no checkpoint is whole, ValueError for a name that it has not or a tensor of another
    shape or dtype, FileFormatError for files that are damaged.
    """
    _outside_of_traces("load_state_dict")
    _wait_for_last()
    said: list[Any] = []
    here = sharded_files.numbers(path) if unique_id is None else [int(unique_id)]
    all_gather_object(said, here, process_group)
    there = said[ranks_of(process_group).index(coordinator_rank)]
    if not there or not os.path.exists(os.path.join(path, f"{there[-1]}.metadata")):
        which = "" if unique_id is None else f" {unique_id}"
        raise FileNotFoundError(f"load_state_dict: there is no whole checkpoint{which} in {path}")
    index = sharded_files.read_index(path, there[-1])
    needed: dict[str, list[tuple[Block, np.ndarray, tuple[int, ...]]]] = {}
    filled: list[tuple[Callable[[np.ndarray], None], np.ndarray]] = []
    for name, value, put in _places(state_dict, ()):
        if not _is_tensor(value):
            if name not in index.values:
                raise ValueError(f"load_state_dict: the checkpoint has no value {name!r}")
            put(index.values[name])
            continue
        piece = _piece(value, _array(value))
        _check(name, piece, index)
        target = np.empty(piece.extents, dtypes.dtype(piece.dtype).numpy)
        for block in index.tensors[name].blocks:
            if sharded_files.overlaps(piece.offset, piece.extents, block):
                needed.setdefault(block.file, []).append((block, target, piece.offset))
        filled.append((put, target))
    for file, wanted in needed.items():
        tensors = sharded_files.read_part(os.path.join(path, file))
        for block, target, offset in wanted:
            sharded_files.copy_overlap(target, offset, tensors[block.name].reshape(block.extents), block.offset)
    for put, target in filled:
        put(target)


def _check(name: str, piece: _Piece, index: Index) -> None:
    stored = index.tensors.get(name)
    if stored is None:
        raise ValueError(f"load_state_dict: the checkpoint has no tensor {name!r}")
    if (stored.dtype, stored.shape) != (piece.dtype, piece.shape):
        raise ValueError(
            f"load_state_dict: {name!r} is {piece.dtype}{list(piece.shape)}, in the checkpoint "
            f"{stored.dtype}{list(stored.shape)}"
        )


# ---- what is saved ---------------------------------------------------------------------------------------------------
def _settled(
    said: list[tuple[dict[str, _Piece], dict[str, Any]]], ranks: tuple[int, ...], here: int, number: int, token: str
) -> tuple[Index, list[str]]:
    """Return what the checkpoint has, and the names whose blocks this process writes."""
    load = dict.fromkeys(ranks, 0)
    holders: dict[str, dict[tuple[Any, Any], list[int]]] = {}
    kinds: dict[str, tuple[str, tuple[int, ...]]] = {}
    values: dict[str, Any] = {}
    for rank, (pieces, others) in zip(ranks, said, strict=True):
        for name, piece in pieces.items():
            if kinds.setdefault(name, (piece.dtype, piece.shape)) != (piece.dtype, piece.shape):
                raise ValueError(f"save_state_dict: ranks disagree about dtype or shape of {name!r}: rank {rank} has "
                                 f"{piece.dtype}{list(piece.shape)}")  # fmt: skip
            holders.setdefault(name, {}).setdefault((piece.offset, piece.extents), []).append(rank)
        for name, value in others.items():
            if repr(values.setdefault(name, value)) != repr(value):
                raise ValueError(
                    f"save_state_dict: ranks disagree about {name!r}: {values[name]!r:.60} and {value!r:.60}"
                )
    if both := sorted(holders.keys() & values.keys()):
        raise ValueError(f"save_state_dict: {both[0]!r} is a tensor for some ranks, another value for others")
    tensors: dict[str, Stored] = {}
    mine: list[str] = []
    for name, blocks in holders.items():
        dtype, shape = kinds[name]
        made: list[Block] = []
        for (offset, extents), having in blocks.items():
            writer = min(having, key=lambda rank: load[rank])
            load[writer] += int(np.prod(extents, dtype=np.int64)) * dtypes.dtype(dtype).numpy.itemsize
            made.append(Block(offset, extents, sharded_files.part_name(writer, number, token), name))
            if writer == here:
                mine.append(name)
        if sum(int(np.prod(b.extents, dtype=np.int64)) for b in made) != int(np.prod(shape, dtype=np.int64)):
            raise ValueError(f"save_state_dict: the blocks of {name!r} that ranks have are not all of it")
        tensors[name] = Stored(dtype, shape, tuple(made))
    return Index(tensors, values), mine


def _piece(value: Any, array: np.ndarray) -> _Piece:
    """Return what an array is a block of."""
    dtype, extents = dtypes.of_array(array).name, tuple(array.shape)
    part = value.part if isinstance(value, Tensor) else None
    if part is None:
        return _Piece(dtype, extents, (0,) * len(extents), extents)
    axis, number, count = part
    shape = (*extents[:axis], extents[axis] * count, *extents[axis + 1 :])
    return _Piece(dtype, shape, tuple(extents[axis] * number if i == axis else 0 for i in range(len(extents))), extents)


def _places(value: Any, at: tuple[str, ...]) -> Iterator[tuple[str, Any, Callable[[Any], None]]]:
    """Yield what stands in dicts in dicts: its name, the value, and what puts another in its place."""
    for key, x in value.items():
        name = (*at, str(key))
        if isinstance(x, Mapping):
            yield from _places(x, name)
        elif isinstance(x, Tensor):
            yield ".".join(name), x, lambda array, x=x: _fill(x, array)
        else:
            yield ".".join(name), x, lambda new, value=value, key=key: value.__setitem__(key, new)


def _fill(x: Tensor, array: np.ndarray) -> None:
    set_value(x, constant(array, x.place))


def _flat(state: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value, _ in _places(state, ()):
        if name in found:
            raise ValueError(f"save_state_dict: two things have the name {name!r}")
        if not _is_tensor(value) and not _is_plain(value):
            raise TypeError(f"save_state_dict: {name!r} is of type {type(value).__name__}: tensors, numbers, text and "
                            "lists of these can be saved")  # fmt: skip
        found[name] = value
    return found


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return type(value) in _SIMPLE and (type(value) is not float or np.isfinite(value))


def _array(value: Any) -> np.ndarray:
    array: Any = value.array("a saved tensor") if isinstance(value, Tensor) else value
    return array.get() if hasattr(array, "get") else array


# ---- who writes when -------------------------------------------------------------------------------------------------
class _Writer:
    """Writes the part of this process beside training; the coordinator waits for all parts, then says it is there."""

    def __init__(self, path: str, files: set[str], write: Callable[[], None], finish: Callable[[], None] | None):
        self._path, self._files, self._write, self._finish = path, files, write, finish
        self.error: BaseException | None = None
        self._world = world()
        self.thread = threading.Thread(target=self._run, name="dy2st-checkpoint")
        self.thread.start()

    def _run(self) -> None:
        try:
            self._write()
            if self._finish is not None:
                self._wait_for_all()
                self._finish()
        except BaseException as error:
            self.error = error
            if self._world.size > 1:  # the others would wait for this part
                self._world.abort(f"rank {self._world.rank} could not save a checkpoint: {error}: all processes end")
            raise

    def _wait_for_all(self) -> None:
        last = time.monotonic() + self._world.timeout
        while not all(os.path.exists(os.path.join(self._path, file)) for file in self._files):
            if time.monotonic() > last:
                raise TimeoutError(f"the parts of all ranks are not in {self._path} after {self._world.timeout:g} s")
            time.sleep(_POLL)
        atomic.sync_folder(sharded_files.Path(self._path))


def _wait_for_last() -> None:
    """Wait for the checkpoint that is being written beside training; raise what went wrong with it."""
    last, world().saving = world().saving, None
    if last is not None:
        last.thread.join()
        if last.error is not None:
            raise last.error


def _together(group: Any, do: Callable[[], None] | None) -> None:
    """Do something in all processes, or in some of them; where it fails in one, raise in all."""
    error: BaseException | None = None
    try:
        if do is not None:
            do()
    except (OSError, ValueError) as found:
        error = found
    said: list[Any] = []
    all_gather_object(said, None if error is None else f"{type(error).__name__}: {error}", group)
    if error is not None:
        raise error
    for rank, text in zip(ranks_of(group), said, strict=True):
        if text is not None:
            raise OSError(f"save_state_dict: rank {rank} could not write its part: {text}")


def _outside_of_traces(name: str) -> None:
    if current().trace is not None:
        raise refusal(f"{name}() reads and writes files", "call it outside of the static function")
