"""Functions that Programs have in common, compiled once: a loop nest that an earlier Program had is not made again.

What a function is made of is its key: its text and that of all it calls. Functions that have no code yet are compiled
together, in batches; a batch is cached with the keys of what is in it, and under each key is cached which batch has it.
So a Program that differs from an earlier one in one place has little to compile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from dy2st.records import field, record
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.aot_cache.artifacts import Artifact, from_bytes
from dy2st.runtime.aot_cache.environment_key import identity
from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object, object_key
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMModule

_NAME = re.compile(r"@([\w.$-]+)")
_MOST = 256
"""How many batches are held in memory; those before are still in the cache."""
_LARGE = {True: 150_000, False: 20_000}
"""A text of fewer letters is not worth being compiled in parts at the same time, by whether it is to be quick: parts
have functions in common, and where LLVM has little to do with each, the glue and the library take a thread as well."""


@record(frozen=True)
class ObjectFile:
    """An object file, and what each of its functions is made of."""

    code: bytes
    keys: dict[str, str]


@record
class _Known:
    batches: dict[str, ObjectFile] = field(default_factory=dict[str, ObjectFile])
    by_function: dict[str, str] = field(default_factory=dict[str, str])
    """Which batch has the function of a key."""


_known = _Known()


class ObjectFiles:
    """The object files that have the functions of a module: those that are there, and jobs that make the others.

    Where it is to be `quick`, those are made at level 0, and nobody else gets them.
    """

    def __init__(self, module: LLVMModule, target: Target, *, quick: bool = False, threads: int | None = None):
        self._target, self._quick = target, quick
        self._threads = usable_cpus() if threads is None else threads
        self._texts = dict(module.texts)
        self._uses = {
            n: [u for u in dict.fromkeys(_NAME.findall(t)) if u in self._texts] for n, t in self._texts.items()
        }
        self._keys = {name: self._key(name) for name, text in self._texts.items() if _is_public(text)}
        self.found: list[bytes] = []
        missing = self._find()
        self.jobs: list[Callable[[], bytes]] = [lambda part=part: self._made(part) for part in self._parts(missing)]

    def _key(self, name: str) -> str:
        texts = (self._texts[n] for n in sorted(self._reached([name])))
        return object_key("\n".join(texts), self._target, 1)

    def _reached(self, names: Iterable[str]) -> set[str]:
        """Return names with all that they use."""
        pending, seen = list(names), set[str]()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += self._uses[name]
        return seen

    def _find(self) -> list[str]:
        """Note the batches that there are; return the functions that none has."""
        names, missing, taken = dict(self._keys), list[str](), set[str]()
        for name, key in self._keys.items():
            number = _batch_of(key)
            batch = _known.batches.get(number or "")
            if number is None or batch is None or any(names.get(n, k) != k for n, k in batch.keys.items()):
                missing.append(name)
            elif number not in taken:
                taken.add(number)
                names.update(batch.keys)
                self.found.append(batch.code)
        return missing

    def _parts(self, names: Sequence[str]) -> list[list[str]]:
        """Return names in parts that take about as long to compile."""
        count = self._threads if sum(len(self._texts[n]) for n in names) > _LARGE[self._quick] else 1
        parts: list[list[str]] = [[] for _ in range(count)]
        sizes = [0] * count
        for name in sorted(names, key=lambda n: -len(self._texts[n])):
            least = sizes.index(min(sizes))
            parts[least].append(name)
            sizes[least] += len(self._texts[name])
        return [part for part in parts if part]

    def _made(self, names: Sequence[str]) -> bytes:
        """Compile functions with all that they call, so that whoever takes the batch has what is in it."""
        inside = self._reached(names)
        text = "\n\n".join(text for name, text in self._texts.items() if name in inside) + "\n"
        if self._quick:
            return compile_object(text, self._target, 0)
        keys = {name: key for name, key in self._keys.items() if name in inside}
        batch = ObjectFile(compile_object(text, self._target), keys)
        _keep(object_key(text, self._target, 1), batch)
        return batch.code


def _is_public(text: str) -> bool:
    return text.startswith("define ") and not text.startswith(("define internal", "define private"))


def _batch_of(key: str) -> str | None:
    """Return which batch has the function of a key, after reading it where it is cached; None where none has it."""
    number = _known.by_function.get(key)
    if number is not None:
        return number
    number = _PLACES.read(_PLACES.key(key))
    if number is None or (number not in _known.batches and not _read(number)):
        return None
    return number if key in _known.batches[number].keys.values() else None


def _read(number: str) -> bool:
    batch = _BATCHES.read(_BATCHES.key(number))
    if batch is not None:
        _note(number, batch)
    return batch is not None


def _keep(number: str, batch: ObjectFile) -> None:
    _note(number, batch)
    _BATCHES.write(_BATCHES.key(number), batch)
    for key in batch.keys.values():
        _PLACES.write(_PLACES.key(key), number)


def _note(number: str, batch: ObjectFile) -> None:
    _known.batches[number] = batch
    _known.by_function.update((key, number) for key in batch.keys.values())
    while len(_known.batches) > _MOST:
        oldest = next(iter(_known.batches))
        for key in _known.batches.pop(oldest).keys.values():
            if _known.by_function.get(key) == oldest:
                del _known.by_function[key]


def _batch_to_bytes(batch: ObjectFile) -> bytes:
    return Artifact([batch.code], {"keys": batch.keys}).to_bytes()


def _batch_from(content: bytes) -> ObjectFile:
    product = from_bytes(content)
    if not isinstance(product.binary, list):
        raise TypeError("a batch is an object file")
    return ObjectFile(product.binary[0], product.notes["keys"])


_BATCHES = disk_cache.Kind("batch", _batch_to_bytes, _batch_from, lambda: identity())
_PLACES = disk_cache.Kind("function", str.encode, bytes.decode, lambda: identity())
