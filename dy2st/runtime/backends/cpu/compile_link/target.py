"""The CPU that code is made for: its name, its features and how wide its vectors are.

`DY2ST_CPU` forces a lesser one (`avx2`, `sse`, `scalar`), so that all kinds of code are tested on one machine.

Strict code gives the same bits on all of them: its vectors have one width, which LLVM cuts up where the CPU's are
shorter, and every operation rounds by itself.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping

from dy2st import config
from dy2st.records import record, replace
from dy2st.runtime.backends.cpu.compile_link.compiler import TargetMachine, host

_FORCED = {
    "avx512": ("x86-64-v4", "", 64),
    "avx2": ("x86-64-v3", "", 32),
    "sse": ("x86-64-v2", "", 16),
    "scalar": ("x86-64", "", 0),
}
_STRICT_BYTES = 32


@record(frozen=True)
class Target:
    """What code generation needs to know of a CPU; `vector_bytes` is 0 where it is to use no vectors."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    strict: bool = False
    code_model: str = ""
    """Of code that is linked into a library, which may stand anywhere (standalone.py)."""

    def lanes(self, itemsize: int) -> int:
        """Return how many elements of `itemsize` bytes a vector register holds, at least 1."""
        return max(1, self.vector_bytes // itemsize)

    @property
    def is_relative(self) -> bool:
        """Whether code finds what it uses relative to itself, so that images can be made of it (elf_linker.py)."""
        return self.triple.startswith("x86_64") and "linux" in self.triple

    @property
    def is_wasm(self) -> bool:
        """Whether it is WebAssembly with addresses of four bytes; a component in memory has eight there too."""
        return self.triple.startswith("wasm32")

    def _model(self) -> dict[str, str]:
        if self.is_wasm:
            return {"codemodel": self.code_model, "reloc": "static"}
        if self.code_model:
            return {"codemodel": self.code_model, "reloc": "pic"}
        return {"codemodel": "small", "reloc": "pic"} if self.is_relative else {"codemodel": "jitdefault"}

    def words(self) -> tuple[str, ...]:
        """Return texts that differ where code for the same text does."""
        return (self.triple, self.cpu, self.features, "strict" * self.strict, *self._model().values())

    def machine(self, level: int = 1) -> TargetMachine:
        """Return what LLVM makes code for."""
        said = self._model()
        return TargetMachine(
            self.triple, self.cpu, self.features, said.get("reloc", "default"), said["codemodel"], level
        )


@functools.cache
def host_target(forced: str | None = None) -> Target:
    """Return the target of this machine, or the one that `forced` names; ValueError for an unknown name."""
    triple, cpu, features = host()
    if forced is None:
        flags = ",".join(f"{'+' if has else '-'}{name}" for name, has in features.items())
        return Target(triple, cpu, flags, _width(features))
    if forced not in _FORCED:
        raise ValueError(f"DY2ST_CPU is one of {', '.join(_FORCED)}, not {forced!r}")
    return Target(triple, *_FORCED[forced])


def current_target(strict: bool = False) -> Target:
    """Return the target that `DY2ST_CPU` names, else this machine's."""
    found = host_target(config.forced_cpu())
    return made_strict(found) if strict else found


def made_strict(target: Target) -> Target:
    """Return a target whose code gives the same bits on every CPU."""
    return replace(target, vector_bytes=_STRICT_BYTES, strict=True)


def _width(features: Mapping[str, bool]) -> int:
    """Return the bytes of a vector register; 16 on AArch64 (NEON) and on x86-64 of any age."""
    if features.get("avx512f") and features.get("avx512vl"):
        return 64
    if features.get("avx2"):
        return 32
    return 16 if platform.machine().lower() in ("x86_64", "amd64", "aarch64", "arm64") else 0
