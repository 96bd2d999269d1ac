"""What a library is made of beside its code: the header, the C around the code (runtime.c), an example, CMake."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dy2st.jit.c_library.signature import CValue, symbols
from dy2st.jit.c_library.weights import Weights
from dy2st.records import record
from dy2st.runtime.backends.cpu.allocator import refcounted_blocks as blocks
from dy2st.runtime.backends.cpu.python_abi.stack_limit import MOST_STACK
from dy2st.shapes import Dim, Shape


@record(frozen=True)
class Entry:
    """A function of the library."""

    name: str
    arguments: tuple[CValue, ...]
    results: tuple[CValue, ...]
    failures: tuple[str, ...]
    constants: tuple[str, ...]
    """The names of the arrays that the code reads, in the file of constants."""

    @property
    def given(self) -> list[CValue]:
        """What the caller gives."""
        return [v for v in self.arguments if v.state == "NONE"]

    @property
    def made(self) -> list[CValue]:
        """What the caller gets."""
        return [v for v in self.results if v.state == "NONE"]


@record(frozen=True)
class Library:
    """All that the C text says of a library; the shapes are those of the state, in the order of their numbers."""

    name: str
    entries: tuple[Entry, ...]
    state: tuple[tuple[str, Shape], ...]
    weights: Weights
    constants: Weights
    built_in: bool


_HEADER = """\
/* {name}: made by `dy2st build`. C11 or C++20; link with the C library's math and threads (-lm -pthread).

   Functions give {upper}_OK, or a code and, by {name}_error, a text. An instance runs once at a time:
   {upper}_BUSY tells who comes meanwhile. Any number of instances run beside each other; they
   share the built-in weights. */
#ifndef {upper}_H
#define {upper}_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

enum {{
  {upper}_OK,
  {upper}_INVALID,   /* an input is not as its type says */
  {upper}_FAILED,    /* the model raised an error: the text has its line */
  {upper}_NO_MEMORY,
  {upper}_BUSY,      /* the instance is running */
  {upper}_BAD_FILE,  /* a file is not that of these weights, or cannot be read or written */
}};

typedef struct {name} {name};

/* Zeros stand for what is usual: {{0}} is as good as no options. */
typedef struct {{
  const char *weights;     /* the path of {name}.safetensors or a file like it{where} */
  int threads;             /* how many threads a run uses at most, the caller's included: 1 */
  uint64_t most_bytes;     /* what a run may hold beside its inputs: no limit */
  uint64_t seed;           /* of random numbers, as paddle.seed takes it */
  void *user;              /* the first argument of these functions: */
  void *(*allocate)(void *user, size_t alignment, size_t bytes);
  void (*deallocate)(void *user, void *memory);
  /* call part(work, from, to, who) for ranges that cover 0 .. units once, who below `team`, no two at once the same */
  void (*parallel)(void *user, void (*part)(void *work, int64_t from, int64_t to, int64_t who), void *work,
                   int64_t units, int64_t team);
}} {name}_options;

int {name}_create(const {name}_options *options, {name} **made);
void {name}_free({name} *model);
/* Write the weights as they are now, to a file that options.weights may name. */
int {name}_save(const {name} *model, const char *path);
/* Return the text of an instance's last error; without an instance, that of this thread's last {name}_create. */
const char *{name}_error(const {name} *model);

/* Strides count elements; when all are zero the elements have no gaps. Outputs stand in the instance's memory until it
   runs this function again, or goes. */
"""
_FUNCTION = """\
typedef struct {{
{inputs}
}} {name}_inputs;
typedef struct {{
{outputs}
}} {name}_outputs;
/* {shapes} */
int {name}({model} *model, const {name}_inputs *inputs, {name}_outputs *outputs);

"""


def header(library: Library) -> str:
    """Return the text of the library's header."""
    name = library.name
    where = "; null: the built-in ones" if library.built_in else ", which is needed"
    functions = "".join(_function(library, entry) for entry in library.entries)
    return (
        _HEADER.format(name=name, upper=name.upper(), where=where)
        + functions
        + f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {name.upper()}_H */\n"
    )


