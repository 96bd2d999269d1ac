"""Program files: `m.dy2st`, a safetensors file that holds a Program, its tensors and what a caller adds.

Metadata of the file (strings, as safetensors has them):

    format, version     "dy2st", "1"; a newer version is refused
    program             the Program as strict JSON (`ir/serialize.py` shows it)
    program_sha256      its checksum
    metadata            the caller's JSON object

A file is data: reading it evaluates nothing and imports nothing, and any other reader of safetensors can open it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import safetensors_head, safetensors_io, strict_json

SUFFIX = ".dy2st"
FORMAT = "dy2st"
VERSION = 1
_KEYS = ("program", "program_sha256", "metadata")


def is_path(thing: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether something may name a file."""
    return isinstance(thing, (str, os.PathLike))


def file_name(path: str | os.PathLike[str]) -> Path:
    """Return `path` with the suffix `.dy2st`, added where it is missing."""
    path = Path(path)
    return path if path.name.endswith(SUFFIX) else path.with_name(path.name + SUFFIX)


def found(path: str | os.PathLike[str]) -> Path:
    """Return the file to read for `path`: with the suffix, or as it is where only that is there."""
    target = file_name(path)
    return Path(path) if not target.exists() and Path(path).is_file() else target


def write(
    path: str | os.PathLike[str],
    program: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
) -> Path:
    """Write a Program (as `to_json` gives it), tensors and JSON metadata to `<path>.dy2st`; return that path.

    The file is written whole or not at all: when it cannot be, OSError leaves an older file as it was.
    """
    target = file_name(path)
    safetensors_io.write(target, FORMAT, VERSION, tensors, _strings(program, metadata))
    return target


def to_bytes(program: Mapping[str, Any], tensors: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> bytes:
    """Return what `write` would write."""
    out = io.BytesIO()
    safetensors_io.write_to(out, FORMAT, VERSION, tensors, _strings(program, metadata))
    return out.getvalue()


def _strings(program: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, str]:
    text = strict_json.dumps(dict(program))
    return {
        "program": text,
        "program_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "metadata": strict_json.dumps(dict(metadata)),
    }


def read(
    path: str | os.PathLike[str], private: bool = False
) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """Return (metadata, program, tensors) of `<path>.dy2st`; the tensors are copies, which stay when the file goes.

    They are read-only unless `private`.
    FileFormatError says in one line what is wrong with a file that is damaged, newer, or not ours.
    """
    with safetensors_head.opened(found(path)) as opened:
        return _parts_of(opened, private)


def from_bytes(content: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    """Return what `read` does of what `to_bytes` gave."""
    with safetensors_head.opened_bytes(content) as opened:
        return _parts_of(opened, True)


def _parts_of(
    opened: safetensors_head.Opened, private: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, np.ndarray]]:
    tensors, strings = safetensors_io.tensors_of(opened, FORMAT, VERSION, private)
    if strings.keys() != set(_KEYS):
        raise FileFormatError(f"the metadata {', '.join(_KEYS)} are expected")
    if hashlib.sha256(strings["program"].encode(errors="replace")).hexdigest() != strings["program_sha256"]:
        raise FileFormatError("the Program was altered: its checksum differs")
    program = _object(strings["program"], "the Program")
    return _object(strings["metadata"], "the metadata"), program, tensors


def _object(text: str, what: str) -> dict[str, Any]:
    data = strict_json.loads(text, what)
    if type(data) is not dict:
        raise FileFormatError(f"{what} is not a JSON object")
    return data
