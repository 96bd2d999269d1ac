"""The CPUs that libraries are made for, by name, and how the C compiler knows them."""

from __future__ import annotations

import platform

from dy2st.records import record
from dy2st.runtime.backends.cpu.compile_link.target import Target, made_strict


@record(frozen=True)
class PlatformTarget:
    """What code is made for, by LLVM and by the C compiler: zig's, for `zig`; else the one of this machine."""

    machine: Target
    zig: str | None
    flags: tuple[str, ...] = ()

    @property
    def is_for_pages(self) -> bool:
        """Whether it is WebAssembly, which a module of JavaScript calls."""
        return self.machine.is_wasm


_WASM = "+simd128,+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals"
_X86 = "x86_64-unknown-linux-gnu"
_TARGETS = {
    "x86-64": Target(_X86, "x86-64", "", 16, code_model="small"),
    "x86-64-v2": Target(_X86, "x86-64-v2", "", 16, code_model="small"),
    "x86-64-v3": Target(_X86, "x86-64-v3", "", 32, code_model="small"),
    "x86-64-v4": Target(_X86, "x86-64-v4", "", 64, code_model="small"),
    "aarch64": Target("aarch64-unknown-linux-gnu", "generic", "", 16, code_model="small"),
    "riscv64": Target("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0, code_model="medium"),
    "wasm32": Target("wasm32-unknown-unknown", "generic", _WASM, 16, code_model="small"),
}
NAMES = tuple(_TARGETS)
_ZIG = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-musl",
    "riscv64": "riscv64-linux-musl",
    "wasm32": "wasm32-wasi",
}
_USUAL = {"x86_64": "x86-64-v3", "amd64": "x86-64-v3", "aarch64": "aarch64", "arm64": "aarch64", "riscv64": "riscv64"}


def platform_target(name: str | None, *, strict: bool) -> PlatformTarget:
    """Return a target by its name, None for this machine's kind; ValueError for an unknown name."""
    here = _USUAL.get(platform.machine().lower())
    name = name or here
    if name not in _TARGETS:
        raise ValueError(f"target is one of {', '.join(NAMES)}, not {name!r}")
    machine = _TARGETS[name]
    family = machine.triple.partition("-")[0]
    is_here = here is not None and _TARGETS[here].triple == machine.triple
    return PlatformTarget(made_strict(machine) if strict else machine, None if is_here else _ZIG[family])
