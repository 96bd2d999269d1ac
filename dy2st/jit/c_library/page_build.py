"""A library as WebAssembly: a module without imports of its code and the C around it, and the files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dy2st.files import atomic
from dy2st.jit.c_library import c_source, page_files
from dy2st.jit.c_library.c_source import Library
from dy2st.jit.c_library.toolchain import Toolchain

_STACK_BYTES = 1 << 20
"""What code has for what does not stand in WebAssembly's registers; below it are the first addresses, which trap."""
_COMPILED = ("-std=c11", "-O2", "-fvisibility=hidden", "-msimd128", "-mbulk-memory", "-mnontrapping-fptoint")
_LINKED = ("-mexec-model=reactor", "-s", "-Wl,--no-entry", "-Wl,--gc-sections", f"-Wl,-z,stack-size={_STACK_BYTES}")


def write(library: Library, objects: Sequence[bytes], tools: Toolchain, folder: Path) -> Path:
    """Write a library into a folder, from the object files of its functions; return the ES module."""
    name = library.name
    texts = {
        f"{name}.mjs": page_files.module(library),
        f"{name}.d.ts": page_files.types(library),
        f"{name}.d.mts": f'export * from "./{name}.js"; // of which TypeScript finds {name}.d.ts\n',
        "index.html": page_files.page(library),
    }
    inner = {f"{name}.h": c_source.header(library), f"{name}.c": c_source.source(library, in_page=True)}
    for file, text in {**texts, **inner}.items():
        atomic.replace(folder / file, [text.encode()])
    atomic.replace(folder / f"{name}.safetensors", [library.weights.content])
    atomic.replace(folder / f"{name}.constants", [library.constants.data])
    names = [f"{name}.o", *(f"{name}_{entry.name}.o" for entry in library.entries)]
    for file, code in zip(names[1:], objects, strict=True):
        (folder / file).write_bytes(code)
    tools.run([*_COMPILED, "-c", f"{name}.c"], folder)
    tools.run([*_LINKED, "-o", f"{name}.linked", *names], folder)
    atomic.replace(folder / f"{name}.wasm", [page_files.with_table((folder / f"{name}.linked").read_bytes(), library)])
    kept = () if library.built_in else (f"{name}.safetensors",)
    for file in (*inner, *names, f"{name}.linked", f"{name}.constants", f"{name}.safetensors"):
        if file not in kept:
            (folder / file).unlink()
    return folder / f"{name}.mjs"