def _function(library: Library, entry: Entry) -> str:
    fields = [
        "\n".join(f"  {v.declaration(is_result=is_result)}" for v in values) or "  char nothing;"
        for values, is_result in ((entry.given, False), (entry.made, True))
    ]
    shown = ["(" + ", ".join(f"{v.field}: {v.type}" for v in values) + ")" for values in (entry.given, entry.made)]
    return _FUNCTION.format(
        name=f"{library.name}_{entry.name}", model=library.name, inputs=fields[0], outputs=fields[1],
        shapes=" -> ".join(shown).replace("*/", "* /"),
    )  # fmt: skip


# ---- the C around the code ---------------------------------------------------------------------------------------
_PAGE_STACK = 64 * 1024
"""How many bytes of stack calls may use in a page: an engine keeps a part of each frame where code does not see it."""
_ELF_DATA = (
    ".section .rodata\\n.hidden {symbol}\\n.globl {symbol}\\n.balign 64\\n{symbol}:\\n{content}\\n.byte 0\\n.text\\n"
)
_WASM_DATA = (
    '.section .rodata.{symbol},\\"\\",@\\n.hidden {symbol}\\n.globl {symbol}\\n.type {symbol},@object\\n.p2align 6\\n'
    "{symbol}:\\n{content}\\n.int8 0\\n.size {symbol}, . - {symbol}\\n"
)
"""How an assembler is told of data that stand in a file."""
_FIELDS = ("ALLOCATE", "CONSTANTS", "LIBRARY", "LIMIT", "BLOCKS")
"""What runtime.c knows of a context (refcounted_blocks.py)."""


def source(library: Library, *, in_page: bool = False) -> str:
    """Return the text of the C around the code; for a page, with what `module.mjs` calls in the place of threads."""
    name = library.name
    types, inner, functions = re.split(r"/\* (?:TABLES|HOST) \*/\n", _read("runtime.c"))
    host_types, host = _read("page/in_page.c" if in_page else "threads_and_files.c").split("/* FUNCTIONS */\n")
    fields = {f"AT_{field}": getattr(blocks, field) for field in _FIELDS}
    writes = any(v.state != "NONE" for entry in library.entries for v in entry.results)
    known: dict[str, Any] = {
        "MODEL": name, "OPTIONS": f"{name}_options", "NAME(x)": f"{name}_##x", "INNER(x)": f"{name}__##x",
        "CODE(x)": f"{name.upper()}_##x", "TITLE": _text(name), "ENTRIES": len(library.entries),
        "BUILT_IN": int(library.built_in), "WRITES": int(writes),
        "HEADER": _text(library.weights.header.decode()), "WEIGHTS_BYTES": f"((size_t){len(library.weights.data)})",
        "WEIGHTS_START": 8 + len(library.weights.header), "CONTEXT_BYTES": blocks.CONTEXT_BYTES, "HEAD": blocks.HEAD,
        "RAISED": blocks.RAISED, "STACK": _PAGE_STACK if in_page else MOST_STACK,
        "PUBLIC": f'__attribute__((visibility("{"hidden" if in_page else "default"}")))', **fields,
    }  # fmt: skip
    included = ["stdarg.h", "stdatomic.h", "stdio.h", "stdlib.h", "string.h", *([] if in_page else ["pthread.h"])]
    return "\n".join([
        f'#include "{name}.h"',
        *(f"#include <{file}>" for file in included),
        *(f"#define {macro} {value}" for macro, value in known.items()),
        f"typedef {name} instance;",
        *_embedded(library, _WASM_DATA if in_page else _ELF_DATA),
        host_types,
        types,
        *(line for entry in library.entries for line in _tables(library, entry)),
        _state_table(library),
        "static const entry TABLE[ENTRIES] = {",
        *(_row(library, entry) for entry in library.entries),
        "};",
        *(_layouts(library) if in_page else ()),
        inner,
        host,
        functions,
        *([] if in_page else (_wrapper(library, number, entry) for number, entry in enumerate(library.entries))),
    ])  # fmt: skip


def _read(file: str) -> str:
    return (Path(__file__).parent / file).read_text(encoding="utf-8")


