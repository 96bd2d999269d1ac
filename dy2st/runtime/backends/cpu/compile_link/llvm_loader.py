"""LLVM's own loader of object files, where they cannot be linked here (elf_linker.py)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.llvm_availability import NoLlvm

_loaded: list[Any] = []


@functools.cache
def binding() -> Any:
    """Return llvmlite's binding with the targets of this machine ready; NoLlvm where it cannot be loaded."""
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:  # a library that it needs, or itself for another system
        raise NoLlvm(str(error)) from error

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def load_by_llvm(objects: Sequence[bytes], provided: Mapping[str, int], target: Target) -> Callable[[str], int]:
    """Load object files, which may call what is `provided`; return what gives the address of a function, or 0."""
    llvm = binding()
    for name, address in provided.items():
        llvm.add_symbol(name, address)
    said = target.machine()
    machine = llvm.Target.from_triple(said.triple).create_target_machine(
        cpu=said.cpu, features=said.features, opt=said.level, reloc=said.relocation, codemodel=said.model, jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(f'target triple = "{said.triple}"'), machine)
    for one in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(one))
    engine.finalize_object()
    _loaded.append(engine)
    return engine.get_function_address
