"""Makes the machine code of a Program, with LLVM: only for Programs whose code was not kept (products.py)."""

from __future__ import annotations

from dy2st.ir.program import Program
from dy2st.runtime.backend import has_loops
from dy2st.runtime.cpu import entry, library_addresses, python_api, support
from dy2st.runtime.cpu.elf import link
from dy2st.runtime.cpu.engine import made_object
from dy2st.runtime.cpu.image import Binary, NotLinkable
from dy2st.runtime.cpu.known_functions import Batches
from dy2st.runtime.cpu.lowering import lower, prepared
from dy2st.runtime.cpu.products import Product
from dy2st.runtime.cpu.target import current_target
from dy2st.runtime.cpu.together import together
from dy2st.runtime.cpu.writer import Unit


def lowered(program: Program, strict: bool = False) -> Unit:
    """Return the text of a Program's code, its host calls and its constants."""
    unit = lower(prepared(program), current_target(strict))
    if python_api.available() and entry.takes(program):
        entry.Entry(unit.module, unit.kernels, unit.program, unit.takes_long).write()
    return unit


def product(program: Program, unit: Unit) -> Product:
    """Return the machine code of a Program; loop nests, glue and the library are compiled at the same time."""
    target = unit.target
    glue, level = unit.module.text(unit.kernels), int(has_loops(program))
    families = dict.fromkeys(map(library_addresses.family, unit.library))
    batches = Batches(unit.kernels, target)
    made = together(  # what takes longest first
        [
            *((lambda of=of: library_addresses.code(of, target.strict)) for of in families),
            *batches.jobs,
            lambda: made_object(glue, target, level),
            support.given_back,
        ]
    )
    compiled = made[len(families) : -1]
    try:
        binary: Binary = link([*compiled, *batches.found], repeated=True)
    except NotLinkable:  # LLVM's loader takes each function once
        binary = [compiled[-1], made_object(unit.kernels.text(), target)]
    calls = [[c.name, c.rare, c.in_loop, c.effect] for c in unit.calls]
    notes = {"library": unit.library, "calls": calls, "direct": "dy2st.call" in unit.module}
    return Product(binary, notes, unit.constants)
