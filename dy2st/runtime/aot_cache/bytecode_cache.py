"""Code objects of generated source, cached on disk beside native code: compiling a long function takes milliseconds.

The key is the source itself with the version of Python, so what is found is what compiling gives. It is read from where
native code is read from: a folder that nobody else can have written to (disk_cache.py).
"""

from __future__ import annotations

import marshal
import sys
import types

from dy2st.runtime.aot_cache import disk_cache

_LEAST = 2000
"""Shorter source is compiled in less time than it takes to look for a file."""


def compiled(source: str, name: str) -> types.CodeType:
    """Return what `compile` makes of a module's source; `name` is its file.

    >>> scope = {}
    >>> exec(compiled("product = 6 * 7", "<a product>"), scope)
    >>> scope["product"]
    42
    """
    if len(source) < _LEAST or disk_cache.folder() is None:
        return compile(source, name, "exec")
    return _CODE.made(_CODE.key(name, source), lambda: compile(source, name, "exec"))


def _code(content: bytes) -> types.CodeType:
    found = marshal.loads(content)
    if not isinstance(found, types.CodeType):
        raise TypeError(f"{type(found).__name__} is no code")
    return found


_CODE = disk_cache.Kind("bytecode", marshal.dumps, _code, lambda: sys.version)
