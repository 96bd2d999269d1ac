"""LLVM IR text to machine code in this process.

A module is compiled to the bytes of an object file, which are kept by the hash of the text, and then loaded. Several
threads may compile at once (compiler.py). What is loaded stays, but for the code of single Programs (image_loader.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from dy2st.forks import ForkLock, Gate
from dy2st.records import field, record
from dy2st.runtime.aot_cache import disk_cache
from dy2st.runtime.aot_cache.artifacts import Artifact, made, named_recipe
from dy2st.runtime.aot_cache.code_image import Binary, CodeImage, NotLinkable
from dy2st.runtime.backends.cpu.compile_link.compiler import compiled, version
from dy2st.runtime.backends.cpu.compile_link.image_loader import ImageMemory, libc_address, load_image
from dy2st.runtime.backends.cpu.compile_link.parallel_map import Once
from dy2st.runtime.backends.cpu.compile_link.target import Target, current_target

_lock, _inside_llvm = ForkLock(level=2), Gate(level=3)
_OBJECTS = disk_cache.Kind("object", bytes, bytes)
_provided: dict[str, Callable[[], int]] = {}
_shared: dict[str, Once] = {}


@record
class LoadedCode:
    """Loaded code: `address(name)` is where a function of it stands."""

    _find: Callable[[str], int] = field(repr=False)
    owner: ImageMemory | None = field(default=None, repr=False)
    """What whoever calls a function of this code must hold, where its memory is given back."""

    def address(self, name: str) -> int:
        """Return the address of a function; KeyError where the code has none of that name."""
        found = self._find(name)
        if not found:
            raise KeyError(name)
        return found


def object_key(text: str, target: Target, level: int) -> str:
    """Return the name under which the object file of this text is cached."""
    return _OBJECTS.key(text, *target.words(), level, version())


def provide(name: str, address: Callable[[], int]) -> None:
    """Say how to find a function that modules only declare, when the first module that uses it is loaded."""
    _provided[name] = address


_PASSES = (
    ("AlwaysInliner",),  # level 0: code that runs once a call is not worth the time of a pass
    ("AlwaysInliner", "SROA", "SimplifyCFG", "InstCombine"),
)
"""What is worth its time at each level: code comes with explicit vectors and few loops to improve."""


def compile_object(text: str, target: Target, level: int = 1, passes: Sequence[str] = ()) -> bytes:
    """Compile LLVM IR text to an object file; RuntimeError with LLVM's message for text that is wrong.

    At level 0 code is made ten times as fast and runs slower: for code that runs once a call. More `passes` run behind
    those of the level.
    """
    with _inside_llvm:
        return compiled(_as_rounded(text, target), target.machine(level), (*_PASSES[level], *passes))


_MULTIPLY_ADD = r"(%[\w.]+) = (?:tail )?call (<\d+ x \w+>|\w+) @llvm\.fmuladd\.\w+\((.*)\)"


def rounded_apart(text: str) -> str:
    """Return code in which products and sums round by themselves, so that it gives the same bits on every CPU.

    >>> print(rounded_apart("%r = call float @llvm.fmuladd.f32(float %x, float %y, float %z)"))
    %r.product = fmul float %x, %y
    %r = fadd float %r.product, %z
    """

    def apart(found: re.Match[str]) -> str:
        made, kind, operands = found.groups()
        x, y, z = operands.removeprefix(f"{kind} ").split(f", {kind} ")
        return f"{made}.product = fmul {kind} {x}, {y}\n  {made} = fadd {kind} {made}.product, {z}"

    return re.sub(_MULTIPLY_ADD, apart, text)


def _as_rounded(text: str, target: Target) -> str:
    return rounded_apart(text) if target.strict else text


# ---- loading -------------------------------------------------------------------------------------------------------
def linked(objects: Sequence[bytes]) -> Binary:
    """Return object files as one image, or as they are where it takes LLVM to load them."""
    from dy2st.runtime.backends.cpu.compile_link.elf_linker import link

    try:
        return link(objects)
    except NotLinkable:
        return list(objects)


def load(binary: Binary, *, of_one: bool = False) -> LoadedCode:
    """Bring code into this process; it stays there, but `of_one` Program, whose code goes with its owner."""
    with _lock:
        if isinstance(binary, CodeImage):
            owner = ImageMemory() if of_one else None
            return LoadedCode(load_image(binary, outside, owner).__getitem__, owner)
        return LoadedCode(_by_llvm(binary))


def outside(name: str) -> int:
    """Return where a function stands that modules only declare; KeyError for one that nobody provides."""
    return _provided[name]() if name in _provided else libc_address(name)


def _by_llvm(objects: Sequence[bytes]) -> Callable[[str], int]:
    """Let LLVM load object files; return what finds a function."""
    from dy2st.runtime.backends.cpu.compile_link.llvm_loader import load_by_llvm

    names = [name for name in [*_provided] if any(name.encode() in one for one in objects)]
    provided = {name: _provided[name]() for name in names}  # an address may be provided by code that this provides
    return load_by_llvm(objects, provided, current_target())


@functools.cache
def compile_text(text: str, target: Target | None = None, level: int = 1) -> LoadedCode:
    r"""Compile LLVM IR text and load it; the same text is compiled once, also by other processes (artifacts.py).

    >>> code = compile_text("define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}")
    >>> import ctypes
    >>> ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("twice"))(21)
    42
    """
    chosen = "" if target is None else "\0".join(target.words())
    return load(_module(f"text {level} {chosen} {text}", lambda: text, target, level).binary)


def named_product(name: str, write: Callable[[], str], level: int = 1) -> Artifact:
    """Return the code of a module that this package always writes in the same way, not yet loaded.

    It is known by its name, so a later process does not write it. Threads that ask at once get the same.
    """
    return _module(named_recipe(name), write, None, level)


def _module(recipe: str, write: Callable[[], str], target: Target | None, level: int) -> Artifact:
    def make() -> Artifact:
        return Artifact(linked([made_object(write(), target or current_target(), level)]))

    return _once(recipe, lambda: made(recipe, make)[0])


def shared_object(text: str, target: Target, level: int) -> bytes:
    """Return the object file of a module that many Programs have in common; threads that ask at once get the same."""
    return _once(object_key(text, target, level), lambda: made_object(text, target, level))


def _once(key: str, make: Callable[[], Any]) -> Any:
    """Return what `make` gives, which is made once for a key."""
    return _shared.setdefault(key, Once(make))()


def made_object(text: str, target: Target, level: int = 1) -> bytes:
    """Return the object file of LLVM IR text, from the cache where it was made before."""
    return _OBJECTS.made(object_key(text, target, level), lambda: compile_object(text, target, level))


def assembly(text: str, target: Target | None = None, level: int = 1) -> str:
    """Return the machine code of LLVM IR text as the CPU's assembly language."""
    made_for = target or current_target()
    machine = made_for.machine(level)
    return compiled(_as_rounded(text, made_for), machine, _PASSES[level], readable=True).decode()
