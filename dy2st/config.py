"""The environment variables that dy2st reads, a function each: it looks at what the variable says at that moment.

README.md says what each is for. What a variable may not say is a ValueError; where dy2st goes on without it, the
caller turns that into a warning.
"""

from __future__ import annotations

import os

BACKENDS = ("auto", "native", "interpreter")
_MOST_DIGITS = 18
"""Of a number: more are not meant."""


def backend() -> str:
    """Return which backend `DY2ST_BACKEND` names; "auto" where it names none."""
    chosen = os.environ.get("DY2ST_BACKEND") or BACKENDS[0]
    if chosen not in BACKENDS:
        raise ValueError(f"DY2ST_BACKEND is one of {', '.join(BACKENDS)}, not {chosen!r}")
    return chosen


def is_strict() -> bool:
    """Return whether `DY2ST_STRICT` asks for strict native code of all Programs."""
    return _is_on("DY2ST_STRICT")


def are_guarded() -> bool:
    """Return whether `DY2ST_GUARD` asks for guard pages behind the blocks of memory that are made from now on."""
    return _is_on("DY2ST_GUARD")


def forced_cpu() -> str | None:
    """Return the kind of CPU that `DY2ST_CPU` names, which the backend checks; None for this machine's."""
    return os.environ.get("DY2ST_CPU") or None


def emulates_cuda() -> bool:
    """Return whether `DY2ST_CUDA` asks for a CUDA device that this machine's CPU stands for."""
    chosen = os.environ.get("DY2ST_CUDA", "")
    if chosen not in ("", "emulated"):
        raise ValueError(f"DY2ST_CUDA is 'emulated' or not set, not {chosen!r}")
    return bool(chosen)


def num_threads() -> int | None:
    """Return what `DY2ST_NUM_THREADS` says, else the outermost number of `OMP_NUM_THREADS`; None for neither."""
    own = _number("DY2ST_NUM_THREADS", "a whole number of at least 1", least=1)
    outermost = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # one for each level of nesting
    return own or (int(outermost) if outermost.isdecimal() else 0) or None


def cache_folder() -> str | None:
    """Return the folder that is shared with other processes; None where an empty `DY2ST_CACHE_DIR` wants none."""
    chosen = os.environ.get("DY2ST_CACHE_DIR")
    if chosen is not None:
        return chosen or None
    base = os.environ.get("XDG_CACHE_HOME")
    home = os.path.expanduser("~")
    if base or home != "~":
        return os.path.join(base or os.path.join(home, ".cache"), "dy2st")
    return None


def cache_bytes() -> int | None:
    """Return how many bytes `DY2ST_CACHE_SIZE` allows in that folder; None where it says nothing."""
    return _number("DY2ST_CACHE_SIZE", "a number of bytes")


def memory_limit() -> int | None:
    """Return how many bytes `DY2ST_MEMORY_LIMIT` lets a run hold; None where it says nothing."""
    return _number("DY2ST_MEMORY_LIMIT", "a number of bytes", least=1)


def eager_native() -> int | None:
    """Return from how many elements on `DY2ST_EAGER_NATIVE` lets eager ops run native code; None: it says nothing."""
    return _number("DY2ST_EAGER_NATIVE", "a number of elements")


def walks_of_tape() -> int | None:
    """Return after how many walks `DY2ST_TAPE_WALKS` lets a tape run as a Program; None where it says nothing."""
    return _number("DY2ST_TAPE_WALKS", "a number of walks")


def eager_programs() -> int | None:
    """Return after how many calls `DY2ST_EAGER_PROGRAMS` makes a library function a Program; None: it says nothing."""
    return _number("DY2ST_EAGER_PROGRAMS", "a number of calls")


def verified_calls() -> int:
    """Return how many first calls of each kind `DY2ST_VERIFY_CALLS` wants compared with eager mode."""
    return _number("DY2ST_VERIFY_CALLS", "a number of calls") or 0


def collective_timeout() -> float:
    """Return after how many seconds of waiting for others `DY2ST_COLLECTIVE_TIMEOUT` ends a job: 1800 without it."""
    return float(_number("DY2ST_COLLECTIVE_TIMEOUT", "a number of seconds", least=1) or 1800)


def _is_on(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def _number(name: str, what: str, least: int = 0) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) < least:
        raise ValueError(f"{name} is {what}, not {text!r:.60}")
    return int(text)
