"""Programs that follow from another one, cached on disk: optimised ones, derivatives, versions for some extents.

What is made of a Program depends on that Program and on this package alone, and takes as long as its trace did. A later
process that has the same Program reads what was made of it (ir/binary.py), beside its native code (disk_cache.py).
What was made knows from what and how (`made_as`), so what follows from it in turn is found without looking at it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import marshal
import os
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.ir.binary import CannotPack, LazyProgram, Places, numbered, pack, places_of, unpack
from dy2st.ir.fingerprint import fingerprint
from dy2st.ir.program import Block, Program
from dy2st.runtime.aot_cache import disk_cache, environment_key
from dy2st.runtime.signal_delivery import delivered, go_on

Derived = tuple[Sequence[Program], Sequence[int]]
_LEAST = 24
"""Of Programs with fewer operations all is made in less time than it takes to read files."""
_SOURCES = ("autodiff", "batching", "shapes.py", "dtypes.py", "records.py")
"""What decides of derived Programs beside that which decides of native code."""


def derived(source: Program, how: str, make: Callable[[], Program]) -> Program:
    """Return the Program that `make` makes of `source`; `how` names what is done to it.

    It is read where an earlier process has cached it, else made and cached; `source` may be changed afterwards.
    """
    (program,), _ = derivation(source, how, lambda: ([make()], ()))
    return program


def may_be_cached(source: Program, how: str) -> bool:
    """Return whether an earlier process may have kept what `how` makes of `source`: it has, or could not."""
    key = _key(source, how) if disk_cache.folder() is not None else None
    return key is None or disk_cache.has(key)


def derivation(source: Program, how: str, make: Callable[[], Derived]) -> Derived:
    """Return the Programs that `make` makes of `source`, with numbers that belong to them, as `derived` does."""
    return delivered(_derivation, source, how, make)


def _derivation(source: Program, how: str, make: Callable[[], Derived]) -> Derived:
    key = _key(source, how) if disk_cache.folder() is not None else None
    if key is None:
        made = make()
        go_on()
        return made
    places = _places_of(source)
    cached = _DERIVED.read(key, places)
    made = make() if cached is None else cached
    go_on()
    for number, program in enumerate(made[0]):
        program.made_as = f"{key} {number}" if program is not source else None
    if cached is None:
        with contextlib.suppress(CannotPack):
            _DERIVED.write(key, made, places)
    return made


def fingerprint_of(program: Program) -> str | None:
    """Return the fingerprint of a Program; that of one which follows from another one is read where it was cached."""
    if program.made_as is None or disk_cache.folder() is None:
        return fingerprint(program)
    key = _FINGERPRINTS.key(program.made_as)
    known = _FINGERPRINTS.read(key)
    if known is None:
        known = fingerprint(program)
        if known is not None:
            _FINGERPRINTS.write(key, known)
    return known


def _places_of(source: Program) -> Callable[[], Places]:
    """Return what gives the places of a Program's operations; one that was cached is not read for that."""
    if isinstance(source, LazyProgram) and source.made_as is not None:
        return source.places
    places = places_of(source)
    return lambda: places


def answered(program: Program, question: str, ask: Callable[[], Any]) -> Any:
    """Return what `ask` says of a Program that was cached or is cached now; an earlier process may have kept the
    answer.

    An answer is what `marshal` writes: numbers, text, and tuples, lists and dicts of these.
    """
    if program.made_as is None or disk_cache.folder() is None:
        return ask()
    (answer,) = delivered(_ANSWERS.made, _ANSWERS.key(question, program.made_as), lambda: (ask(),))  # it may be None
    return answer


def _key(source: Program, how: str) -> str | None:
    """Return a text that differs where other Programs follow; None where none is to be cached."""
    if source.count < _LEAST:
        return None
    if source.made_as is not None:
        return _DERIVED.key(how, source.made_as)
    known = fingerprint(source)
    if known is None:
        return None
    places = places_of(source)
    first = numbered(places)
    pattern = [first[id(place)] for place in places]
    names = [name for block in source.functions.values() for name in _names(block)]
    return _DERIVED.key(how, known, pattern, names)


def _names(block: Block) -> list[str | None]:
    names = [value.name for value in block.arguments]
    for operation in block.operations:
        names += [value.name for value in operation.results]
        for inner in operation.blocks:
            names += _names(inner)
    return names


@functools.cache
def _derivations() -> str:
    package = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir)
    state = environment_key.state_of(os.path.join(package, name) for name in _SOURCES)
    return hashlib.sha256("\n".join(state).encode()).hexdigest()


def maker() -> str:
    """Return a text that differs where something else may be made of the same Program."""
    return f"{environment_key.identity()} {_derivations()}"


def _packed(made: Derived, places: Callable[[], Places]) -> bytes:
    return pack(*made, places())


_DERIVED: disk_cache.Kind[Derived] = disk_cache.Kind("derived", _packed, unpack, maker)
_FINGERPRINTS = disk_cache.Kind("fingerprint", str.encode, bytes.decode, maker)
_ANSWERS: disk_cache.Kind[tuple[Any]] = disk_cache.Kind("answer", marshal.dumps, marshal.loads, maker)
