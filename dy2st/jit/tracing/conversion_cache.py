"""Conversions of functions, cached on disk beside native code: a later process neither parses nor transforms.

What a conversion depends on is its key: the text of the file, the code object of the function with all places in it
(so the text is known to be what the code was made from), which names around it are modules of libraries, and the
converter itself. What is cached is code that will run, so it is read from where native code is read from: a folder that
nobody else can have written to (disk_cache.py).
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from dy2st import transformers
from dy2st.kinds import is_set, is_tuple
from dy2st.pysrc.source import source_lines
from dy2st.runtime.aot_cache import disk_cache, environment_key, program_artifacts
from dy2st.transformers.convert import Conversion, Converted, conversion_from, modules_among


def look_around() -> None:
    """Look at the files that decide what was cached: at import, because what stands there then is what this process
    runs.

    It takes 2 to 4 ms, which the first call need not wait for.
    """
    if disk_cache.folder() is not None:
        _converter()
        program_artifacts.maker()


def convert(fn: types.FunctionType) -> Converted:
    """Convert a function, or take what was cached of an earlier process; raises as `transformers.convert` does."""
    return transformers.convert(fn, _cached)


def _cached(fn: types.FunctionType, make: Callable[[], Conversion]) -> Conversion:
    key = key_of(fn) if disk_cache.folder() is not None else None
    return make() if key is None else _CONVERSIONS.made(key, make, fn)


def key_of(fn: types.FunctionType) -> str | None:
    """Return a text that differs where the conversion of a function may differ; None where its source is not known."""
    text = _digest_of_source(fn)
    if text is None:
        return None
    names = frozenset(name for code in _nested(fn.__code__) for name in _names(code))
    modules = sorted(modules_among(fn, names))
    return _CONVERSIONS.key(fn.__code__.co_filename, text, modules, _described(fn.__code__))


@functools.cache
def _converter() -> str:
    """Return a text that differs where functions are converted in another way."""
    package = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)
    folders = [os.path.join(package, name) for name in ("pysrc", "transformers", "naming.py")]
    return repr([sys.version, environment_key.state_of([*folders, environment_key.folder_of("gast") or ""])])


def _digest_of_source(fn: types.FunctionType) -> str | None:
    """Return the digest of the file, notebook cell or other text that a function stands in."""
    file = fn.__code__.co_filename
    try:
        said = os.stat(file) if os.path.isabs(file) else None
    except OSError:
        said = None
    if said is not None:
        return _digest_of_file(file, said.st_size, said.st_mtime_ns)
    lines = source_lines(fn)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest() if lines else None


def _to_bytes(conversion: Conversion, fn: types.FunctionType) -> bytes:
    return conversion.to_bytes()


_CONVERSIONS = disk_cache.Kind("conversion", _to_bytes, conversion_from, lambda: _converter())


@functools.lru_cache(maxsize=256)
def _digest_of_file(file: str, size: int, written: int) -> str | None:
    try:
        with open(file, "rb") as source:
            return hashlib.sha256(source.read()).hexdigest()
    except OSError:
        return None


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _names(code: types.CodeType) -> tuple[str, ...]:
    return code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars


def _described(code: types.CodeType) -> str:
    """Return all that a code object is, as a text that is the same in every process."""
    return repr([_described_part(getattr(code, f"co_{name}")) for name in _PARTS])


_PARTS = (
    "argcount", "cellvars", "code", "consts", "exceptiontable", "firstlineno", "flags", "freevars", "kwonlyargcount",
    "linetable", "name", "names", "posonlyargcount", "qualname", "varnames",
)  # fmt: skip


def _described_part(part: Any) -> Any:
    if isinstance(part, types.CodeType):
        return _described(part)
    if is_tuple(part):
        return [_described_part(item) for item in part]
    if is_set(part):
        return sorted(map(repr, part))
    return part
