"""Memory of a first call, brought in by a thread beside while the call is traced.

Fresh memory is cleared by the system page by page, which takes a large run a quarter of its time: 13 ms for the 50 MB
that the gradient of an LSTM takes. How much a first call took in an earlier process, and in which large blocks, is kept
by the function and its arguments. The next process asks for as much before it traces. It is a guess and nothing more:
what is not asked for by the run waits for the next one.

The moments that an optimizer makes in a trace are new memory, too, which the first run would ask for page by page, and
twice for each: to read, then to write.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import marshal
import mmap
import signal
import sys
from collections.abc import Sequence
from typing import Any

from dy2st import config
from dy2st.records import record
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.aot_cache.artifacts import is_cached, named_recipe
from dy2st.runtime.backends.cpu.allocator.prefault_functions import ARRAYS, MOST_LARGE, TAKEN_WORDS
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.compile_link.image_loader import libc_address
from dy2st.runtime.backends.cpu.python_abi import helpers

_LEAST = 1 << 20
"""Less memory than this is there in less time than a thread takes."""
_MOST = 1 << 27
"""More than this nobody is asked for ahead."""
_CALLS = 2
"""How many calls are looked at: the first one may be run by the interpreter."""
_LEAST_OF_ARRAY = 1 << 16
"""To say where a smaller array is takes as long as to bring it in."""
_SIGNALS = 128
"""Bytes of a set of signals on Linux; with Python's own sets of them this takes 0.26 ms."""
_Need = tuple[int, list[int]]
"""Bytes of blocks from the reserve, and of each large block."""


@record
class ExpectedMemory:
    """What a first call is expected to take, and what was taken before it began."""

    key: str
    need: _Need
    before: Sequence[int]
    calls: int = 0

    def is_settled(self) -> bool:
        """Look at what a call has taken, and keep it where something else was expected; return whether that is all."""
        self.calls += 1
        need = _since(self.before)
        if _bytes(need) < _LEAST and self.calls < _CALLS:
            return False
        if not _is_like(need, self.need):
            _NEEDS.write(self.key, need)
        return True


def expected(function: Any, arguments: Sequence[Any]) -> ExpectedMemory | None:
    """Begin to bring in what the first call of a function took in an earlier process; None where nothing is kept.

    `arguments` are the tensors and numbers that it is called with.
    """
    if not _is_wanted():
        return None
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    kinds = [(str(getattr(x, "dtype", type(x))), tuple(getattr(x, "shape", ()))) for x in arguments]
    key = _NEEDS.key(code.co_filename, code.co_qualname, code.co_firstlineno, kinds)
    need = _NEEDS.read(key) or (0, [])
    begins = _bytes(need) >= _LEAST and _can_begin()
    found = ExpectedMemory(key, need, _taken(begins))
    if begins:
        _bring_in(need)
    return found


def _need(content: bytes) -> _Need:
    """Return what was kept; ValueError for what no call may be brought in for."""
    small, large = marshal.loads(content)
    need = int(small), [int(size) for size in large]
    if min(need[0], *need[1], 0) < 0 or _bytes(need) > _MOST or len(need[1]) > MOST_LARGE:
        raise ValueError(f"{need} is too much")
    return need


_NEEDS = disk_cache.Kind("memory", marshal.dumps, _need)


def _bytes(need: _Need) -> int:
    return need[0] + sum(need[1])


def _is_like(need: _Need, other: _Need) -> bool:
    """Return whether two needs are so much alike that one serves for the other."""
    few, many = sorted((_bytes(need), _bytes(other)))
    return many < _LEAST or (4 * many < 5 * few and sorted(need[1]) == sorted(other[1]))


def _since(before: Sequence[int]) -> _Need:
    """Return what was taken since then."""
    now = _taken()
    made = min(now[1] - before[1], MOST_LARGE)
    sizes = now[2:]
    return now[0] - before[0], [sizes[number % len(sizes)] for number in range(now[1] - made, now[1])]


def _taken(load: bool = False) -> Sequence[int]:
    """Return what was taken so far; without the code that tells it, nothing was."""
    told = (ctypes.c_int64 * TAKEN_WORDS)()
    if not load and not helpers.is_loaded():
        return list(told)
    _function(helpers.address("taken"), None, ctypes.c_void_p)(ctypes.addressof(told))
    return list(told)


def prefault(arrays: Sequence[Any]) -> None:
    """Let a thread bring in the memory of new arrays of zeros, which nobody has written to yet."""
    large = [array for array in arrays if array.nbytes >= _LEAST_OF_ARRAY]
    if _LEAST <= sum(array.nbytes for array in large) <= _MOST and _can_begin():
        addresses = [int(array.ctypes.data) for array in large]
        begins = [address & -mmap.PAGESIZE for address in addresses]
        ends = [address + array.nbytes for address, array in zip(addresses, large, strict=True)]
        _bring_in((0, []), [(begin, end - begin) for begin, end in zip(begins, ends, strict=True)])


def _is_wanted() -> bool:
    """Return whether memory is brought in ahead on this system, in this process."""
    other = config.are_guarded() or config.cache_folder() is None or config.backend() == "interpreter"
    return sys.platform == "linux" and not other


def _can_begin() -> bool:
    """Return whether there is a CPU for the thread, and its code at hand."""
    return _is_wanted() and usable_cpus() > 1 and (helpers.is_loaded() or is_cached(named_recipe("support")))


def _bring_in(need: _Need, arrays: Sequence[tuple[int, int]] = ()) -> None:
    """Let a thread bring memory in. It holds no Python object, and takes no lock of Python's."""
    small, large = need
    words = [0, small, len(large), len(arrays), *large, *[0] * (ARRAYS - 4 - len(large)), *itertools.chain(*arrays)]
    memory = _function(libc_address("malloc"), ctypes.c_void_p, ctypes.c_size_t)(8 * len(words))
    if not memory:
        return
    (ctypes.c_int64 * len(words)).from_address(memory)[:] = words
    if _function(helpers.address("ask"), ctypes.c_int64, ctypes.c_void_p)(memory):
        return  # a thread is at work, and takes it next
    thread = ctypes.c_ulong()
    every, before = (ctypes.c_ubyte * _SIGNALS)(*[255] * _SIGNALS), (ctypes.c_ubyte * _SIGNALS)()
    mask = _function(libc_address("pthread_sigmask"), ctypes.c_int, ctypes.c_int, *[ctypes.c_void_p] * 2)
    mask(int(signal.SIG_SETMASK), ctypes.addressof(every), ctypes.addressof(before))  # signals are for Python's threads
    try:
        create = _function(libc_address("pthread_create"), ctypes.c_int, *[ctypes.c_void_p] * 4)
        if not create(ctypes.addressof(thread), None, helpers.address("ahead"), None):  # else nothing is brought in
            _function(libc_address("pthread_detach"), ctypes.c_int, ctypes.c_ulong)(thread)
    finally:
        mask(int(signal.SIG_SETMASK), ctypes.addressof(before), None)


@functools.cache
def _function(address: int, result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)(address)
