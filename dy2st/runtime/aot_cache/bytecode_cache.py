"""Code objects of generated source, kept on disk beside native code: compiling a long function takes milliseconds.

The key is the source itself with the version of Python, so what is found is what compiling gives. It is read from where
native code is read from: a folder that nobody else can have written to (disk_cache.py).
"""

from __future__ import annotations

import hashlib
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
    text = repr(("source", sys.version, name, source))
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    found = _kept(key)
    if found is None:
        found = compile(source, name, "exec")
        disk_cache.write(key, marshal.dumps(found))
    return found


def _kept(key: str) -> types.CodeType | None:
    content = disk_cache.read(key)
    try:
        found = None if content is None else marshal.loads(content)
    except (ValueError, TypeError, EOFError):  # written by somebody else: it is made again
        return None
    return found if isinstance(found, types.CodeType) else None
