"""Calls that a trace must not make: they have an effect outside of it, or give something else at every call.

A call into code that is not converted happens once, while tracing, and what it gives is a constant of the Program. That
is right for pure functions only, so the ones known to be impure are refused before they do anything, and the function
runs eagerly.
"""

from __future__ import annotations

import datetime
import io
import logging
import os
import types
from collections.abc import Callable, Container
from typing import Any

import numpy as np

from dy2st.errors import DebuggerCall, TraceError
from dy2st.ir.context import current
from dy2st.ir.location import error_here
from dy2st.late import types_of

_RANDOM = ("numpy.random:RandomState", "numpy.random:Generator", "random:Random")
_OWNERS = (*_RANDOM, "io:IOBase", "logging:Logger")
_MODULES = frozenset(("time", "random", "secrets", "uuid", "tempfile", "subprocess", "shutil", "socket", "logging",
                      "posix", "nt", "dy2st.jit.serialization.io"))  # fmt: skip
_CALLS: tuple[Any, ...] = (
    open, input, exec, os.makedirs, os.removedirs, os.popen, np.save, np.savez, np.savez_compressed,
    np.savetxt, np.load, np.loadtxt, np.fromfile,
)  # fmt: skip
_DEBUGGERS = frozenset(("pdb", "bdb", "ipdb", "pudb", "debugpy", "pydevd", "IPython"))
_OF_PATHS = frozenset(("write_text", "write_bytes", "read_text", "read_bytes", "mkdir", "touch", "unlink", "rmdir",
                       "rename", "replace", "open", "exists", "iterdir", "glob", "stat"))  # fmt: skip
OF_ARRAYS = frozenset(("fill", "sort", "partition", "put", "itemset", "resize", "setflags", "setfield", "tofile"))
_OF_CONTAINERS = frozenset(("__setitem__", "__delitem__", "__iadd__", "__ior__", "__iand__", "__ixor__", "__isub__",
                            "__imul__", "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop",
                            "popitem", "remove", "reverse", "setdefault", "update"))  # fmt: skip


def refuse_debugger(f: Any) -> None:
    """Raise DebuggerCall where `f` is a debugger: it must stop where there are values and the user's own frames."""
    module = getattr(f, "__module__", None) or type(getattr(f, "__self__", None)).__module__
    named = getattr(f, "__name__", "") == "set_trace"
    if f is breakpoint or named or module.partition(".")[0] in _DEBUGGERS:
        raise error_here(DebuggerCall, f"{_named(f)}() stops in the function itself, which runs eagerly for that")


def refuse_impure(outside: Container[int], f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Raise TraceError where calling `f` has an effect, or where its result is not determined by its arguments."""
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", "")
    if (
        isinstance(owner, types_of(*_OWNERS))
        or any(isinstance(x, io.IOBase) for x in args)
        or (getattr(f, "__module__", None) in _MODULES and f is not logging.getLogger)
        or any(f is call for call in _CALLS)
        or (isinstance(owner, type) and issubclass(owner, datetime.date) and name in ("now", "today", "utcnow"))
        or (name in _OF_PATHS and isinstance(owner, types_of("pathlib:Path")))
    ):
        raise refusal(
            f"{_named(f)}() has an effect, or another result at every call, which a Program has not",
            "use paddle's random functions, which draw anew in every run"
            if getattr(f, "__module__", None) == "random" or isinstance(owner, types_of(*_RANDOM))
            else "call it outside of the function, and pass what it gives as an argument",
        )
    if name in _OF_CONTAINERS and isinstance(f, (types.FunctionType, types.MethodType)):  # of a library, in Python
        refuse_outside(outside, args[0] if owner is None and args else owner)


def refuse_outside(outside: Container[int], x: Any) -> None:
    """Raise TraceError where something among `outside` (ids), of which a trace keeps no writes, would be changed."""
    if id(x) in outside or x is os.environ:
        raise refusal(
            f"a {type(x).__name__} from outside is changed, which a Program cannot do",
            "keep such state in tensors, lists, dicts or attributes",
        )


def in_trace() -> bool:
    """Return whether a function is being traced (a Program that is built by hand is none)."""
    trace = current().trace
    return trace is not None and hasattr(trace, "note_layer")


def refuse_in_trace(what: str) -> None:
    """Raise TraceError where a function is being traced: `what` changes something that no Program has."""
    if in_trace():
        raise refusal(f"{what} changes a Python object, which a Program cannot do; call it outside of the function")


def refusal(message: str, hint: str | None = None) -> TraceError:
    """Return the error that names the user's line; `hint` says what to write instead."""
    return error_here(TraceError, message, hint)


def _named(f: Any) -> str:
    module = getattr(f, "__module__", None) or type(getattr(f, "__self__", f)).__module__
    name = getattr(f, "__qualname__", type(f).__name__)
    return name if module == "builtins" else f"{module}.{name}"