def _embedded(library: Library, data: str) -> list[str]:
    """Return what puts the files of constants and weights into the object."""
    lines: list[str] = []
    for what, file, given in (
        ("weights", f"{library.name}.safetensors", library.built_in),
        ("constants", f"{library.name}.constants", bool(library.constants.data)),
    ):
        symbol = f"{library.name}__{what}"
        lines.append(f'extern const unsigned char {symbol}[] __attribute__((visibility("hidden")));')
        content = f'.incbin \\"{file}\\"' if given else '.ascii \\"\\"'
        lines.append(f'__asm__("{data.format(symbol=symbol, content=content)}");')
    return lines


def _layouts(library: Library) -> list[str]:
    """Return tables of where the fields of a function's structs stand, behind the sizes of these."""
    lines: list[str] = []
    for entry in library.entries:
        full = f"{library.name}_{entry.name}"
        structs = ((f"{full}_inputs", entry.given), (f"{full}_outputs", entry.made))
        said = [f"sizeof({struct})" for struct, _ in structs]
        for struct, values in structs:
            for v in values:
                parts = (".data", ".shape") if v.rank else ("", "")
                said += [f"offsetof({struct}, {v.field}{part})" for part in parts]
        lines.append(f"static const uint32_t L_{entry.name}[] = {{{', '.join(said)}}};")
    names = ", ".join(f"L_{entry.name}" for entry in library.entries)
    return [*lines, f"static const uint32_t *const LAYOUTS[ENTRIES] = {{{names}}};"]


def _tables(library: Library, entry: Entry) -> list[str]:
    numbers = symbols(entry.arguments)
    full = f"{library.name}_{entry.name}"
    lines, rows = list[str](), list[str]()
    for values, struct in ((entry.arguments, "inputs"), (entry.results, "outputs")):
        for v in values:
            extents = "NULL"
            if v.extents:
                extents = f"E_{entry.name}_{len(rows)}"
                shown = ", ".join(str(-1 - numbers.get(e, 0) if isinstance(e, Dim) else e) for e in v.extents)
                lines.append(f"static const int64_t {extents}[] = {{{shown}}};")
            places = ["0", "0", "0"]
            if v.state == "NONE":
                parts = ([".data", ".shape", ".strides"][: 3 - (struct == "outputs")]) if v.rank else [""]
                places[: len(parts)] = [f"offsetof({full}_{struct}, {v.field}{part})" for part in parts]
            said = (_text(v.name), v.form, v.size, v.rank, v.words, extents, *places, v.state)
            rows.append(f"  {{{', '.join(map(str, said))}}},")
    offsets = [str(library.constants.offsets[name]) for name in entry.constants] or ["0"]
    return [
        f"extern int32_t {full}__run(void *, word *, word *);",
        f"extern void *{full}__allocate(void *, int64_t);",
        f"extern void {full}__release(void *, void *);",
        f"extern void *{full}__make(void *, int64_t, int64_t);",
        f"extern const char {full}__library[];",
        *lines,
        f"static const value V_{entry.name}[] = {{",
        *(rows or ["  {0}"]),
        "};",
        f"static const char *const F_{entry.name}[] = {{",
        *[f"  {_text(failure)}," for failure in entry.failures or ("",)],
        "};",
        f"static const size_t C_{entry.name}[] = {{{', '.join(offsets)}}};",
    ]


def _state_table(library: Library) -> str:
    lines, rows = list[str](), list[str]()
    for i, (name, shape) in enumerate(library.state):
        lines.append(f"static const int64_t S_{i}[] = {{{', '.join(map(str, shape)) or '0'}}};")
        following = sorted(at for at in library.weights.offsets.values() if at > library.weights.offsets[name])
        end = following[0] if following else len(library.weights.data)
        rows.append(f"  {{{library.weights.offsets[name]}, {end - library.weights.offsets[name]}, S_{i}}},")
    return "\n".join([*lines, "static const tensor STATE[] = {", *(rows or ["  {0}"]), "};"])


def _row(library: Library, entry: Entry) -> str:
    full = f"{library.name}_{entry.name}"
    functions = ", ".join(f"{full}__{what}" for what in ("run", "allocate", "release", "make", "library"))
    counts = (
        len(entry.arguments), len(entry.results), len(symbols(entry.arguments)),
        sum(v.words for v in entry.arguments), sum(v.words for v in entry.results), len(entry.constants),
    )  # fmt: skip
    tables = ", ".join(f"{letter}_{entry.name}" for letter in "VFC")
    return f"  {{{functions}, {', '.join(map(str, counts))}, {tables}}},"


