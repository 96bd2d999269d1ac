"""Checkpoints of many processes: a file of tensors by each, and one that says what stands where, which comes last.

    7.metadata              JSON: for each tensor dtype, shape and its blocks; other values; the checksum of the text
    0_7_<token>.distcp      safetensors with checksums (safetensors_io.py): the blocks that process 0 has written
    1_7_<token>.distcp

A checkpoint is there once its `metadata` is, which names only files that are on the disk. The token is drawn for each
save, so files of one that was cut short belong to none; `clean` removes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import atomic, safetensors_io, strict_json
from dy2st.records import record

FORMAT, VERSION = "dy2st.distcp", 1
_INDEX = re.compile(r"([0-9]{1,18})\.metadata")
_PART = re.compile(r"[0-9]{1,9}_[0-9]{1,18}_[0-9a-f]{16}\.distcp")
_MOST_AXES = 64


@record(frozen=True)
class Block:
    """A block of a tensor: where it begins along each axis, its extents, the file that has it and its name there."""

    offset: tuple[int, ...]
    extents: tuple[int, ...]
    file: str
    name: str


@record(frozen=True)
class Stored:
    """A tensor of a checkpoint."""

    dtype: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...]


@record(frozen=True)
class Index:
    """What a checkpoint has, by name."""

    tensors: Mapping[str, Stored]
    values: Mapping[str, Any]


def numbers(folder: str) -> list[int]:
    """Return the numbers of the checkpoints that a folder has, ascending."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(int(found[1]) for name in names if (found := _INDEX.fullmatch(name)))


def part_name(rank: int, number: int, token: str) -> str:
    """Return the name of the file that a process writes."""
    return f"{rank}_{number}_{token}.distcp"


def write_part(folder: str, rank: int, name: str, tensors: Mapping[str, np.ndarray]) -> None:
    """Write the blocks of a process, whole or not at all; what it left of an earlier try goes."""
    with atomic.replacing(os.path.join(folder, name), Path(os.path.realpath(folder), f"{rank}.distcp")) as out:
        safetensors_io.write_to(out, FORMAT, VERSION, tensors, {})


def read_part(path: str) -> dict[str, np.ndarray]:
    """Return the blocks that a process wrote; FileFormatError for a file that is damaged."""
    return safetensors_io.read(path, FORMAT, VERSION)[0]


def write_index(folder: str, number: int, index: Index) -> None:
    """Say what a checkpoint has, so that it is there."""
    tensors = {
        name: [t.dtype, list(t.shape), [[list(b.offset), list(b.extents), b.file, b.name] for b in t.blocks]]
        for name, t in index.tensors.items()
    }
    said = {"format": FORMAT, "version": VERSION, "tensors": tensors, "values": dict(index.values)}
    content = strict_json.dumps(said)
    digest = hashlib.sha256(content.encode()).hexdigest()
    atomic.replace(os.path.join(folder, f"{number}.metadata"), [f"{digest}\n{content}".encode()])


def read_index(folder: str, number: int) -> Index:
    """Return what a checkpoint has; FileFormatError for a file that is damaged or newer."""
    path = Path(folder, f"{number}.metadata")
    digest, _, content = path.read_bytes().partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise FileFormatError(f"{path}: the file was altered or cut short: its checksum differs")
    found = strict_json.loads(content.decode(), "the metadata")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileFormatError(f"{path}: this is no checkpoint of many processes")
    if found.get("version") != VERSION:
        raise FileFormatError(f"{path}: version {found.get('version')!r:.20}; this dy2st reads version {VERSION}")
    try:
        tensors = {str(name): _stored(*entry) for name, entry in found["tensors"].items()}
        return Index(tensors, dict(found["values"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(f"{path}: what stands there is no list of tensors") from error


def _stored(dtype: str, shape: Sequence[int], blocks: Sequence[Any]) -> Stored:
    made: list[Block] = []
    for offset, extents, file, name in blocks:
        inside = all(o >= 0 and e >= 0 and o + e <= n for o, e, n in zip(offset, extents, shape, strict=True))
        if not inside or _PART.fullmatch(file) is None:
            raise ValueError("a block is outside of its tensor, or of the folder")
        made.append(Block(tuple(offset), tuple(extents), file, str(name)))
    if len(shape) > _MOST_AXES or sum(math.prod(b.extents) for b in made) != math.prod(shape):
        raise ValueError("the blocks of a tensor are not all of it")
    return Stored(str(dtype), tuple(shape), tuple(made))


def clean(folder: str, keep: int | None) -> None:
    """Remove all checkpoints but the newest `keep` (None: none of them), and files that belong to none.

    Only who has just written the newest one calls this: another may be writing files of one that is not there yet.
    """
    there = numbers(folder)
    kept = there if keep is None else there[-keep:]
    for number in there:
        if number not in kept:
            _remove(folder, f"{number}.metadata")
    used = {b.file for n in kept for t in read_index(folder, n).tensors.values() for b in t.blocks}
    for name in os.listdir(folder):
        if _PART.fullmatch(name) and name not in used:
            _remove(folder, name)


def _remove(folder: str, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, name))


def copy_overlap(target: np.ndarray, at: Sequence[int], source: np.ndarray, begins: Sequence[int]) -> None:
    """Copy what two blocks of a tensor have in common, of which it is said where they begin."""
    low = [max(a, b) for a, b in zip(at, begins, strict=True)]
    high = [
        min(a + m, b + n) for a, m, b, n in zip(at, target.shape, begins, source.shape, strict=True)
    ]  # fmt: skip
    if all(lo < hi for lo, hi in zip(low, high, strict=True)):
        here, there = (
            tuple(slice(lo - o, hi - o) for lo, hi, o in zip(low, high, origin, strict=True)) for origin in (at, begins)
        )
        target[here] = source[there]


def overlaps(at: Sequence[int], extents: Sequence[int], block: Block) -> bool:
    """Return whether a block has elements of another one."""
    return all(
        max(a, b) < min(a + m, b + n) for a, m, b, n in zip(at, extents, block.offset, block.extents, strict=True)
    )
