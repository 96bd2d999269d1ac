"""Makes the machine code of a Program, with LLVM: only for Programs whose code was not kept (artifacts.py)."""

from __future__ import annotations

from typing import Any

from dy2st.ir.program import Program
from dy2st.runtime.aot_cache.artifacts import Artifact
from dy2st.runtime.aot_cache.code_image import Binary, NotLinkable
from dy2st.runtime.backends.cpu import runtime_library_symbols
from dy2st.runtime.backends.cpu.compile_link.code_loader import made_object, outside
from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus
from dy2st.runtime.backends.cpu.compile_link.elf_linker import link
from dy2st.runtime.backends.cpu.compile_link.function_cache import ObjectFiles
from dy2st.runtime.backends.cpu.compile_link.parallel_map import together
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.emitter.function_emitter import EmitterContext
from dy2st.runtime.backends.cpu.lowering import lower, prepared
from dy2st.runtime.backends.cpu.opt_level import Haste, has_loops, has_register_loops
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols, entry, helpers

_LONG = 1_000_000
"""From so many letters of glue on, level 1 takes more time for each than before: some 4,000 operations."""


def lowered(program: Program, strict: bool = False) -> EmitterContext:
    """Return the text of a Program's code, its host callbacks and its constants."""
    unit = lower(prepared(program, strict), current_target(strict))
    if cpython_symbols.available() and entry.takes(program):
        entry.EntryPoint(unit.module, unit.kernels, unit.program, unit.takes_long).write()
    return unit


def product(
    program: Program, unit: EmitterContext, *, quick: bool = False, haste: Haste = "none", beside: bool = False
) -> Artifact:
    """Return the machine code of a Program; loop nests, glue and the library are compiled at the same time.

    What is to be `quick` is made at level 0: the same bits, in a fifth of the time, and it runs up to three times as
    long. Only loops over numbers alone would run much longer; code with such a loop is short. `haste` says the same of
    the library. What is made `beside` runs leaves them half of the CPUs: threads that wait for each other in a run wait
    for one that compiles, too.
    """
    target, threads = unit.target, max(1, usable_cpus() // (2 if beside else 1))
    glue = unit.module.text(unit.kernels)
    in_a_hurry = quick or len(glue) > _LONG
    level = int(has_register_loops(program) if in_a_hurry else has_loops(program))
    library = runtime_library_symbols.jobs(unit.library, target.strict, haste)
    batches = ObjectFiles(unit.kernels, target, quick=quick, threads=threads) if target.is_relative else None
    kernels = [lambda: made_object(unit.kernels.text(), target)] if batches is None else batches.jobs
    shared = [*([lambda: outside("dy2st.parallel")] if unit.takes_long else []), *library, helpers.given_back]
    jobs = [lambda: made_object(glue, target, level), *kernels, *shared]  # what takes longest comes first
    made = together(jobs, threads)
    objects: list[bytes] = made[: -len(shared)]
    return Artifact(objects if batches is None else _image(objects, batches, unit), _notes(unit, haste), unit.constants)


def _image(objects: list[bytes], batches: ObjectFiles, unit: EmitterContext) -> Binary:
    try:
        return link([*objects, *batches.found], repeated=True)
    except NotLinkable:  # LLVM's loader takes each function once
        return [objects[0], made_object(unit.kernels.text(), unit.target)]


def _notes(unit: EmitterContext, haste: Haste) -> dict[str, Any]:
    calls = [[c.name, c.rare, c.in_loop, c.effect] for c in unit.calls]
    return {"library": unit.library, "calls": calls, "direct": "dy2st.call" in unit.module, "haste": haste}