def _wrapper(library: Library, number: int, entry: Entry) -> str:
    full = f"{library.name}_{entry.name}"
    return (
        f"\nPUBLIC int {full}({library.name} *model, const {full}_inputs *inputs, {full}_outputs *outputs) {{\n"
        f"  return run(model, {number}, inputs, outputs);\n}}"
    )


def _text(text: str) -> str:
    r"""Return a text as C has it.

    >>> print(_text('say "x"\n??'))
    "say \"x\"\n\?\?"
    """
    return json.dumps(text, ensure_ascii=False).replace("?", "\\?")


# ---- beside the library ------------------------------------------------------------------------------------------
def example(library: Library) -> str:
    """Return a program that runs the first function on zeros, and prints what it gives."""
    entry, name = library.entries[0], library.name
    full, upper = f"{name}_{entry.name}", name.upper()
    lines = [
        f"/* Runs {full} once, on zeros. */",
        "#include <stdio.h>",
        f'#include "{name}.h"',
        "",
        *_rooms(entry.given),
        "int main(void) {",
        f"  {name} *model;",
        f"  {name}_options options = {{0}};",
        *([] if library.built_in else [f'  options.weights = "{name}.safetensors";']),
        f"  if ({name}_create(&options, &model) != {upper}_OK) {{",
        f'    fprintf(stderr, "%s\\n", {name}_error(NULL));',
        "    return 1;",
        "  }",
        f"  {full}_inputs inputs = {{0}};",
        f"  {full}_outputs outputs;",
        *(line for v in entry.given if v.rank for line in _filled(v)),
        f"  if ({full}(model, &inputs, &outputs) != {upper}_OK) {{",
        f'    fprintf(stderr, "%s\\n", {name}_error(model));',
        "    return 1;",
        "  }",
        *(line for v in entry.made for line in _printed(v)),
        f"  {name}_free(model);",
        "  return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _sizes(v: CValue) -> list[int]:
    return [1 if isinstance(extent, Dim) else extent for extent in v.extents]


def _rooms(values: Sequence[CValue]) -> list[str]:
    lines: list[str] = []
    for v in values:
        if v.rank:
            count = 1
            for extent in _sizes(v):
                count *= extent
            lines.append(f"static {v.c_type} {v.field}_data[{max(1, count)}];")
    return [*lines, ""] if lines else []


def _filled(v: CValue) -> list[str]:
    sizes = [f"  inputs.{v.field}.shape[{axis}] = {extent};" for axis, extent in enumerate(_sizes(v))]
    return [f"  inputs.{v.field}.data = {v.field}_data;", *sizes]


def _printed(v: CValue) -> list[str]:
    if "_Complex" in v.c_type:
        return [f'  printf("{v.field}\\n");']
    if not v.rank:
        return [f'  printf("{v.field}: %g\\n", (double)outputs.{v.field});']
    return [
        f'  printf("{v.field}:");',
        "  {",
        "    int64_t count = 1;",
        f"    for (int i = 0; i < {v.rank}; i++) count *= outputs.{v.field}.shape[i];",
        f'    for (int64_t i = 0; i < count; i++) printf(" %g", (double)outputs.{v.field}.data[i]);',
        "  }",
        '  printf("\\n");',
    ]


_CMAKE = """\
cmake_minimum_required(VERSION 3.15)
project({name}_example C)
find_package(Threads REQUIRED)
add_library({name} STATIC IMPORTED)
set_target_properties({name} PROPERTIES
  IMPORTED_LOCATION ${{CMAKE_CURRENT_SOURCE_DIR}}/lib{name}.a
  INTERFACE_INCLUDE_DIRECTORIES ${{CMAKE_CURRENT_SOURCE_DIR}}
  INTERFACE_LINK_LIBRARIES "Threads::Threads;m")
add_executable(example example.c)
target_link_libraries(example PRIVATE {name})
"""


def cmake(library: Library) -> str:
    """Return a CMakeLists.txt that builds the example."""
    return _CMAKE.format(name=library.name)
