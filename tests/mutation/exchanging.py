"""A change made in a process that has imported the package: functions that hold the old code get the new one."""

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

Key = tuple[str, str, int]


def functions(package: str) -> dict[Key, list[FunctionType]]:
    """Return the functions of the package that there are, by file, name and first line."""
    gc.unfreeze()
    found: dict[Key, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(package):
            found.setdefault(_key(one.__code__), []).append(one)
    gc.freeze()
    return found


def exchanged(
    known: dict[Key, list[FunctionType]], path: str, before: str, after: str
) -> list[tuple[FunctionType, CodeType]] | None:
    """Return which functions get which code; None where what differs has been run at import."""
    pairs = [*_changed(compile(before, path, "exec"), compile(after, path, "exec"))]
    made = [(function, new) for old, new in pairs for function in known.get(_key(old), ())]
    is_held = made and all(_key(old) in known or "<locals>" in old.co_qualname for old, _ in pairs)
    fits = all(len(function.__closure__ or ()) == len(new.co_freevars) for function, new in made)
    return made if is_held and fits else None


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions that differ, inner ones before those that make them."""
    inner = [*zip(_inner(old), _inner(new), strict=False)]
    below = [pair for one in inner for pair in _changed(*one)]
    yield from below
    is_other = _shape(old) != _shape(new) or len(_inner(old)) != len(_inner(new))
    if is_other or (below and old.co_flags & _FUNCTION):
        yield old, new


_FUNCTION = 0x0002
"""The flag of code that has local variables: not a module's, nor a class's."""


def _inner(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def _shape(code: CodeType) -> tuple[object, ...]:
    plain = repr([part for part in code.co_consts if not isinstance(part, CodeType)])
    return code.co_code, plain, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno
